"""Batch metrics of a launch, thinned for a picture: few points, and the extremes stay."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable, Series
from forensics.schema.launch import Launch
from forensics.schema.report import SeriesInfo
from forensics.timeline.lookup import distinct
from forensics.timeline.stages import hot_lines

METRICS = (
    ("decode", "throughput"),
    ("decode", "token_usage"),
    ("decode", "running"),
    ("decode", "queue"),
    ("decode", "accept_len"),
    ("prefill", "new_tokens"),
    ("prefill", "token_usage"),
    ("prefill", "queue"),
)
MAX_POINTS = 200
"""Points of one metric and rank."""
ALL_POINTS = 2400
"""Points of one metric over all ranks; with many ranks each gets fewer."""
MIN_POINTS = 24

Floats = npt.NDArray[np.float64]


def batch_series(table: EventTable, launch: Launch, begin: float) -> list[SeriesInfo]:
    """The metrics that a report draws, per rank; times are seconds after `begin` (seconds since the epoch)."""
    found = []
    for kind, metric in METRICS:
        series = table.series.get(kind)
        if series is not None and metric in series.columns:
            found += _of_metric(series, metric, table, launch, begin)
    return found


def _of_metric(series: Series, metric: str, table: EventTable, launch: Launch, begin: float) -> list[SeriesInfo]:
    inside = hot_lines(series, table, launch.rows)
    values, stamps, who = series.columns[metric][inside], series.time[inside], series.rank[inside]
    usable = ~np.isnan(values) & ~np.isnan(stamps)
    ranks = distinct(who[usable])
    room = max(MIN_POINTS, min(MAX_POINTS, ALL_POINTS // max(1, len(ranks))))
    out = []
    for index in ranks:
        mine = usable & (who == index)
        times, kept = thinned(stamps[mine] - begin, values[mine], room)
        out.append(
            SeriesInfo(
                kind=series.kind,
                metric=metric,
                rank=str(table.ranks[index]) if index >= 0 else "",
                points=int(mine.sum()),
                times=[round(max(0.0, t), 2) for t in times.tolist()],
                values=[float(f"{v:.5g}") for v in kept.tolist()],
            )
        )
    return out


def thinned(times: Floats, values: Floats, room: int) -> tuple[Floats, Floats]:
    """At most about `room` points: the lowest and the highest of each of `room`/2 equal runs of points, in order."""
    if len(values) <= room:
        return times, values
    borders = np.linspace(0, len(values), room // 2 + 1).astype(np.int64)
    keep: set[int] = {0, len(values) - 1}
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        keep.add(low + int(values[low:high].argmin()))
        keep.add(low + int(values[low:high].argmax()))
    at = np.array(sorted(keep), np.int64)
    return times[at], values[at]
