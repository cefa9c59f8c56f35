"""One order for the lines of several nodes: by their own clocks where one file holds one node after the other.

Separate files are interleaved before (forensics/engine/merge.py), and lines that a collector mixed stand in the order
in which they arrived. Stretches of one file that belong to different nodes stand one behind the other: there only the
clocks can tell what came first, and position breaks ties. As between files, the end of the rendezvous, which all nodes
reach together, tells how far the clocks are apart.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from forensics.engine.merge import SHARED_EVENTS, SKEW_FLOOR
from forensics.engine.table import STAMPED, EventTable
from forensics.frozen import frozen
from forensics.timeline.firsts import firsts
from forensics.timeline.lookup import Rows, distinct, rows_of_shapes
from forensics.timeline.sieve import needle
from forensics.timeline.starts import find_starts

DAY = 86_400.0
APART_S = 900.0
"""Nodes of one launch whose first lines are further apart than this have clocks that cannot be compared."""
BACK_S = 1.0
"""A stretch that begins this long before the end of the one above it was appended to it."""

_SHARED = needle("^(?:" + "|".join(SHARED_EVENTS) + ")")
_NATIVE = frozenset({"cxx-log", "gloo", "nccl", "pg-watchdog", "transport", "cxx-abort"})
"""Lines of native libraries: their times may be in another zone than the program's own."""


@frozen
class Clock:
    """`of(row)` orders rows. `rows` and `places` are empty where the position in the input is that order. `note` says
    why clocks could not be compared although the input holds several nodes."""

    rows: Rows
    places: Rows
    note: str = ""

    @property
    def moved(self) -> bool:
        """Whether the order differs from the position in the input."""
        return bool(len(self.rows))

    def of(self, row: int) -> int:
        """Place of a row in the order of events."""
        if not len(self.rows):
            return row
        at = min(int(np.searchsorted(self.rows, row)), len(self.rows) - 1)
        return int(self.places[at])

    def all(self, rows: Rows) -> Rows:
        """Places of many rows, ascending."""
        if not len(self.rows):
            return rows
        return np.sort(np.array([self.of(int(r)) for r in rows.tolist()], dtype=np.int64))


NONE = np.zeros(0, np.int64)
BY_POSITION = Clock(NONE, NONE)


def clock_of(table: EventTable, inside: Rows) -> Clock:
    """The order of events of one launch."""
    if not len(inside) or len(distinct(table.source[inside])) > 1:
        return BY_POSITION
    edges = _edges(table, inside)
    if len(edges) < 3:
        return BY_POSITION
    native = np.array([s.kind in _NATIVE for s in table.shapes], dtype=bool)[table.shape[inside]]
    clock = np.where((table.flags[inside] & STAMPED > 0) & ~native, table.time[inside], np.nan)
    clock -= _skews(table, inside, edges, clock)
    times = np.concatenate([_filled(clock[a:b]) for a, b in pairwise(edges)])
    first = [times[a] for a in edges[:-1]]
    if np.isnan(times).any():
        return Clock(NONE, NONE, "a node prints no times: what came first among the nodes cannot be told")
    if max(first) - min(first) > APART_S:
        return Clock(NONE, NONE, "the clocks of the nodes are too far apart to tell which of them failed first")
    order = np.lexsort((inside, times))
    places = np.empty(len(inside), dtype=np.int64)
    places[order] = np.arange(len(inside))
    return Clock(inside, places)


def _edges(table: EventTable, inside: Rows) -> list[int]:
    """Indices in `inside` where the lines of another node begin, with both ends."""
    found = {0, len(inside)}
    nodes: set[str] = set()
    for start in find_starts(table, inside):
        node = start.field("node_rank", "0")
        if node in nodes or start.time is None:
            continue
        at = int(np.searchsorted(inside, start.row))
        above = table.time[inside[max(0, at - 400) : at]]
        above = above[~np.isnan(above)]
        if nodes and len(above) and float(above.max()) > start.time + BACK_S:
            found.add(at)
        nodes.add(node)
    return sorted(found)


def _skews(table: EventTable, inside: Rows, edges: list[int], clock: np.ndarray) -> np.ndarray:
    """Seconds to take off each line's clock: how much later than the first stretch its own left the rendezvous."""
    barrier = rows_of_shapes(table, (s.id for s, _ in firsts(table).matching(_SHARED)))
    there = np.isin(inside, barrier)
    skews = np.zeros(len(inside))
    reference: float | None = None
    for a, b in pairwise(edges):
        times = clock[a:b][there[a:b]]
        when = float(np.nanmin(times)) if len(times) and not np.isnan(times).all() else None
        if when is None:
            continue
        reference = when if reference is None else reference
        if SKEW_FLOOR <= abs(when - reference) < DAY:
            skews[a:b] = when - reference
    return skews


def _filled(times: np.ndarray) -> np.ndarray:
    """Times with gaps filled from the line above (from below at the top)."""
    known = np.flatnonzero(~np.isnan(times))
    if not len(known):
        return times
    at = np.clip(np.searchsorted(known, np.arange(len(times)), side="right") - 1, 0, None)
    filled: np.ndarray = times[known[at]]
    return filled
