"""The first message of every shape, read once for all launches, and the needles that it may match."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import ref

from forensics.engine.table import EventTable, Shape
from forensics.timeline import sieve
from forensics.timeline.sieve import Needle

HEAD = 300
"""Bytes of the raw line that are kept with a first message."""
_KEPT = 32 << 20
"""Characters that are kept at most; longer ones are read again when they are asked for."""


class Firsts:
    """First messages by shape id. `texts` are stripped; None where it is read when asked."""

    def __init__(self, table: EventTable) -> None:
        self._table = ref(table)
        self._texts: list[str | None] = []
        self.heads: list[bytes] = []
        self._known = 0
        self._near: dict[int, list[int]] = {}
        left = _KEPT
        for shape in table.shapes:
            raw = table.raw(shape.row)
            text = table.unwrapper.message(raw, int(table.flags[shape.row]))[0].strip()
            left -= len(text)
            self._texts.append(text if left > 0 else None)
            self.heads.append(raw[:HEAD])

    def text(self, shape: int) -> str:
        """The stripped first message of a shape."""
        found = self._texts[shape]
        return self._of().text(self._of().shapes[shape].row).strip() if found is None else found

    def near(self, wanted: Needle) -> list[int]:
        """Ids (ascending) of the shapes whose first message may match."""
        if self._known != sieve.known():
            self._sort()
        return self._near.get(wanted.number, [])

    def matching(self, wanted: Needle) -> Iterator[tuple[Shape, str]]:
        """The shapes whose first message matches, with that message."""
        for shape in self.near(wanted):
            text = self.text(shape)
            if wanted.pattern.search(text):
                yield self._of().shapes[shape], text

    def _of(self) -> EventTable:
        table = self._table()
        assert table is not None, "whoever asks holds the table"
        return table

    def _sort(self) -> None:
        self._known, self._near = sieve.known(), {}
        for shape in range(len(self._texts)):
            for number in sieve.near(self.text(shape)):
                self._near.setdefault(number, []).append(shape)


def firsts(table: EventTable) -> Firsts:
    """The first messages of a table."""
    found = table.memo.get("firsts")
    if not isinstance(found, Firsts):
        found = table.memo["firsts"] = Firsts(table)
    return found
