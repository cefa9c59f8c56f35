"""How much of the input the grammar understood: shares of lines and bytes, and the shapes that it did not."""

from __future__ import annotations

import numpy as np

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.schema.span import Span


@frozen
class Unparsed:
    """A shape that is plain text to the grammar: how often, and where first."""

    shape: str
    count: int
    where: Span


@frozen
class Coverage:
    """`lines` and `bytes` are totals; the `_understood` ones have a kind other than plain text.

    `kinds` counts lines per kind; `top` lists the most frequent plain-text shapes, most frequent first."""

    lines: int
    lines_understood: int
    bytes: int
    bytes_understood: int
    kinds: dict[str, int]
    top: tuple[Unparsed, ...]

    @property
    def line_share(self) -> float:
        """Share of lines understood, 0 to 1 (1 for an input without lines)."""
        return self.lines_understood / self.lines if self.lines else 1.0

    @property
    def byte_share(self) -> float:
        """Share of bytes understood, 0 to 1."""
        return self.bytes_understood / self.bytes if self.bytes else 1.0


def coverage(table: EventTable, top: int = 20) -> Coverage:
    """Measure a scanned table; all its inputs together."""
    rows = table.rows_of_kind("text")
    dark = int(table.length[rows].astype(np.int64).sum()) + len(rows)
    lines = sum(info.lines for info in table.infos)
    size = sum(info.bytes for info in table.infos)
    unparsed = table.counts.get("text", 0)
    # A line without a kind costs its newline too; the last line may have none.
    return Coverage(lines, lines - unparsed, size, max(0, size - dark), table.counts, _top(table, rows, top))


def _top(table: EventTable, rows: np.ndarray, top: int) -> tuple[Unparsed, ...]:
    shapes, first, counts = np.unique(table.shape[rows], return_index=True, return_counts=True)
    order = sorted(range(len(shapes)), key=lambda i: (-int(counts[i]), int(first[i])))[:top]
    return tuple(
        Unparsed(table.shapes[int(shapes[i])].text, int(counts[i]), table.span(int(rows[first[i]]))) for i in order
    )
