"""Frozen data that the stages hand to each other. No behaviour beyond invariants."""
