"""Where a parsed thing stands: the one position type of the program."""

from __future__ import annotations

from forensics.frozen import frozen


@frozen
class Span:
    """A place in one input.

    `path` is the input as the user named it (`-` for standard input). `line` is 1-based and counted at `\\n`
    only; `column` is 1-based, in code points of the raw line. `byte_start`/`byte_end` delimit the bytes in the
    decompressed stream before any wrapper is taken off. Places are ordered by all of that.
    """

    path: str
    line: int
    column: int = 1
    byte_start: int = 0
    byte_end: int = 0

    def __lt__(self, other: Span) -> bool:
        return self._all() < other._all()

    def _all(self) -> tuple[str, int, int, int, int]:
        return self.path, self.line, self.column, self.byte_start, self.byte_end

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"
