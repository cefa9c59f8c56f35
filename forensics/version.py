"""The program's own version, stated once."""

VERSION = "0.1.0"
