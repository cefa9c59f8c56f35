"""Where a parsed thing stands: the one position type of the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A place in one input.

    `path` is the input as the user named it (`-` for standard input). `line` is 1-based and counted at `\\n`
    only; `column` is 1-based, in code points of the raw line. `byte_start`/`byte_end` delimit the bytes in the
    decompressed stream before any wrapper is taken off.
    """

    path: str
    line: int
    column: int = 1
    byte_start: int = 0
    byte_end: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"
