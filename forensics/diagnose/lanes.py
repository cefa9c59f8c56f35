"""Ranks over time: when each entered its stages, where it failed, where it fell silent."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from forensics.engine.table import STAMPED, EventTable
from forensics.schema.launch import STAGES, Failure, Launch, StageMark
from forensics.schema.rank import Rank
from forensics.schema.report import LaneInfo, LaneMark, StageSpan, TimelineInfo
from forensics.timeline.lookup import distinct
from forensics.timeline.stages import hot_lines

MAX_LANES = 128
"""Ranks drawn; a larger launch is cut (the first failure's ranks are kept)."""
MAX_MARKS = 60
"""Failures marked on one lane."""
NO_RANK = ""
Shown = tuple[Failure, dict[int, int]]
_SHARED = ("warmup", "serving")
"""Stages that a process without rank announces for all of them."""


def timeline(table: EventTable, launch: Launch) -> TimelineInfo | None:
    """The lanes of a launch; None where its lines carry no time."""
    last = _last_times(table, launch)
    start = _start(table, launch)
    if start is None or not last:
        return None
    end = max(last.values())
    first = launch.failure(launch.first_failure)
    failed = table.time_of(first.row) if first else None
    shown = [_shown(failure, table) for failure in launch.failures]
    marks = _marks_by_rank(launch)
    lanes = [_lane(rank, table, launch, shown, marks, (start, end), last) for rank in _ranks(launch)]
    return TimelineInfo(
        begin=round(start, 3),
        end=_after(end, start),
        failed=_after(failed, start) if failed is not None else None,
        lanes=[lane for lane in lanes if lane.rank or lane.marks],
        silences=[(_after(a, start), _after(b, start)) for rank, a, b in launch.silences if rank is None],
    )


def _ranks(launch: Launch) -> list[Rank | None]:
    """Expected ranks, then further ones that were seen, then the lines without rank."""
    named = list(dict.fromkeys((*launch.expected, *launch.seen)))
    first = launch.failure(launch.first_failure)
    if len(named) > MAX_LANES and first is not None:
        wanted = {first.rank, *first.reporters, *first.suspect_ranks}
        named = [*(r for r in named if r in wanted), *(r for r in named if r not in wanted)][:MAX_LANES]
    return [*named[:MAX_LANES], None]


def _lane(
    rank: Rank | None,
    table: EventTable,
    launch: Launch,
    shown: list[Shown],
    marks: dict[Rank | None, list[StageMark]],
    span: tuple[float, float],
    last: dict[Rank | None, float],
) -> LaneInfo:
    own = last.get(rank)
    start, end = span
    return LaneInfo(
        rank=str(rank) if rank else NO_RANK,
        stages=_stages([*marks.get(rank, ()), *marks.get(None, ())], start, end) if own is not None and rank else [],
        marks=_marks(rank, table, shown, start),
        silences=[(_after(a, start), _after(b, start)) for who, a, b in launch.silences if who == rank and rank],
        last=_after(own, start) if own is not None else None,
    )


def _marks_by_rank(launch: Launch) -> dict[Rank | None, list[StageMark]]:
    """The timed marks of every rank; under None those that a process without rank announces for all."""
    found: dict[Rank | None, list[StageMark]] = {}
    for mark in launch.marks:
        if mark.time is not None and (mark.rank is not None or mark.stage in _SHARED):
            found.setdefault(mark.rank, []).append(mark)
    return found


def _stages(marks: list[StageMark], start: float, end: float) -> list[StageSpan]:
    """Spans from one stage's first mark to the next one's. Going back (a draft model loads after the target) does not
    count."""
    entered: list[tuple[float, str]] = [(start, STAGES[0])]
    for mark in sorted(marks, key=lambda m: m.row):
        if mark.time is None:
            continue
        if STAGES.index(mark.stage) > STAGES.index(entered[-1][1]):
            entered.append((max(mark.time, entered[-1][0]), mark.stage))
    ends = [*(b[0] for _, b in pairwise(entered)), max(end, entered[-1][0])]
    return [
        StageSpan(stage=stage, begin=_after(at, start), end=_after(until, start))
        for (at, stage), until in zip(entered, ends, strict=True)
    ]


def _shown(failure: Failure, table: EventTable) -> Shown:
    """A failure with the first row that each rank (by index, -1 none) has of it."""
    rows = sorted({failure.row, *failure.rows}, reverse=True)
    return failure, dict(zip(table.rank[rows].tolist(), rows, strict=True))  # of a rank's rows the last one stays


def _marks(rank: Rank | None, table: EventTable, shown: list[Shown], start: float) -> list[LaneMark]:
    """The first line of every failure on this lane, in order of rows."""
    wanted = table.ranks.index(rank) if rank in table.ranks else -1
    if rank is not None and wanted < 0:
        return []
    marks = []
    for failure, rows in shown:
        row = rows.get(wanted)
        if row is None or (rank is None and table.rank_of(failure.row) is not None):
            continue
        time = table.time_of(row)
        line = int(table.line[row])
        at = _after(time, start) if time is not None else None
        marks.append(LaneMark(failure=failure.id, role=failure.role, line=line, time=at))
    return sorted(marks, key=lambda m: (m.line, m.failure))[:MAX_MARKS]


def _start(table: EventTable, launch: Launch) -> float | None:
    times = table.time[launch.rows]
    known = times[~np.isnan(times)]
    return float(known.min()) if len(known) else None


def _last_times(table: EventTable, launch: Launch) -> dict[Rank | None, float]:
    """Time of the last stamped line of every rank, hot lines included."""
    stamped = launch.rows[(table.flags[launch.rows] & STAMPED) > 0]
    found: dict[Rank | None, float] = {}
    _latest(found, table.ranks, table.rank[stamped], table.time[stamped])
    for series in table.series.values():
        inside = hot_lines(series, table, launch.rows)
        _latest(found, table.ranks, series.rank[inside], series.time[inside])
    return found


def _latest(
    found: dict[Rank | None, float],
    names: tuple[Rank, ...],
    ranks: np.ndarray[tuple[int], np.dtype[np.int16]],
    times: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> None:
    known = ~np.isnan(times)
    if not known.all():
        ranks, times = ranks[known], times[known]
    last = np.full(len(names) + 1, -np.inf)  # lines without rank have the last place, -1
    if (times[1:] >= times[:-1]).all():
        last[ranks] = times  # of a rank's times the last one stays
    else:
        np.maximum.at(last, ranks, times)
    for index in distinct(ranks):
        rank, latest = names[index] if index >= 0 else None, float(last[index])
        found[rank] = max(latest, found.get(rank, latest))


def _after(time: float, start: float) -> float:
    return round(max(0.0, time - start), 3)
