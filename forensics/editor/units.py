"""Columns at the rim: the program counts code points from 1, editors count UTF-16 (or UTF-8, UTF-32) units from 0."""

from __future__ import annotations

from lsprotocol import types

from forensics.frozen import frozen


@frozen
class Units:
    """`encoding` is what client and server agreed on: utf-8, utf-16 or utf-32."""

    encoding: str = "utf-16"

    def out(self, text: str, column: int) -> int:
        """Units before the 1-based code point `column` of a line."""
        return self.length(text[: max(0, column - 1)])

    def length(self, text: str) -> int:
        """Units of a text."""
        if text.isascii() or self.encoding == "utf-32":
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    def into(self, text: str, units: int) -> int:
        """1-based code point column of a client's offset; offsets inside a character give that character, offsets
        beyond the line its end."""
        if text.isascii() or self.encoding == "utf-32":
            return min(units, len(text)) + 1
        seen = 0
        for index, char in enumerate(text):
            seen += self.length(char)
            if seen > units:
                return index + 1
        return len(text) + 1

    def span(self, lines: list[str], line: int, column: int, length: int) -> types.Range:
        """Range of `length` code points from a 1-based line and column on; cut at the line's end."""
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        start, end = self.out(text, column), self.out(text, column + max(0, length))
        row = max(0, line - 1)
        return types.Range(types.Position(row, start), types.Position(row, end))
