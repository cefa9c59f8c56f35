"""Builds forensics/data from the published sglang releases by static reading; sglang is never imported."""
