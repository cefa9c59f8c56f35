"""Lark's terminals as plain patterns: what the engine needs of the lexer, taken from the grammar itself."""

from __future__ import annotations

import re

_SCANS = re.compile(r"\[\^(?:\\n|\n|\{\})\]\{\d+,\d+\}\?")
"""An alternative that begins by skipping text, to find something further on in the line."""


def alternation(terminals: list[tuple[str, str]]) -> re.Pattern[str]:
    """One pattern that tries the terminals in their order; `lastgroup` names the one that matched."""
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in terminals), re.ASCII)


def anchored(terminals: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[str]]:
    """Split terminals into what can match without skipping text, and what the skipping alternatives look for.

    Where none of the latter occurs in a line, the former decide alone, and much faster."""
    quick: list[tuple[str, str]] = []
    contained: list[str] = []
    for name, pattern in terminals:
        kept = []
        for alternative in alternatives(pattern):
            skip = _SCANS.match(alternative)
            if skip:
                contained.append(alternative[skip.end() :])
            else:
                kept.append(alternative)
        if kept:
            quick.append((name, "|".join(kept)))
    return quick, contained


def alternatives(pattern: str) -> list[str]:
    """Top-level alternatives of a regular expression."""
    out, depth, start, at = [], 0, 0, 0
    inside = False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 2
            continue
        if inside:
            # A bracket right after `[` or `[^` stands for itself.
            inside = char != "]"
        elif char == "[":
            inside = True
            at += 1 + (pattern[at + 1 : at + 2] == "^")
            at += pattern[at : at + 1] == "]"
            continue
        elif char == "|" and depth == 0:
            out.append(pattern[start:at])
            start = at + 1
        else:
            depth += (char == "(") - (char == ")")
        at += 1
    return [*out, pattern[start:]]
