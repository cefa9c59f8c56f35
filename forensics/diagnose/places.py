"""Places of a report: rows and spans of the table as `Where`, with the line's text made safe to show."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.schema.report import Where
from forensics.schema.span import Span

MAX_TEXT = 400
"""Characters of a line that a report shows."""
MAX_WHOLE = 16_000
"""Characters of a launch command, or of a value in it."""
MAX_KEPT = 20_000
"""Texts whose masked form is kept: the settings and messages of one launch come again in the next."""
MAX_PLACES = 12
"""Places kept for one ground: enough to see every rank of a node, bounded for floods."""


@frozen
class Places:
    """Turns rows and spans into `Where`. `tables`: that of the input first, then those of further inputs (a
    baseline). `mask` hides secrets; the text is cut to `MAX_TEXT` characters."""

    tables: tuple[EventTable, ...]
    mask: Callable[[str], str]
    _lines: dict[tuple[int, int], _Lines] = field(default_factory=dict, repr=False, compare=False)
    _safe: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def table(self) -> EventTable:
        """The table of the input under analysis."""
        return self.tables[0]

    def row(self, row: int) -> Where:
        """The place of a table row with its message."""
        return Where.of(self.table.span(row), self.text(row))

    def text(self, row: int) -> str:
        """The message of a row, masked and cut."""
        return self.safe(self.table.text(row))

    def safe(self, text: str) -> str:
        """Any text of the input, masked and cut."""
        found = self._safe.get(text)
        if found is None:
            masked = self.mask(text)
            found = masked if len(masked) <= MAX_TEXT else masked[: MAX_TEXT - 1] + "…"
            if len(text) <= MAX_TEXT and len(self._safe) < MAX_KEPT:
                self._safe[text] = found
        return found

    def whole(self, text: str) -> str:
        """A text of the input that is to be used again, masked; cut only where no command line is that long."""
        masked = self.mask(text)
        return masked if len(masked) <= MAX_WHOLE else masked[: MAX_WHOLE - 1] + "…"

    def span(self, span: Span) -> Where:
        """The place of a span; the text is that of the table row on this line, if there is one."""
        for table in self.tables:
            row = self._row_of(table, span)
            if row is not None:
                return Where.of(span, self.safe(table.text(row)))
        return Where.of(span)

    def spans(self, spans: Iterable[Span]) -> list[Where]:
        """Distinct places in the order given, at most `MAX_PLACES`."""
        return [self.span(s) for s in list(dict.fromkeys(spans))[:MAX_PLACES]]

    def _row_of(self, table: EventTable, span: Span) -> int | None:
        """The table row that stands at a span, or None (facts from other inputs, hot lines)."""
        for index, source in enumerate(table.sources):
            if source.name == span.path:
                key = id(table), index
                known = self._lines.get(key) or self._lines.setdefault(key, _Lines.of(table, index))
                return known.row(span.line, span.byte_start)
        return None


@frozen
class _Lines:
    """The rows of one source in the order of their lines."""

    line: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int64]

    @classmethod
    def of(cls, table: EventTable, source: int) -> _Lines:
        rows = np.flatnonzero(table.source == source).astype(np.int64)
        rows = rows[np.lexsort((table.offset[rows], table.line[rows]))]
        return cls(table.line[rows], rows, table.offset[rows].astype(np.int64))

    def row(self, line: int, byte: int) -> int | None:
        """The row of a line that holds a byte: the last that begins up to there, else the first."""
        at, end = (int(np.searchsorted(self.line, line, side)) for side in ("left", "right"))
        if at == end:
            return None
        before = int(np.count_nonzero(self.begin[at:end] <= byte))
        return int(self.rows[at + max(before - 1, 0)])
