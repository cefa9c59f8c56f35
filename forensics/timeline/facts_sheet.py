"""The sheet that facts are written on: first statement wins, a stated fact beats an inferred one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.schema.facts import Fact, Value
from forensics.schema.span import Span


@dataclass(slots=True)
class Sheet:
    """Facts of one launch in the making. `rows` are the launch's rows (ascending)."""

    table: EventTable
    rows: npt.NDArray[np.int64]
    facts: dict[str, Fact] = field(default_factory=dict)
    _first: list[tuple[str, str, int]] | None = None

    def put(self, name: str, value: Value, where: Span | None, how: str = "stated") -> None:
        """Writes a fact unless a better or earlier one stands there already."""
        old = self.facts.get(name)
        if old is None or (old.how != "stated" and how == "stated"):
            self.facts[name] = Fact(name, value, where, how)

    def value(self, name: str) -> Value:
        """Value of a fact, None where it is unknown (or stated to be None)."""
        fact = self.facts.get(name)
        return fact.value if fact else None

    def where(self, name: str) -> Span | None:
        """Place of a fact."""
        fact = self.facts.get(name)
        return fact.where if fact else None

    def place(self, row: int, start: int, end: int) -> Span:
        """Place of `start:end` (code points) inside a row's message: column-exact, and byte-exact where the raw line
        holds the message unchanged."""
        column = self.table.column(row) + start
        span = self.table.span(row, column)
        text = self.table.text(row)[start:end]
        raw = self.table.raw(row)
        at = raw.find(text.encode(), _byte_floor(raw, column))
        if at < 0:
            return span
        begin = int(self.table.offset[row]) + at
        return Span(span.path, span.line, column, begin, begin + len(text.encode()))

    def placer(self, row: int) -> Callable[[int, int], Span]:
        """`place` for many parts of one message: a plain line is looked at once."""
        raw, text, column = self.table.raw(row), self.table.text(row), self.table.column(row)
        whole = self.table.span(row, column)
        if not raw.isascii() or raw[column - 1 :] != text.encode():
            return partial(self.place, row)
        begin = whole.byte_start + column - 1

        def place(start: int, end: int) -> Span:
            return Span(whole.path, whole.line, column + start, begin + start, begin + min(end, len(text)))

        return place

    def first_rows(self) -> list[tuple[str, str, int]]:
        """(kind, masked text, first row) of every shape that occurs in the launch, in row order."""
        if self._first is not None:
            return self._first
        found: tuple[npt.NDArray[np.int64], list[tuple[str, str, int]]] | None = self.table.memo.get(_FIRST)
        if found is None or found[0] is not self.rows:
            found = self.table.memo[_FIRST] = (self.rows, _first_rows(self.table, self.rows))
        self._first = found[1]
        return self._first


_FIRST = "first rows"
"""Key of the table's memo for those of the launch that was asked for last: several stages ask for the same."""


def _first_rows(table: EventTable, rows: npt.NDArray[np.int64]) -> list[tuple[str, str, int]]:
    first = np.full(len(table.shapes), -1, np.int64)
    first[table.shape[rows[::-1]]] = rows[::-1]  # of equal indices the last one, the first row, is kept
    held = np.flatnonzero(first >= 0)
    ordered = held[np.argsort(first[held])]
    shapes = [table.shapes[i] for i in ordered.tolist()]
    return [(s.kind, s.text, row) for s, row in zip(shapes, first[ordered].tolist(), strict=True)]


def _byte_floor(raw: bytes, column: int) -> int:
    """Byte offset of a column in a raw line; exact for valid UTF-8."""
    return len(raw.decode("utf-8", "replace")[: column - 1].encode()) if column > 1 else 0
