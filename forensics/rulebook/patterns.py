"""The one door to RE2: compile quietly, in linear time, with errors that tell what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Protocol, cast

import re2

MAX_PATTERN = 4000
MAX_MEMORY = 16 << 20
_HINTS = (
    ("(?=", "look-ahead is not linear-time: put the second condition under `not` or `frames`"),
    ("(?!", "negative look-ahead is not linear-time: put the refused text under `not`"),
    ("(?<=", "look-behind is not linear-time: write the text before as part of the pattern"),
    ("(?<!", "negative look-behind is not linear-time: put the refused text under `not`"),
    ("(?>", "atomic groups do not exist in RE2: write `(?:…)`"),
    ("++", "possessive repeats do not exist in RE2: write a plain `+`"),
    ("*+", "possessive repeats do not exist in RE2: write a plain `*`"),
)


class Found(Protocol):
    """The part of a match that is used."""

    def start(self, group: int | str = 0) -> int: ...
    def end(self, group: int | str = 0) -> int: ...
    def groupdict(self) -> dict[str, str | None]: ...
    def group(self, group: int | str = 0) -> str | None: ...


class Pattern(Protocol):
    """The part of a compiled pattern that is used."""

    @property
    def groupindex(self) -> dict[str, int]: ...
    def search(self, text: str) -> Found | None: ...
    def finditer(self, text: str) -> Iterator[Found]: ...


class BadPattern(ValueError):
    """A pattern that RE2 refuses. `hint` tells what to write instead, `offset` where the trouble is (0-based)."""

    def __init__(self, message: str, hint: str, offset: int) -> None:
        super().__init__(message)
        self.hint = hint
        self.offset = offset


@lru_cache(maxsize=8192)
def compiled(text: str) -> Pattern:
    """Compile a pattern; BadPattern where RE2 refuses it."""
    if len(text) > MAX_PATTERN:
        raise BadPattern(
            f"the pattern has {len(text)} characters (at most {MAX_PATTERN})", "cut it to what is typical", 0
        )
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        return cast("Pattern", re2.compile(text, options))
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise BadPattern(f"not RE2: {said}", *_advice(text, said)) from None


def new_set() -> re2.Set:
    """An unanchored set of patterns, for prefilters."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 256 << 20
    return re2.Set.SearchSet(options)


def _advice(text: str, said: str) -> tuple[str, int]:
    for mark, hint in _HINTS:
        if mark in text and not text[: text.index(mark)].endswith("\\"):
            return hint, text.index(mark)
    for digit in "123456789":
        if f"\\{digit}" in text:
            return "back-references are not linear-time: capture twice and compare under `where`", text.index(
                f"\\{digit}"
            )
    part = said.rpartition(": ")[2]
    offset = text.find(part) if part else -1
    return "see RE2's syntax; escape ( ) [ ] { } . * + ? | with a backslash to mean themselves", max(0, offset)
