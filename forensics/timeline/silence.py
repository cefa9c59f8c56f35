"""Silences: gaps that are long against the launch's own rhythm."""

from __future__ import annotations

import numpy as np

from forensics.engine.table import EventTable
from forensics.schema.rank import Rank
from forensics.timeline.lookup import Rows
from forensics.timeline.stages import series_inside

FLOOR_S = 20.0
"""No silence below this: sglang's own shortest alarm (a health check) waits twenty seconds."""
RHYTHM = 10.0
"""A gap counts when it is this many times the 95th percentile of the gaps."""
MAX_SILENCES = 64

Silence = tuple[Rank | None, float, float]


def find_silences(table: EventTable, inside: Rows) -> tuple[Silence, ...]:
    """Silences of the whole launch (rank None) and of single ranks, in order of their start."""
    times, ranks = _stamped(table, inside)
    if len(times) < 2:
        return ()
    found = [(None, a, b) for a, b in gaps(times)]
    last = float(times.max())
    overall: list[Silence] = list(found)
    if len(np.unique(ranks)) > 2:
        for index in np.unique(ranks[ranks >= 0]).tolist():
            own = np.append(times[ranks == index], last)
            for a, b in gaps(own):
                if not any(a >= s[1] - 1.0 and b <= s[2] + 1.0 for s in found):
                    overall.append((table.ranks[index], a, b))
    overall.sort(key=lambda s: (s[1], s[2], str(s[0] or "")))
    return tuple(overall[:MAX_SILENCES])


def gaps(times: np.ndarray) -> list[tuple[float, float]]:
    """Gaps above the threshold in a list of times (seconds), oldest first."""
    ordered = np.sort(times[~np.isnan(times)])
    if len(ordered) < 2:
        return []
    steps = np.diff(ordered)
    limit = threshold(steps)
    at = np.flatnonzero(steps > limit)
    return [(float(ordered[i]), float(ordered[i + 1])) for i in at.tolist()]


def threshold(steps: np.ndarray) -> float:
    """The shortest gap (seconds) that counts as silence for this rhythm."""
    moving = steps[steps > 0]
    if not len(moving):
        return FLOOR_S
    return max(FLOOR_S, RHYTHM * float(np.median(moving)))


def _stamped(table: EventTable, inside: Rows) -> tuple[np.ndarray, np.ndarray]:
    stamped = inside[(table.flags[inside] & 1) > 0]
    times, ranks = [table.time[stamped]], [table.rank[stamped]]
    for series in table.series.values():
        mask = series_inside(series, table, inside)
        if mask.any():
            times.append(series.time[mask])
            ranks.append(series.rank[mask])
    joined, who = np.concatenate(times), np.concatenate(ranks)
    known = ~np.isnan(joined)
    return joined[known], who[known]
