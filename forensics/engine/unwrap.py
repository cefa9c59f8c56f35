"""Takes wrapper and header off one raw line again, by the same grammar that the scan used."""

from __future__ import annotations

from forensics.engine.mask import DIGITS_TO_ZERO, strip_ansi
from forensics.engine.table import ESCAPED, HEADED, WRAPPED
from forensics.grammar.header import Head, headers
from forensics.grammar.payload import unescape

MAX_BARE = 400
"""Bytes of the longest line without a header that is remembered."""


class GrammarUnwrapper:
    """`Unwrapper` of engine/table.py. `forced` names the one wrapper that `--wrapper` admits; `preambles` are the
    patterns found in the inputs, for rows that bear one."""

    def __init__(self, forced: str | None = None, preambles: tuple[str, ...] = ()) -> None:
        self.forced = forced
        self.preamble = "|".join(preambles) or None
        self._headers = headers()
        self._brackets: dict[bytes, int] = {}
        self._bare: dict[bytes, tuple[str, int]] = {}

    def head(self, raw: bytes, flags: int = 0) -> Head:
        """Wrapper and header of one raw line; offsets are bytes."""
        return self._headers.split(raw.decode("latin-1"), self.preamble if flags & WRAPPED else None, self.forced)

    def _plain_bracket(self, line: bytes, flags: int) -> int:
        """Length of the header where the line starts with a bracket header that is all there is to take off, else 0.

        The grammar's word on such headers is remembered by their mask: they repeat on most lines."""
        close = line.find(b"] ", 0, 100) + 2
        after = line[close : close + 2]
        if close < 3 or line[:1] != b"[" or not after[:1].isalpha() or after.isupper() or b"\x1b" in line:
            return 0
        if self.forced or flags & (WRAPPED | ESCAPED):
            return 0
        key = line[:close].translate(DIGITS_TO_ZERO)
        known = self._brackets.get(key)
        if known is None:
            if len(self._brackets) > 4096:
                self._brackets.clear()
            head = self.head(line, flags)
            known = self._brackets[key] = head.body_at if head.body_at == close and key.isascii() else 0
        return known

    def message(self, raw: bytes, flags: int) -> tuple[str, int]:
        """Message (decoded with replacement, no ANSI, no header) and its 0-based column in the raw line.

        A message that a wrapper cut into several lines is put together again. Lines without a header are remembered:
        stacks repeat theirs, on each rank and in each launch."""
        if flags & (HEADED | WRAPPED | ESCAPED) or len(raw) > MAX_BARE:
            return self._message(raw, flags)
        found = self._bare.get(raw)
        if found is None:
            if len(self._bare) > 4096:
                self._bare.clear()
            found = self._bare[raw] = self._message(raw, flags)
        return found

    def _message(self, raw: bytes, flags: int) -> tuple[str, int]:
        first, *rest = raw.split(b"\n")
        text, column = self._one(first, flags)
        return "".join([text, *(self._one(line, flags)[0] for line in rest)]), column

    def _one(self, raw: bytes, flags: int) -> tuple[str, int]:
        line = raw.rstrip(b"\r")
        close = self._plain_bracket(line, flags)
        if close:
            return line[close:].decode("utf-8", "replace"), close
        head = self.head(line, flags)
        body = line[head.body_at : head.end].decode("utf-8", "replace")
        column = len(line[: head.body_at].decode("utf-8", "replace"))
        if head.payload:  # further lines of the message are rows of their own
            body = unescape(body)[0].rstrip("\r\n").split("\n", 1)[0].rstrip("\r")
        elif flags & ESCAPED:
            body = unescape(body)[0]
        clean, places = strip_ansi(body)
        if places:
            column += places[0] if not head.payload else 0
        return clean, column
