"""Finding rows by the shape of their message: one test a shape, numpy for the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.schema.block import Block

Rows = npt.NDArray[np.int64]

OPAQUE = frozenset({"request-dump", "access", "server-args", "command", "env-report", "nvidia-smi", "blank"})
"""Kinds whose text is free or belongs to users: their words say nothing about the server."""


def distinct(values: npt.NDArray[Any]) -> list[Any]:
    """The different values, ascending. `np.unique` would load numpy's masked arrays first, to ask whether it has one:
    a fiftieth of the time of a small log."""
    if not len(values):
        return []
    ordered = np.sort(values)
    kept: list[Any] = ordered[np.append(True, ordered[1:] != ordered[:-1])].tolist()
    return kept


def blocks_in(table: EventTable, blocks: tuple[Block, ...], inside: Rows) -> tuple[list[int], Rows]:
    """Indexes of the blocks that begin in `inside`, and all their rows (ascending)."""
    found: tuple[tuple[Block, ...], Rows, Rows, Rows] | None = table.memo.get("blocks")
    if found is None or found[0] is not blocks:
        rows = [np.fromiter(block.rows, np.int64, len(block.rows)) for block in blocks]
        heads = np.array([part[0] for part in rows], np.int64)
        every = np.concatenate([no_rows(), *rows])
        owners = np.repeat(np.arange(len(blocks)), [len(part) for part in rows])
        found = table.memo["blocks"] = (blocks, heads, every, owners)
    _, heads, every, owners = found
    mine = are_in(heads, inside)
    return np.flatnonzero(mine).tolist(), np.sort(every[mine[owners]])


def no_rows() -> Rows:
    """An empty row array."""
    return np.zeros(0, np.int64)


def rows_of_shapes(table: EventTable, ids: Iterable[int]) -> Rows:
    """Rows (ascending) that have one of these shapes."""
    return table.rows_of_shapes(ids)


def is_stretch(rows: Rows) -> bool:
    """Whether ascending rows leave none out, as those of a launch in a file of its own."""
    return bool(rows[-1] - rows[0] + 1 == len(rows))


def are_in(rows: Rows, others: Rows) -> npt.NDArray[np.bool_]:
    """Which rows are among others; the others are in ascending order."""
    if not len(others):
        return np.zeros(len(rows), dtype=bool)
    if is_stretch(others):
        return np.asarray((rows >= others[0]) & (rows <= others[-1]))
    at = np.minimum(np.searchsorted(others, rows), len(others) - 1)
    return np.asarray(others[at] == rows)


def within(rows: Rows, inside: Rows) -> Rows:
    """The rows that are also in `inside` (both ascending)."""
    if not len(rows) or not len(inside):
        return no_rows()
    if is_stretch(inside):
        return rows[np.searchsorted(rows, inside[0]) : np.searchsorted(rows, inside[-1], "right")]
    at = np.searchsorted(inside, rows)
    at[at == len(inside)] = 0
    kept: Rows = rows[inside[at] == rows]
    return kept
