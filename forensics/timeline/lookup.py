"""Finding rows by the shape of their message: one test a shape, numpy for the rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable, Shape

Rows = npt.NDArray[np.int64]

OPAQUE = frozenset({"request-dump", "access", "server-args", "command", "env-report", "nvidia-smi", "blank"})
"""Kinds whose text is free or belongs to users: their words say nothing about the server."""


def no_rows() -> Rows:
    """An empty row array."""
    return np.zeros(0, np.int64)


def shapes_where(table: EventTable, test: Callable[[Shape, str], bool]) -> list[int]:
    """Ids of the shapes for which `test(shape, message of its first row)` holds."""
    return [shape.id for shape in table.shapes if test(shape, table.text(shape.row).strip())]


def rows_of_shapes(table: EventTable, ids: Iterable[int]) -> Rows:
    """Rows (ascending) that have one of these shapes."""
    return table.rows_of_shapes(ids)


def shapes_matching(table: EventTable, pattern: re.Pattern[str], kinds: frozenset[str] | None = None) -> list[int]:
    """Ids of the shapes whose first message matches `pattern`; free text of users is left out."""

    def test(shape: Shape, text: str) -> bool:
        wanted = shape.kind in kinds if kinds is not None else shape.kind not in OPAQUE
        return wanted and pattern.search(text) is not None

    return shapes_where(table, test)


def within(rows: Rows, inside: Rows) -> Rows:
    """The rows that are also in `inside` (both ascending)."""
    if not len(rows) or not len(inside):
        return no_rows()
    at = np.searchsorted(inside, rows)
    at[at == len(inside)] = 0
    kept: Rows = rows[inside[at] == rows]
    return kept
