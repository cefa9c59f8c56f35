"""Silences: gaps that are long against the launch's own rhythm."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forensics.engine.table import EventTable
from forensics.schema.rank import Rank
from forensics.timeline.lookup import Rows
from forensics.timeline.stages import hot_lines

FLOOR_S = 20.0
"""No silence below this: sglang's own shortest alarm (a health check) waits twenty seconds."""
RHYTHM = 10.0
"""A gap counts when it is this many times the 95th percentile of the gaps."""
FEW = 4
"""With fewer steps than this there is no rhythm to compare with."""
SHARED = 0.6
"""A rank's silence that lies to this share inside one of the whole launch is that one."""
MAX_SILENCES = 64
MAX_GRID = 1 << 24
"""Seconds times ranks of the largest grid that is looked at instead of sorting times."""
MAX_RANKS = 256
"""Ranks that are compared with each other; in a log of more, only silences of the whole launch are told."""

Silence = tuple[Rank | None, float, float]


class _Gaps(NamedTuple):
    """Gaps: where they begin and end, and the ranks that they are of (-1: the whole launch)."""

    low: np.ndarray
    high: np.ndarray
    ranks: np.ndarray


def find_silences(table: EventTable, inside: Rows) -> tuple[Silence, ...]:
    """Silences of the whole launch (rank None) and of single ranks, in order of their start.

    Most lines are printed by the first rank of a replica only. So a rank's silence counts only where ranks of its
    own sort (those that print batches, or those that do not) went on talking meanwhile.
    """
    times, ranks, batch = _stamped(table, inside)
    if len(times) < 2:
        return ()
    ordered, own = _ordered(times, ranks)
    limit = threshold(np.diff(ordered))
    whole = _above(ordered, limit)
    low, high = np.array(whole).reshape(-1, 2).T
    parts = [_Gaps(low, high, np.full(len(whole), -1))]
    if 1 < len(own) <= MAX_RANKS:
        talkers = set(_present(ranks[batch]))
        for sort in (own.keys() & talkers, own.keys() - talkers):
            peers = {index: own[index] for index in sorted(sort)}
            parts.append(_quiet(peers, float(ordered[-1]), limit, whole, sort <= talkers))
    found = _earliest(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    shown = sorted((a, b, str(table.ranks[i]) if i >= 0 else "", i) for a, b, i in found)[:MAX_SILENCES]
    return tuple((table.ranks[index] if index >= 0 else None, a, b) for a, b, _, index in shown)


def _earliest(low: np.ndarray, high: np.ndarray, ranks: np.ndarray) -> list[tuple[float, float, int]]:
    """The gaps that may be among the first ones, by their begin and end."""
    if len(low) > MAX_SILENCES:
        last = low[np.argsort(low, kind="stable")[MAX_SILENCES - 1]]
        low, high, ranks = low[low <= last], high[low <= last], ranks[low <= last]
    return list(zip(low.tolist(), high.tolist(), ranks.tolist(), strict=True))


def _ordered(times: np.ndarray, ranks: np.ndarray) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """All times in ascending order, and those of each rank. Equal ones may count once: gaps lie between others."""
    known = _present(ranks)
    first = float(times.min())
    span = float(times.max()) - first + 1.0
    if span * len(known) <= min(MAX_GRID, 16 * len(times)) and bool((np.floor(times) == times).all()):
        # Most logs print whole seconds: nothing need be sorted.
        grid = np.zeros((len(known), int(span)), dtype=bool)
        lanes = np.zeros(known[-1] + 2, np.int32)
        lanes[np.array(known) + 1] = np.arange(len(known)) * grid.shape[1]
        grid.reshape(-1)[lanes[ranks + 1] + (times - first).astype(np.int32)] = True
        parts = [np.flatnonzero(row) + first for row in grid]
        return np.flatnonzero(grid.any(axis=0)) + first, _ranked(known, parts)
    # Times are in order in long stretches already, and so are the lines of a rank after it.
    order = np.argsort(times, kind="stable")
    times, ranks = times[order], ranks[order]
    order = np.argsort(ranks, kind="stable")
    cuts = np.searchsorted(ranks[order], known)
    return times, _ranked(known, np.split(times[order], cuts[1:]))


def _ranked(known: list[int], parts: list[np.ndarray]) -> dict[int, np.ndarray]:
    return {index: part for index, part in zip(known, parts, strict=True) if index >= 0}


def _present(ranks: np.ndarray) -> list[int]:
    found: list[int] = (np.flatnonzero(np.bincount(ranks + 1)) - 1).tolist()
    return found


def _quiet(
    peers: dict[int, np.ndarray], last: float, limit: float, whole: list[tuple[float, float]], lone: bool
) -> _Gaps:
    """Gaps of single ranks of one sort, while at least half of the others spoke; of a rank without others of its sort
    only where `lone` says so."""
    found = [_of_rank(index, np.append(own, last), limit) for index, own in peers.items()]
    if not found or (len(peers) == 1 and not lone):
        return _Gaps(np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
    low, high, ranks = (np.concatenate(column) for column in zip(*found, strict=True))
    spoke = np.zeros(len(low), np.int64)
    for own in peers.values():
        # A rank has no line of its own inside its own gap.
        spoke += np.searchsorted(own, low, "right") < np.searchsorted(own, high, "left")
    kept = 2 * spoke >= len(peers) - 1
    for x, y in whole:
        kept &= np.minimum(high, y) - np.maximum(low, x) < SHARED * (high - low)
    return _Gaps(low[kept], high[kept], ranks[kept])


def _of_rank(index: int, ordered: np.ndarray, limit: float) -> _Gaps:
    at = np.flatnonzero(np.diff(ordered) > limit)
    return _Gaps(ordered[at], ordered[at + 1], np.full(len(at), index))


def gaps(times: np.ndarray, limit: float | None = None) -> list[tuple[float, float]]:
    """Gaps above a limit (default: the threshold of their own rhythm) in a list of times (seconds), oldest first."""
    ordered = np.sort(times[~np.isnan(times)])
    return _above(ordered, threshold(np.diff(ordered)) if limit is None else limit)


def _above(ordered: np.ndarray, limit: float) -> list[tuple[float, float]]:
    """Gaps above a limit in ascending times."""
    at = np.flatnonzero(np.diff(ordered) > limit)
    return [(float(ordered[i]), float(ordered[i + 1])) for i in at.tolist()]


def threshold(steps: np.ndarray) -> float:
    """The shortest gap (seconds) that counts as silence for this rhythm."""
    moving = steps[steps > 0]
    if len(moving) < FEW:
        return FLOOR_S
    moving = np.partition(moving, ((len(moving) - 1) // 2, len(moving) // 2))
    middle = (moving[(len(moving) - 1) // 2] + moving[len(moving) // 2]) / 2
    return max(FLOOR_S, RHYTHM * float(middle))


def _stamped(table: EventTable, inside: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    stamped = inside[(table.flags[inside] & 1) > 0]
    times, ranks = [table.time[stamped]], [table.rank[stamped]]
    batch = [np.zeros(len(stamped), dtype=bool)]
    for series in table.series.values():
        part = hot_lines(series, table, inside)
        times.append(series.time[part])
        ranks.append(series.rank[part])
        batch.append(np.ones(len(times[-1]), dtype=bool))
    joined, who, hot = np.concatenate(times), np.concatenate(ranks), np.concatenate(batch)
    known = ~np.isnan(joined)
    return joined[known], who[known], hot[known]
