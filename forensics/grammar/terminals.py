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


def relaxed(pattern: str) -> str:
    """A pattern for RE2 that matches wherever the given one does: what it looks ahead for and where it ends are left
    out, and characters beyond latin-1, which no text here holds."""
    out, at, inside = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            out.append(pattern[at : at + 2])
            at += 2
            continue
        if not inside and pattern.startswith(("(?=", "(?!", "(?<=", "(?<!"), at):
            at = _closing(pattern, at)
            continue
        if not inside and char == "[":
            inside = True
            head = 1 + (pattern[at + 1 : at + 2] == "^")
            head += pattern[at + head : at + head + 1] == "]"
            out.append(pattern[at : at + head])
            at += head
            continue
        inside = inside and char != "]"
        if char != "$" or inside:
            out.append(char if char < "\u0100" else r"\x00")
        at += 1
    return "".join(out)


def _closing(pattern: str, at: int) -> int:
    """Right after the bracket that closes the group at `at`."""
    depth, inside = 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            at += 1
        elif inside:
            inside = char != "]"
        elif char == "[":
            inside = True
            at += pattern[at + 1 : at + 2] == "^"
            at += pattern[at + 1 : at + 2] == "]"
        else:
            depth += (char == "(") - (char == ")")
            if depth == 0:
                return at + 1
        at += 1
    return at


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
