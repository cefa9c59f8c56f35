"""Ranks over time as positions on a drawing: percent from the left, so that it fits every screen."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median

from forensics.frozen import frozen
from forensics.schema.launch import STAGES
from forensics.schema.report import LaneInfo, LaunchInfo, TimelineInfo

_TICK_GAP = 11.0
"""Percent between two labels; `_NARROW_GAP` where the screen is a phone's."""
_NARROW_GAP = 30.0
_BASE = 0.08
"""Share of the widest part that the narrowest one gets at least."""


@frozen
class Bar:
    """A stretch of one lane: `kind` is a stage, `silent` (after the rank's last line) or `gap` (a silence)."""

    kind: str
    x: float
    width: float
    label: str


@frozen
class Mark:
    """A failure on a lane."""

    role: str
    x: float
    label: str


@frozen
class Lane:
    """One row of the drawing. `note` says in words what the row shows; `state` is failed, reporter, suspect, missing
    or empty."""

    name: str
    state: str
    note: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]


@frozen
class Tick:
    x: float
    label: str
    strong: bool
    anchor: str


@frozen
class Drawing:
    """All lanes on one scale. `failed` is where the first failure stands (None unknown)."""

    lanes: tuple[Lane, ...]
    ticks: tuple[Tick, ...]
    failed: float | None
    begin: str
    length: str
    even: bool


class Scale:
    """Seconds to percent. Every stretch between two borders has its own scale, so that a start-up of a minute can be
    read beside hours of serving."""

    def __init__(self, borders: Iterable[float]) -> None:
        self.borders = sorted(set(borders)) or [0.0]
        if len(self.borders) == 1:
            self.borders.append(self.borders[0] + 1.0)
        lengths = [b - a for a, b in pairwise(self.borders)]
        roots = [length**0.4 for length in lengths]
        floor = max(roots) * _BASE
        weights = [max(root, floor) for root in roots]
        total = sum(weights)
        self.places = [0.0]
        for weight in weights:
            self.places.append(self.places[-1] + 100.0 * weight / total)

    def __call__(self, time: float) -> float:
        at = min(max(time, self.borders[0]), self.borders[-1])
        part = min(bisect_right(self.borders, at) - 1, len(self.borders) - 2)
        low, high = self.borders[part], self.borders[part + 1]
        left, right = self.places[part], self.places[part + 1]
        return round(left + (right - left) * (at - low) / (high - low), 2)


def elapsed(seconds: float) -> str:
    """`47 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 10 and seconds != whole else f"{whole} s"
    for big, name, small, rest in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= big:
            left = whole % big // small
            return f"{whole // big} {name} {left} {rest}" if left else f"{whole // big} {name}"
    return f"{whole} s"


def clock(epoch: float) -> str:
    """Seconds since the epoch in the log's own clock, as its date and time."""
    try:
        return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def draw(launch: LaunchInfo) -> Drawing | None:
    """The lanes of a launch; None where the log carries no times."""
    line = launch.timeline
    if line is None or not line.lanes or line.end <= 0:
        return None
    scale = Scale(_borders(line))
    return Drawing(
        lanes=(*(_lane(lane, launch, line, scale) for lane in line.lanes), *_whole(line, scale)),
        ticks=_ticks(line, scale),
        failed=scale(line.failed) if line.failed is not None else None,
        begin=clock(line.begin),
        length=elapsed(line.end),
        even=len(scale.borders) <= 2,
    )


def _borders(line: TimelineInfo) -> list[float]:
    begins: dict[str, list[float]] = {}
    for lane in line.lanes:
        for span in lane.stages:
            begins.setdefault(span.stage, []).append(span.begin)
    inner = [median(times) for times in begins.values()]
    failed = [line.failed] if line.failed is not None else []
    return [0.0, *(t for t in (*inner, *failed) if 0.0 < t < line.end), line.end]


def _ticks(line: TimelineInfo, scale: Scale) -> tuple[Tick, ...]:
    """Labels at the borders that leave room for each other; begin, end and failure come first."""
    strong = [t for t in (line.failed, line.end, 0.0) if t is not None]
    ticks: list[Tick] = []
    for time in (*strong, *scale.borders):
        x = scale(time)
        if all(abs(x - other.x) >= _TICK_GAP for other in ticks):
            anchor = "start" if x < 6 else ("end" if x > 94 else "middle")
            strong_here = time == line.failed or (x in (0.0, 100.0) and not _near(x, line, scale))
            ticks.append(Tick(x, elapsed(time), strong_here, anchor))
    return tuple(sorted(ticks, key=lambda t: t.x))


def _near(x: float, line: TimelineInfo, scale: Scale) -> bool:
    """Whether a label at `x` would touch that of the failure on a narrow screen."""
    return line.failed is not None and abs(x - scale(line.failed)) < _NARROW_GAP


def _lane(lane: LaneInfo, launch: LaunchInfo, line: TimelineInfo, scale: Scale) -> Lane:
    bars = [*_stage_bars(lane, line, scale), *(_gaps(lane.silences, scale) if lane.stages else ())]
    state = _state(lane.rank, launch)
    return Lane(lane.rank or "no rank", state, _note(lane, state), tuple(bars), _marks(lane, launch, scale))


def _stage_bars(lane: LaneInfo, line: TimelineInfo, scale: Scale) -> list[Bar]:
    """Stages up to the rank's last line, then the same stretch pale: nothing more was heard of it."""
    bars = []
    last = lane.last if lane.last is not None else line.end
    for span in lane.stages:
        if span.stage not in STAGES:
            continue
        seen = min(span.end, max(last, span.begin))
        for kind, begin, end in ((span.stage, span.begin, seen), (f"{span.stage} silent", seen, span.end)):
            x, width = scale(begin), scale(end) - scale(begin)
            if width > 0:
                silent = ", no line of this rank any more" if "silent" in kind else ""
                label = f"{span.stage}: {elapsed(begin)} to {elapsed(end)}{silent}"
                bars.append(Bar(kind, x, round(width, 2), label))
    return bars


def _whole(line: TimelineInfo, scale: Scale) -> list[Lane]:
    """A row of its own for the silences of the whole log."""
    gaps = tuple(_gaps(line.silences, scale))
    if not gaps:
        return []
    return [Lane("whole log", "whole", "; ".join(gap.label for gap in gaps), gaps, ())]


def _gaps(silences: Iterable[tuple[float, float]], scale: Scale) -> list[Bar]:
    gaps = []
    for begin, end in silences:
        x, width = scale(begin), scale(end) - scale(begin)
        if width > 0:
            label = f"silence of {elapsed(end - begin)}, from {elapsed(begin)} to {elapsed(end)}"
            gaps.append(Bar("gap", x, round(width, 2), label))
    return gaps


def _marks(lane: LaneInfo, launch: LaunchInfo, scale: Scale) -> tuple[Mark, ...]:
    """Consequences first, so that the first failure is drawn on top."""
    first = launch.first_failure.failure if launch.first_failure else None
    marks = []
    for mark in lane.marks:
        if mark.time is None or mark.role == "advice":
            continue
        role = "first" if mark.failure == first else mark.role
        words = {"first": "first failure", "root": "failure", "cascade": "consequence", "teardown": "teardown"}[role]
        marks.append(Mark(role, scale(mark.time), f"{words}, line {mark.line}, at {elapsed(mark.time)}"))
    order = {"teardown": 0, "cascade": 1, "root": 2, "first": 3}
    unique = {(m.role, m.x): m for m in reversed(marks)}
    return tuple(sorted(unique.values(), key=lambda m: (order[m.role], m.x)))


def _state(rank: str, launch: LaunchInfo) -> str:
    first = launch.first_failure
    if rank and rank in launch.ranks.missing:
        return "missing"
    if first is None or not rank:
        return ""
    if rank == first.rank:
        return "failed"
    return "suspect" if rank in first.suspect_ranks else ""


def _note(lane: LaneInfo, state: str) -> str:
    if state == "missing" or not (lane.stages or lane.marks):
        return "no line of this rank in the log"
    reached = f"reached {lane.stages[-1].stage}" if lane.stages else "lines that carry no rank"
    words = {"failed": "first failure", "suspect": "suspect"}.get(state, "")
    last = f"last line at {elapsed(lane.last)}" if lane.last is not None else ""
    failed = f"{len(lane.marks)} kinds of failure" if len(lane.marks) > 1 else ("one failure" if lane.marks else "")
    return ", ".join(part for part in (reached, words, failed, last) if part)
