"""How far start-up got: marks, the stage of every rank, and progress bars.

Which line proves what is stated by sglang's own messages from 0.2 (`Init nccl begin.`) to 0.5.23
(`Init parallel begin.`, `Capture target decode CUDA graph begin.`).
"""

from __future__ import annotations

import re
from bisect import bisect_right

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable, Series
from forensics.schema.launch import STAGES, StageMark
from forensics.schema.rank import Rank
from forensics.timeline.firsts import firsts
from forensics.timeline.lookup import Rows, distinct, rows_of_shapes, within
from forensics.timeline.sieve import Needle, needle

MARK_KINDS = frozenset(
    {"stage-mark", "uvicorn", "progress", "info", "message", "text", "gloo", "debug", "nccl", "warning"}
)

MARKS: tuple[tuple[Needle, str, str], ...] = tuple(
    (needle(pattern), stage, edge)
    for pattern, stage, edge in (
        (r"server is fired up and ready to roll", "serving", "begin"),
        (r"^Benchmark \.\.\.", "serving", "begin"),
        (
            r"^(?:INFO: +)?(?:Started server process|Waiting for application startup|Application startup complete"
            r"|Uvicorn running on)",
            "warmup",
            "begin",
        ),
        (
            r"^(?:Engine startup timings|Start of (?:pd|prefill|decode) disaggregation warmup|Warmup \.\.\.)",
            "warmup",
            "begin",
        ),
        (r"^max_total_num_tokens=", "warmup", "begin"),
        (r"^Capture [\w ]*graph end", "graph-capture", "end"),
        (r"^Capture [\w ]*graph (?:begin|bs|num)", "graph-capture", "begin"),
        (r"^Capturing (?:batches|num tokens|cuda graph)", "graph-capture", "begin"),
        (r"\bCapturing (?:batches|num tokens) \(", "graph-capture", "begin"),
        (r"^Memory pool end", "kv-pool", "end"),
        (
            r"^(?:KV Cache is allocated|Mamba Cache is allocated|Using KV cache dtype|SWAKVPool mem usage)",
            "kv-pool",
            "begin",
        ),
        (r"^(?:Load weight end|Loading model weights took)", "load", "end"),
        (
            r"^(?:Load weight begin|Loading pipeline modules|Loading required components|Starting to load model)",
            "load",
            "begin",
        ),
        (r"^(?:Multi-thread loading shards|Loading [\w.\- ]*shards)\b.*%", "load", "begin"),
        (r"^Init (?:torch distributed|nccl|parallel) ends", "init", "end"),
        (
            r"^(?:Init (?:torch distributed|nccl|parallel) begin|sglang is using nccl|Scheduler bind at endpoint)",
            "init",
            "begin",
        ),
    )
)
"""First match decides. `warmup` begins where the pools stand and the HTTP server comes up."""

ORDER = {name: place for place, name in enumerate(STAGES)}
MANY_MARKS = 20_000
"""Marks of one launch that are all kept."""
_PERCENT = re.compile(r"(\d{1,3})%")


Mask = npt.NDArray[np.bool_]


def mark_of(text: str) -> tuple[str, str] | None:
    """Stage and edge that a message proves, or None."""
    for wanted, stage, edge in MARKS:
        if wanted.pattern.search(text):
            return stage, edge
    return None


def near_marks(table: EventTable) -> list[int]:
    """Ids (ascending) of the shapes that may prove a stage."""
    first = firsts(table)
    return sorted({shape for wanted, _, _ in MARKS for shape in first.near(wanted)})


def _marks_of_shapes(table: EventTable) -> dict[int, tuple[str, str]]:
    """Stage and edge that the shapes prove."""
    found = table.memo.get("marks")
    if not isinstance(found, dict):
        first = firsts(table)
        wanted = [s for s in near_marks(table) if table.shapes[s].kind in MARK_KINDS]
        marks = ((shape, mark_of(first.text(shape))) for shape in wanted)
        found = table.memo["marks"] = {shape: mark for shape, mark in marks if mark is not None}
    return found


def find_marks(table: EventTable, inside: Rows) -> tuple[StageMark, ...]:
    """Stage marks among the rows `inside`, in row order. A progress bar counts once: where it first appears."""
    found = _marks_of_shapes(table)
    bars = [shape for shape in found if table.shapes[shape].kind == "progress"]
    plain = within(rows_of_shapes(table, found.keys() - bars), inside)
    rows = np.sort(np.concatenate([plain, _first_bars(table, within(rows_of_shapes(table, bars), inside), found)]))
    marks: list[StageMark] = []
    for row in _few(table, rows).tolist():
        stage, edge = found[int(table.shape[row])]
        marks.append(StageMark(stage, edge, table.rank_of(row), row, table.time_of(row)))
    return _with_first_decode(table, inside, tuple(marks))


def _few(table: EventTable, rows: Rows) -> Rows:
    """Of more marks than any server prints, the first two and the last two of each rank and shape."""
    if len(rows) <= MANY_MARKS:
        return rows
    key = table.shape[rows].astype(np.int64) * (len(table.ranks) + 1) + table.rank[rows] + 1
    order = np.argsort(key, kind="stable")
    same = key[order][2:] == key[order][:-2]
    inside = np.zeros(len(rows), bool)
    inside[2:-2] = same[:-2] & same[2:]
    return rows[np.sort(order[~inside])]


def _first_bars(table: EventTable, rows: Rows, found: dict[int, tuple[str, str]]) -> Rows:
    """The first row of each stage's progress bars in each input."""
    first: dict[tuple[str, int], int] = {}
    shapes, sources = table.shape[rows], table.source[rows]
    for shape in distinct(shapes):
        mine = shapes == shape
        for source in distinct(sources[mine]):
            row = int(rows[int(np.argmax(mine & (sources == source)))])
            key = found[shape][0], source
            first[key] = min(row, first.get(key, row))
    return np.array(sorted(first.values()), dtype=np.int64)


def _with_first_decode(table: EventTable, inside: Rows, marks: tuple[StageMark, ...]) -> tuple[StageMark, ...]:
    """Decode batch lines prove serving where no `ready` line was printed (warm-up skipped, or its request failed; an
    excerpt without its start-up): the start-up request is too short to print one. One rank of a group prints them for
    all."""
    series = table.series.get("decode")
    if series is None or any(m.stage == "serving" for m in marks):
        return marks
    begun = next((m.row for m in marks if m.stage == "warmup"), marks[-1].row if marks else -1)
    first = _first_after(series, hot_lines(series, table, inside), begun)
    if first is None:
        return marks
    time = float(series.time[first])
    row = min(int(series.row[first]), len(table) - 1)
    mark = StageMark("serving", "begin", None, row, None if np.isnan(time) else time)
    return tuple(sorted((*marks, mark), key=lambda m: m.row))


def _first_after(series: Series, held: slice | Mask, row: int) -> int | None:
    """The first of some hot lines that stands after a row."""
    if isinstance(held, slice):
        first = max(held.start, int(np.searchsorted(series.row, row, "right")))
        return first if first < held.stop else None
    at = np.flatnonzero(held & (series.row > row))
    return int(at[0]) if len(at) else None


def rank_stages(marks: tuple[StageMark, ...]) -> dict[Rank, str]:
    """The furthest stage of every rank that prints its label. Lines without a label count for no rank."""
    stages: dict[Rank, str] = {}
    for mark in marks:
        if mark.rank is None:
            continue
        held = stages.get(mark.rank)
        if held is None or ORDER[mark.stage] >= ORDER[held]:
            stages[mark.rank] = mark.stage
    return stages


def furthest(marks: tuple[StageMark, ...], default: str = "config") -> str:
    """The last stage that the launch entered."""
    return max((m.stage for m in marks), key=lambda s: ORDER[s], default=default)


def stage_at(marks: tuple[StageMark, ...], row: int, rank: Rank | None, default: str = "config") -> str:
    """The stage that `rank` was in at `row` (the launch's where the rank is unknown or silent). Once the server is
    ready it stays `serving`."""
    above = marks[: bisect_right(marks, row, key=lambda mark: mark.row)]
    if any(mark.stage == "serving" for mark in above):
        return "serving"
    overall = above[-1].stage if above else default
    if rank is None or overall == "warmup":
        # HTTP lines carry no rank: where the whole launch is past the rank's last own mark, the launch decides.
        return overall
    own = next((mark.stage for mark in reversed(above) if mark.rank == rank), None)
    return own if own is not None and ORDER[own] >= ORDER["init"] else overall


def last_progress(table: EventTable, inside: Rows) -> tuple[str, float] | None:
    """The last progress bar of shard loading or graph capture, as stage and fraction."""
    rows = within(table.rows_of_kind("progress"), inside)
    for row in rows[::-1][:200].tolist():
        text = table.text(row).strip()
        mark = mark_of(text)
        percents = _PERCENT.findall(text)
        if mark is not None and percents:
            return mark[0], int(percents[-1]) / 100.0
    return None


def hot_lines(series: Series, table: EventTable, inside: Rows) -> slice | Mask:
    """Which hot lines stand between the rows of a launch, as an index into the series: one stretch of it where nothing
    of other launches stands between them."""
    if not len(inside):
        return slice(0, 0)
    if len(inside) == len(table):
        return slice(0, len(series.row))
    # A hot line belongs to the launch of the row above it (or below, at the head of the table).
    low, high = int(inside[0]), int(inside[-1])
    if high - low + 1 == len(inside):
        first = int(np.searchsorted(series.row, low, "right")) if low else 0
        return slice(first, int(np.searchsorted(series.row, high + 1, "right")))
    held = np.zeros(len(table) + 1, dtype=bool)
    held[inside + 1] = True
    held[0] = low == 0
    return np.asarray(held[series.row])
