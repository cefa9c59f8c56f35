"""Fleets: many incidents at once, on an engine that exists already (local processes or Ray)."""
