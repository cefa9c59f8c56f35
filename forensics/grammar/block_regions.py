"""Which rows of a table can belong to blocks: rows of telling kinds and the headerless rows that follow them."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from forensics.engine.table import HEADED, STAMPED, EventTable
from forensics.grammar.block_lexer import SEED_KINDS, SEEDS

FOLLOW = 1500
"""Most headerless rows that one seed may draw in (a longer exception message is cut)."""
FOLLOW_HEADED = 6
MAX_REGION = 200_000
"""Most rows that are looked at: of a longer flood the first three quarters and the last quarter."""
MAX_STACK = 4000
"""Most lines of one stack that are read, the first three quarters and the last quarter: Python itself ends at a
thousand frames of two or three lines."""
LEFT_OUT = "block lines left out"
FRAMES_LEFT_OUT = "frame lines left out"
"""Keys of the table's memo under which the numbers of lines stand that were not read."""
STRETCH = 64
"""Neighbouring rows that are read from the input at once."""
OPAQUE = ("request-dump", "server-args", "command", "access", "decode-batch", "prefill-batch", "progress", "router")
_GLOBAL_RANK = re.compile(rb"\[rank(\d+)\]:")
_LABEL = re.compile(r"\(([^()]{0,80}pid=\d+[^()]{0,80})\)|^([A-Za-z][\w.-]*)\s*\|")


def region(table: EventTable) -> npt.NDArray[np.int64]:
    """Rows (ascending) that find_blocks has to look at, found by kind and by shape, never by reading all lines."""
    wanted = np.array([_is_seed(s.kind, s.text) for s in table.shapes], dtype=bool)
    if not len(wanted) or not len(table):
        return np.zeros(0, np.int64)
    seeds = np.flatnonzero(wanted[table.shape]).astype(np.int64)
    if not len(seeds):
        return seeds
    headed = (table.flags & HEADED) != 0
    headed_rows = np.flatnonzero(headed)
    at = np.searchsorted(headed_rows, seeds, side="right")
    following = np.append(headed_rows, len(table))[at]
    ends = np.minimum(following, seeds + FOLLOW)
    per_line = headed[seeds]
    ends = np.where(per_line, np.maximum(ends, np.minimum(seeds + FOLLOW_HEADED, len(table))), ends)
    found = _union(seeds, ends, len(table))
    if len(found) <= MAX_REGION:
        return found
    head = MAX_REGION * 3 // 4
    table.memo[LEFT_OUT] = len(found) - MAX_REGION
    return np.concatenate([found[:head], found[head - MAX_REGION :]])


def without_middles(table: EventTable, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], frozenset[int]]:
    """Rows without the middle of stacks that are too deep to be read, and the first row after each such gap."""
    of_frame = np.array([s.kind in ("frame", "frame-source") for s in table.shapes], dtype=bool)
    bare = of_frame[table.shape[rows]] & ((table.flags[rows] & HEADED) == 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], bare.view(np.int8), [0]])))
    starts, ends = edges[::2], edges[1::2]
    deep = ends - starts > MAX_STACK
    if not deep.any():
        return rows, frozenset()
    keep = np.ones(len(rows), dtype=bool)
    for start, end in zip(starts[deep].tolist(), ends[deep].tolist(), strict=True):
        keep[start + MAX_STACK * 3 // 4 : end - MAX_STACK // 4] = False
    table.memo[FRAMES_LEFT_OUT] = int((~keep).sum())
    return rows[keep], frozenset(rows[ends[deep] - MAX_STACK // 4].tolist())


def alike(rows: npt.NDArray[np.int64], shapes: npt.NDArray[np.int32], gaps: frozenset[int]) -> list[int]:
    """For each of the rows where its stretch ends: neighbours of one shape, with no gap before any but the first."""
    if not len(rows):
        return []
    other = (np.diff(rows) != 1) | (np.diff(shapes) != 0)
    if gaps:
        other |= np.isin(rows[1:], list(gaps))
    return _stops(other)


def neighbours(rows: npt.NDArray[np.int64]) -> list[int]:
    """For each of the rows where its stretch of neighbours ends, a few dozen at most."""
    other = np.diff(rows) != 1
    other[STRETCH - 1 :: STRETCH] = True
    return _stops(other) if len(rows) else []


def _stops(cut: npt.NDArray[np.bool_]) -> list[int]:
    """For each place the end of its stretch; `cut` says after which places one ends."""
    ends = np.append(np.flatnonzero(cut), len(cut)) + 1
    stops: list[int] = np.repeat(ends, np.diff(ends, prepend=0)).tolist()
    return stops


def _is_seed(kind: str, text: str) -> bool:
    if kind in SEED_KINDS:
        return kind != "nccl" or "WARN" in text
    return kind not in OPAQUE and any(word in text for word in SEEDS)


def _union(starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.int64]:
    edges = np.zeros(size + 1, np.int32)
    np.add.at(edges, starts, 1)
    np.add.at(edges, ends, -1)
    return np.flatnonzero(np.cumsum(edges[:-1]) > 0).astype(np.int64)


def gap(table: EventTable, before: int, row: int) -> int:
    """Lines that are missing between two rows of one source (blank lines are no rows)."""
    if int(table.source[before]) != int(table.source[row]):
        return 1 << 30
    return int(table.line[row]) - int(table.line[before]) - (row - before)


def writer(table: EventTable, row: int) -> tuple[str, int | None]:
    """Who wrote a row, as far as its prefix tells: the label of a wrapper (`(Actor pid=7)`, `worker-1  |`; empty where
    there is none) and torch's global rank of a `[rankN]:` prefix."""
    column = table.column(row) - 1
    if column == 0:
        return "", None
    raw = table.raw(row)[:400]
    label = _LABEL.search(raw.decode("utf-8", "replace")[:column]) if column > 0 else None
    name = (label.group(1) or label.group(2)) if label else ""
    found = _GLOBAL_RANK.search(raw[:120])
    return name, int(found.group(1)) if found and not int(table.flags[row]) & STAMPED else None
