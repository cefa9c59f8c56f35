"""Filled at build time: the shipped rules and findings, compiled."""
