"""The launches inside the input: rows, stages, ranks, facts and version of each, before any failure is looked at."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np

from forensics.engine.table import EventTable, Series
from forensics.frozen import frozen
from forensics.schema.block import Block
from forensics.schema.launch import Launch, StageMark
from forensics.schema.options import Options
from forensics.schema.rank import Rank
from forensics.timeline import ranks, silence, stages
from forensics.timeline.facts import collect_facts
from forensics.timeline.facts_private import without_secrets
from forensics.timeline.lookup import Rows, distinct
from forensics.timeline.stages import ORDER
from forensics.timeline.starts import Start, command_rows, cuts, find_starts, usage_rows
from forensics.timeline.version import infer_version
from forensics.timeline.window import in_window

_OVERLAP_S = 900.0


@frozen
class _Part:
    """A stretch of one input that belongs to one launch."""

    source: int
    rows: Rows
    starts: tuple[Start, ...]
    lines: tuple[int, int]

    def span(self, table: EventTable) -> tuple[float, float] | None:
        times = table.time[self.rows]
        times = times[~np.isnan(times)]
        return (float(times.min()), float(times.max())) if len(times) else None


OLDEST, NEWEST = 20, 100
"""Launches of an input that are described: the first ones, the latest ones, and the one asked for. Launches are
compared with each other, so that their cost grows with the square of their number."""


LAUNCHES = "launches"
"""Key of the table's memo under which the number of all launches stands."""


def find_launches(table: EventTable, blocks: tuple[Block, ...], options: Options) -> tuple[Launch, ...]:
    """Separate the launches of all inputs, oldest first, and describe how far each got.

    Failures are added later (`find_failures`). Nothing at all in the input gives no launch.
    """
    parts: list[_Part] = []
    for source in range(len(table.sources)):
        rows = np.flatnonzero(table.source == source).astype(np.int64)
        rows = in_window(table, rows, options)
        if len(rows):
            parts.extend(_parts(table, blocks, source, rows))
    groups = _grouped(table, parts)
    table.memo[LAUNCHES] = len(groups)
    asked = int(options.launch) if options.launch.isdigit() else 0
    return tuple(
        _launch(table, blocks, options, group, f"L{place}")
        for place, group in enumerate(groups, start=1)
        if place <= OLDEST or place > len(groups) - NEWEST or place == asked
    )


def _parts(table: EventTable, blocks: tuple[Block, ...], source: int, rows: Rows) -> list[_Part]:
    edges = [int(rows[0]), *cuts(table, rows, blocks), int(rows[-1]) + 1]
    whole = bool((table.source == source).sum() == len(rows))
    first = 1 if whole else int(table.line[rows[0]])
    final = max(table.infos[source].lines, 1) if whole else int(table.line[rows[-1]])
    parts = []
    for low, high in pairwise(edges):
        begin, end = np.searchsorted(rows, (low, high))
        inside = rows[begin:end]
        # Hot lines are no rows: a launch reaches up to the line before the next one.
        after = rows[end] if high <= int(rows[-1]) else None
        last = int(table.line[after]) - 1 if after is not None else final
        if len(inside) and not _only_env(table, inside):
            parts.append(_Part(source, inside, tuple(find_starts(table, inside)), (first, last)))
        first = last + 1
    return parts


def _only_env(table: EventTable, rows: Rows) -> bool:
    """An environment report alone is no launch."""
    kinds = {table.shapes[i].kind for i in distinct(table.shape[rows])}
    return bool(kinds & {"env-report", "nvidia-smi"}) and kinds <= _AROUND_ENV


_AROUND_ENV = frozenset({"env-report", "nvidia-smi", "blank", "shell", "python-warning", "text", "command"})


def _grouped(table: EventTable, parts: list[_Part]) -> list[list[_Part]]:
    """Join parts of different inputs that are one launch: other nodes and other services at the same time. Launches
    that are not described are counted, not joined."""
    single = len(table.sources) == 1
    total = Counter(part.source for part in parts)
    groups: list[list[_Part]] = []
    open_: list[list[_Part]] = []
    seen: Counter[int] = Counter()
    for part in parts:
        seen[part.source] += 1
        if single or OLDEST < seen[part.source] <= total[part.source] - NEWEST:
            groups.append([part])
            continue
        home = next((g for g in open_ if _together(table, g, part)), None)
        if home is None:
            groups.append([part])
            open_.append(groups[-1])
        else:
            home.append(part)
    return sorted(groups, key=lambda g: min(int(p.rows[0]) for p in g))


def _together(table: EventTable, group: list[_Part], part: _Part) -> bool:
    if any(p.source == part.source for p in group):
        return False
    mine = part.span(table)
    spans = [s for s in (p.span(table) for p in group) if s is not None]
    if mine is None or not spans:
        return False
    low, high = min(s[0] for s in spans), max(s[1] for s in spans)
    if mine[0] > high + 60.0 or mine[1] < low - 60.0:
        return False
    held = [s for p in group for s in p.starts]
    if not held or not part.starts:
        return True
    new = part.starts[0]
    if abs((new.time or 0.0) - (held[0].time or 0.0)) > _OVERLAP_S:
        return False
    nodes = {s.field("node_rank", "0") for s in held}
    if new.field("nnodes", "1") == held[0].field("nnodes", "1") not in ("", "1"):
        return new.field("node_rank", "0") not in nodes
    return new.field("disaggregation_mode", "null") != "null" and held[0].field("disaggregation_mode", "null") != "null"


def _launch(table: EventTable, blocks: tuple[Block, ...], options: Options, group: list[_Part], name: str) -> Launch:
    rows = np.sort(np.concatenate([p.rows for p in group]))
    starts = [s for p in group for s in p.starts]
    marks = stages.find_marks(table, rows)
    facts = collect_facts(table, rows, blocks, tuple(str(p) for p in options.env))
    if options.mask:
        facts = without_secrets(facts)
    truncated = not starts and not len(command_rows(table, rows)) and not len(usage_rows(table, rows))
    truncated = truncated and not _from_top(table, rows, marks)
    nodes = frozenset(int(s.field("node_rank", "0")) for s in starts if s.field("node_rank", "0").isdigit())
    view = ranks.view(table, rows, ranks.with_printed(facts, starts), marks, truncated, nodes)
    launch = Launch(
        id=name,
        rows=rows,
        sources=tuple(sorted({p.source for p in group})),
        lines=group[0].lines,
        reached=_reached(table, rows, marks, truncated),
        ended="log-ends",
        ended_row=int(rows[-1]),
        ended_why="",
        expected=view.expected,
        seen=view.seen,
        missing=view.missing,
        stages=stages.rank_stages(marks),
        marks=marks,
        facts=facts,
        version=infer_version(table, rows, facts),
        progress=stages.last_progress(table, rows),
        silences=silence.find_silences(table, rows),
        notes=view.notes,
        truncated_head=truncated,
        services=_services(starts),
    )
    return replace(launch, stages=_with_serving(launch))


_HEAD = 40
"""Rows in which a log would show that its server was at work before."""
_BEGUN = "Scheduler hit an exception"
"""What only a scheduler says, and it prints marks of its start-up before."""


def _from_top(table: EventTable, rows: Rows, marks: tuple[StageMark, ...]) -> bool:
    """Without server_args the head may still be whole: nothing yet speaks of a server that was up before."""
    if table.kind(int(rows[0])) in ("frame", "frame-source", "exception", "chain", "sigquit", "pg-watchdog"):
        return False
    early = int(rows[min(len(rows) - 1, 3)])
    if any(s.row.size and _busy(s, table, rows) and int(s.row[0]) <= early for s in table.series.values()):
        return False
    if marks:
        return ORDER[marks[0].stage] <= ORDER["init"]
    busy = any(_busy(s, table, rows) for s in table.series.values())
    ranked = (table.rank[rows[:_HEAD]] >= 0).any()
    return not busy and not ranked and not any(_BEGUN in table.text(int(row)) for row in rows[:_HEAD])


def _busy(series: Series, table: EventTable, rows: Rows) -> bool:
    """Whether batch lines stand between the rows."""
    return len(series.row[stages.hot_lines(series, table, rows)]) > 0


def _reached(table: EventTable, rows: Rows, marks: tuple[StageMark, ...], truncated: bool) -> str:
    reached = stages.furthest(marks)
    if not truncated:
        return reached
    busy = [s for s in table.series.values() if _busy(s, table, rows)]
    return "serving" if busy and reached == "config" else reached


def _with_serving(launch: Launch) -> dict[Rank, str]:
    """Once the server is ready every rank that came up serves."""
    if launch.reached != "serving":
        return launch.stages
    return dict.fromkeys(launch.seen, "serving")


def _services(starts: list[Start]) -> tuple[str, ...]:
    names = [s.field("disaggregation_mode") for s in starts if s.field("disaggregation_mode") in ("prefill", "decode")]
    names += [s.service for s in starts if s.service]
    return tuple(dict.fromkeys(names))
