"""Relaunches a server with a fix, on its host, and proves whether the fix worked."""
