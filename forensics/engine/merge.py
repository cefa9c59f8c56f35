"""The order of several inputs: rotated sets joined, nodes of one incident interleaved, launches one after another.

The order does not depend on the order in which the inputs were named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.assemble import Assembled
from forensics.ingest.inputs import rotation_of
from forensics.ingest.sources import Source

Array = npt.NDArray[Any]
_NODE_RANK = re.compile(rb"(?:node_rank['\"]?[=:] ?|--node-rank[= ])(\d+)")
SHARED_EVENTS = ("Init torch distributed ends", "Init parallel end", "Init nccl ends")
"""Events that all nodes reach together: the end of the rendezvous is a barrier."""
SKEW_FLOOR = 2.5
"""Seconds below which clocks count as equal: stamps mostly have whole seconds, and ranks leave a barrier one by one."""


@dataclass(slots=True)
class Loaded:
    """A source with what the scan made of it; `skew` seconds are to be taken off its clock."""

    source: Source
    seen: Assembled
    node: str | None = None
    skew: float | None = None
    chain: tuple[str, str] = ("", "")

    def span(self) -> tuple[float, float]:
        """First and last time, corrected (nan: no stamps)."""
        times = self.seen.rows.time[~np.isnan(self.seen.rows.time)]
        if not len(times):
            return float("nan"), float("nan")
        return float(times.min()) - (self.skew or 0.0), float(times.max()) - (self.skew or 0.0)


def node_of(source: Source, seen: Assembled) -> str | None:
    """Node named by the file name, else by the launch arguments inside (`node_rank=1`, where there are several)."""
    if source.node:
        return source.node
    for row in np.flatnonzero([seen.shapes[int(s)][0] in ("server-args", "command") for s in seen.rows.shape[:2000]]):
        text = source.pread(int(seen.rows.offset[row]), min(int(seen.rows.length[row]), 1 << 16))
        found = _NODE_RANK.search(text)
        if found and not re.search(rb"nnodes['\"]?[=:] ?1\b|--nnodes[= ]1\b", text):
            return f"node{int(found[1])}"
    return None


def order_inputs(loaded: list[Loaded]) -> list[list[Loaded]]:
    """Groups of sources: a group of several is interleaved by time, the groups follow each other."""
    for item in loaded:
        item.node = node_of(item.source, item.seen)
        folder, _, name = item.source.name.rpartition("/")
        item.chain = (folder, rotation_of(name)[0])
    chains: dict[tuple[str, str], list[Loaded]] = {}
    for item in sorted(loaded, key=lambda x: (x.chain, -x.source.rotation, x.source.name)):
        chains.setdefault(item.chain, []).append(item)
    ordered = sorted(chains.values(), key=lambda chain: (*_start(chain[0]), chain[0].node or "", chain[0].chain))
    _estimate_skews(ordered)
    groups: list[list[list[Loaded]]] = []
    for chain in ordered:
        host = next((group for group in groups if any(_together(chain, other) for other in group)), None)
        if host is None:
            groups.append([chain])
        else:
            host.append(chain)
    return [[item for chain in group for item in chain] for group in groups]


def _start(item: Loaded) -> tuple[int, float]:
    first = item.span()[0]
    return (1, 0.0) if first != first else (0, first)


def _together(one: list[Loaded], other: list[Loaded]) -> bool:
    """Whether two inputs show one incident from two sides: overlapping times, and different nodes or ranks."""
    a, b = _range(one), _range(other)
    if not (a[0] <= b[1] + 1 and b[0] <= a[1] + 1):
        return False
    if one[0].node and other[0].node:
        return one[0].node != other[0].node
    mine, theirs = _ranks(one), _ranks(other)
    return bool(mine and theirs and not mine & theirs)


def _range(chain: list[Loaded]) -> tuple[float, float]:
    spans = [s for s in (item.span() for item in chain) if s[0] == s[0]]
    return (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else (float("nan"), float("nan"))


def _ranks(chain: list[Loaded]) -> set[object]:
    return {rank for item in chain for rank in item.seen.ranks}


def _estimate_skews(chains: list[list[Loaded]]) -> None:
    """Set `skew` of every node but the reference (the lowest node) from the first shared event of each."""
    marks = {}
    for chain in chains:
        node = chain[0].node
        if node and node not in marks:
            when = _shared_event(chain)
            if when is not None:
                marks[node] = when
    if len(marks) < 2:
        return
    reference = marks[min(marks, key=lambda n: (len(n), n))]
    for chain in chains:
        when = _shared_event(chain) if chain[0].node else None
        if when is None:
            continue
        skew = when - reference
        # More than a day apart is another launch, not a wrong clock.
        if abs(skew) < 86_400:
            for item in chain:
                item.skew = round(skew, 3)


def _shared_event(chain: list[Loaded]) -> float | None:
    for item in chain:
        wanted = [
            i
            for i, (kind, text) in enumerate(item.seen.shapes)
            if kind == "stage-mark" and text.startswith(SHARED_EVENTS)
        ]
        rows = np.flatnonzero(np.isin(item.seen.rows.shape, wanted))
        times = item.seen.rows.time[rows]
        times = times[~np.isnan(times)]
        if len(times):
            return float(times[0])
    return None


def interleave(group: list[Loaded]) -> tuple[Array, Array]:
    """Order of the rows of a group: number of the source within the group and row within the source.

    Each source keeps its own order; between sources the (corrected) time decides, ties go to the earlier source."""
    which = np.concatenate([np.full(len(x.seen.rows.line), i, np.int64) for i, x in enumerate(group)])
    local = np.concatenate([np.arange(len(x.seen.rows.line)) for x in group])
    if len(group) == 1:
        return which, local
    keys = []
    high: dict[tuple[str, str], float] = {}
    for item in group:
        time = item.seen.rows.time - _shift(item)
        time = np.where(np.isnan(time), -np.inf, time)
        if len(time):
            time = np.maximum.accumulate(np.maximum(time, high.get(item.chain, -np.inf)))
            high[item.chain] = float(time[-1])
        keys.append(time)
    order = np.lexsort((local, which, np.concatenate(keys)))
    return which[order], local[order]


def _shift(item: Loaded) -> float:
    return item.skew if item.skew is not None and abs(item.skew) >= SKEW_FLOOR else 0.0


def corrected(item: Loaded) -> Array:
    """Times of the rows on the reference clock."""
    return item.seen.rows.time - _shift(item)


def correction(item: Loaded) -> float:
    """Seconds taken off this source's clock."""
    return _shift(item)
