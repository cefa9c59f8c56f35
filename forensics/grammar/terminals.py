"""Lark's terminals as plain patterns: what the engine needs of the lexer, taken from the grammar itself."""

from __future__ import annotations

import re
from typing import Any

import re2

from forensics.late import Late

_SCANS = re.compile(r"\[\^(?:\\n|\n|\{\})\]\{\d+,\d+\}\?")
"""An alternative that begins by skipping text, to find something further on in the line."""


class Heads:
    """Which of many terminals a text begins with: the first one in their order that matches.

    One set in RE2 names those that may (see `relaxed`); only they are tried. So a run compiles the few that its log
    needs, and of a line of free words nothing more is asked."""

    def __init__(self, terminals: list[tuple[str, str]]) -> None:
        self._terminals: list[tuple[str, Late[str]]] = [(name, Late(pattern, re.ASCII)) for name, pattern in terminals]
        self._set = re2.Set.SearchSet(latin1_options())
        self._owners: list[int] = []
        self._telling: list[tuple[str, str]] = []
        for number, (_, pattern) in enumerate(terminals):
            for alternative in alternatives(pattern):
                skip = _SCANS.match(alternative)
                telling = relaxed(alternative[skip.end() :]) if skip else f"^(?:{relaxed(alternative)})"
                self._set.Add(telling.encode("latin-1"))
                self._owners.append(number)
                self._telling.append((terminals[number][0], f"(?:{telling})"))
        self._set.Compile()

    def first(self, text: str) -> str | None:
        """Name of the terminal, or None. The text holds latin-1 characters only."""
        near: set[int] = {self._owners[n] for n in self._set.Match(text.encode("latin-1", "replace")) or ()}
        for number in sorted(near):
            name, pattern = self._terminals[number]
            if pattern.match(text):
                return name
        return None

    def lines(self, without: str) -> Any:
        """A pattern that finds in many texts at once, one a line, those that may begin with a terminal other than
        `without`: of each text for which `first` names one, a match starts in its line, and none goes beyond a line."""
        patterns = "|".join(pattern for name, pattern in self._telling if name != without)
        return re2.compile(f"(?m){patterns}".encode("latin-1"), latin1_options(one_line=True))


def latin1_options(one_line: bool = False) -> re2.Options:
    """Options for text of one byte a character. `one_line`: no match goes beyond the end of a line."""
    options = re2.Options()
    options.never_nl = one_line
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = 64 << 20
    return options


def relaxed(pattern: str) -> str:
    """A pattern for RE2 that matches wherever the given one does: what it looks ahead for and where it ends are left
    out, and characters beyond latin-1, which no text here holds."""
    out, at, inside = [], 0, False
    while at < len(pattern):
        char = pattern[at]
        if char == "\\":
            pair = pattern[at : at + 2]
            if pair == r"\s":  # RE2's blanks lack the vertical tab
                pair = r"\s\v" if inside else r"[\s\v]"
            out.append(pair)
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
