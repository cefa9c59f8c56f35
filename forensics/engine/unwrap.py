"""Takes wrapper and header off one raw line again, by the same grammar that the scan used."""

from __future__ import annotations

from forensics.engine.mask import strip_ansi
from forensics.engine.table import WRAPPED
from forensics.grammar.header import Head, headers
from forensics.grammar.payload import unescape


class GrammarUnwrapper:
    """`Unwrapper` of engine/table.py. `forced` names the one wrapper that `--wrapper` admits; `preambles` are the
    patterns found in the inputs, for rows that bear one."""

    def __init__(self, forced: str | None = None, preambles: tuple[str, ...] = ()) -> None:
        self.forced = forced
        self.preamble = "|".join(preambles) or None
        self._headers = headers()

    def head(self, raw: bytes, flags: int = 0) -> Head:
        """Wrapper and header of one raw line; offsets are bytes."""
        return self._headers.split(raw.decode("latin-1"), self.preamble if flags & WRAPPED else None, self.forced)

    def message(self, raw: bytes, flags: int) -> tuple[str, int]:
        """Message (decoded with replacement, no ANSI, no header) and its 0-based column in the raw line.

        A message that a wrapper cut into several lines is put together again."""
        first, *rest = raw.split(b"\n")
        text, column = self._one(first, flags)
        return "".join([text, *(self._one(line, flags)[0] for line in rest)]), column

    def _one(self, raw: bytes, flags: int) -> tuple[str, int]:
        line = raw.rstrip(b"\r")
        head = self.head(line, flags)
        body = line[head.body_at : head.end].decode("utf-8", "replace")
        column = len(line[: head.body_at].decode("utf-8", "replace"))
        if head.payload:
            body = unescape(body)[0].rstrip("\r\n")
        clean, places = strip_ansi(body)
        if places:
            column += places[0] if not head.payload else 0
        return clean, column
