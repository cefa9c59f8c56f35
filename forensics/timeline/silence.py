"""Silences: gaps that are long against the launch's own rhythm."""

from __future__ import annotations

import numpy as np

from forensics.engine.table import EventTable
from forensics.schema.rank import Rank
from forensics.timeline.lookup import Rows, distinct
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
MAX_RANKS = 256
"""Ranks that are compared with each other; in a log of more, only silences of the whole launch are told."""

Silence = tuple[Rank | None, float, float]


def find_silences(table: EventTable, inside: Rows) -> tuple[Silence, ...]:
    """Silences of the whole launch (rank None) and of single ranks, in order of their start.

    Most lines are printed by the first rank of a replica only. So a rank's silence counts only where ranks of its
    own sort (those that print batches, or those that do not) went on talking meanwhile.
    """
    times, ranks, batch = _stamped(table, inside)
    if len(times) < 2:
        return ()
    found: list[Silence] = [(None, a, b) for a, b in gaps(times)]
    whole = [(a, b) for _, a, b in found]
    limit = threshold(np.diff(np.sort(times)))
    last = float(times.max())
    known = distinct(ranks[ranks >= 0])
    if len(known) > MAX_RANKS:
        known = []
    talkers = set(distinct(ranks[batch & (ranks >= 0)]))
    own = {index: np.sort(times[ranks == index]) for index in known}
    for index in known if len(known) > 1 else []:
        peers = [own[p] for p in known if p != index and (p in talkers) == (index in talkers)]
        quiet = gaps(np.append(own[index], last), limit)
        for (a, b), alone in zip(quiet, _alone(quiet, peers), strict=True):
            if any(min(b, y) - max(a, x) >= SHARED * (b - a) for x, y in whole):
                continue
            if alone or (not peers and index in talkers):
                found.append((table.ranks[index], a, b))
    found.sort(key=lambda s: (s[1], s[2], str(s[0] or "")))
    return tuple(found[:MAX_SILENCES])


def _alone(quiet: list[tuple[float, float]], peers: list[np.ndarray]) -> list[bool]:
    """Of each gap, whether at least half of the peers spoke strictly inside it."""
    if not peers or not quiet:
        return [False] * len(quiet)
    low, high = np.array(quiet).T
    spoke = sum((np.searchsorted(p, low, "right") < np.searchsorted(p, high, "left")).astype(np.int64) for p in peers)
    return [bool(enough) for enough in 2 * np.asarray(spoke) >= len(peers)]


def gaps(times: np.ndarray, limit: float | None = None) -> list[tuple[float, float]]:
    """Gaps above a limit (default: the threshold of their own rhythm) in a list of times (seconds), oldest first."""
    ordered = np.sort(times[~np.isnan(times)])
    if len(ordered) < 2:
        return []
    steps = np.diff(ordered)
    limit = threshold(steps) if limit is None else limit
    at = np.flatnonzero(steps > limit)
    return [(float(ordered[i]), float(ordered[i + 1])) for i in at.tolist()]


def threshold(steps: np.ndarray) -> float:
    """The shortest gap (seconds) that counts as silence for this rhythm."""
    moving = np.sort(steps[steps > 0])
    if len(moving) < FEW:
        return FLOOR_S
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
