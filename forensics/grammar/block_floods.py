"""Floods of device asserts: one line that was read stands for all lines of its shape."""

from __future__ import annotations

from dataclasses import replace

from forensics.engine.mask import SHAPE_LENGTH
from forensics.engine.table import EventTable
from forensics.grammar.block_stream import Line


class Floods:
    """Asserts that were read, by shape. A failing kernel prints one line a thread, a hundred thousand at a time."""

    def __init__(self, table: EventTable) -> None:
        self._table = table
        self._known: dict[int, Line] = {}
        self._bare = not any(info.wrappers for info in table.infos)
        """No wrapper tells writers apart."""

    def line(self, row: int) -> Line | None:
        """The line of a row, unread, where its shape was seen before."""
        known = self._known.get(int(self._table.shape[row]))
        return None if known is None else replace(known, row=row)

    def remember(self, line: Line) -> None:
        """Takes an assert as the pattern of its shape, where the assertion has no number that could differ."""
        shape = self._table.shapes[int(self._table.shape[line.row])]
        name = line.text.partition("Assertion ")[2]
        whole = len(shape.text) < SHAPE_LENGTH and shape.text.partition("Assertion ")[2] == name
        if name and whole and self._bare and not any(c.isdigit() for c in name):
            self._known[shape.id] = line
