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
BLOCK = 1 << 16
"""Points looked at together, for the memory."""

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
                times=_seconds(times),
                values=_five_digits(kept),
            )
        )
    return out


def _seconds(times: Floats) -> list[float]:
    """Rounded to hundredths; most logs count whole seconds."""
    times = np.where(times > 0.0, times, 0.0)
    if (times == np.rint(times)).all():
        return list(times.tolist())
    return [round(t, 2) for t in times.tolist()]


def _five_digits(values: Floats) -> list[float]:
    """Rounded to five significant digits; what has no more is left as it is."""
    whole = (values == np.rint(values)) & (np.abs(values) < 1e5)
    short = (values == np.rint(values * 1e4) / 1e4) & (np.abs(values) < 10)
    known = (whole | short).tolist()
    return [v if k else float(f"{v:.5g}") for v, k in zip(values.tolist(), known, strict=True)]


def thinned(times: Floats, values: Floats, room: int) -> tuple[Floats, Floats]:
    """At most about `room` points: the lowest and the highest of each of `room`/2 equal runs of points, in order."""
    if len(values) <= room:
        return times, values
    borders = np.linspace(0, len(values), room // 2 + 1).astype(np.int64)
    low, high = borders[:-1], borders[1:]
    width = int((high - low).max())
    at, step = [0, len(values) - 1], max(1, BLOCK // width)
    for n in range(0, len(low), step):
        first, last = low[n : n + step, None], high[n : n + step, None] - 1
        # Runs differ in length by one: the last point of a shorter one is looked at twice.
        seen = values[np.minimum(first + np.arange(width), last)]
        at += [*(first[:, 0] + seen.argmin(1)).tolist(), *(first[:, 0] + seen.argmax(1)).tolist()]
    kept = sorted(set(at))
    return times[kept], values[kept]
