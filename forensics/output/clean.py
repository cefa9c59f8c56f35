"""Text from a log made inert: no control characters, no escape sequences, no bidirectional overrides."""

from __future__ import annotations

import unicodedata

_KEEP = {"\t": "    "}
# Cn: not (yet) assigned, and U+FFFE, U+FFFF, which XML cannot hold
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str, limit: int = 0) -> str:
    """`text` on one line; control, format, surrogate, private-use and unassigned characters become visible ones.

    `limit` (characters, 0 = none) cuts the end and says how many were cut.
    """
    if text.isascii() and text.isprintable():
        return _cut(text, limit)
    return _cut("".join(_visible(char) for char in text), limit)


def _visible(char: str) -> str:
    if char in _KEEP:
        return _KEEP[char]
    if char == "\N{REPLACEMENT CHARACTER}" or unicodedata.category(char) not in _HIDDEN:
        return char
    return chr(0x2400 + ord(char)) if ord(char) < 0x20 else "\N{REPLACEMENT CHARACTER}"


def _cut(text: str, limit: int) -> str:
    if not limit or len(text) <= limit:
        return text
    return f"{text[:limit]}… (+{len(text) - limit} characters)"
