"""A launch held against a good run that the caller names: stages, facts, new messages, metric shifts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from forensics.diagnose.controls import equal
from forensics.diagnose.convert import plain
from forensics.diagnose.places import Places
from forensics.diagnose.similar import shape
from forensics.diagnose.variables import NEUTRAL, NEUTRAL_ENV
from forensics.engine.table import Series
from forensics.rulebook.case import Case
from forensics.schema.launch import STAGES, Launch
from forensics.schema.report import BaselineInfo, DifferenceInfo, MetricShift, Where
from forensics.timeline.stages import hot_lines

MAX_MESSAGES = 30
MAX_FACTS = 60
METRICS = ("throughput", "running", "queue", "token_usage", "accept_len", "cuda_graph", "cached_tokens")
COMPARED = frozenset({"warning", "error", "message", "info", "exception", "cuda-assert", "pg-watchdog", "nccl", "exit",
                      "sigquit", "python-warning", "stage-mark", "cxx-abort", "transport"})  # fmt: skip
"""Kinds whose shapes are compared; frames, bars, dumps and access lines differ between any two runs."""
CALM = frozenset({"message", "info", "stage-mark", "transport"})
SKIPPED = ("launch.", "version.sglang")


def compare_baseline(case: Case, good: Case, places: Places) -> BaselineInfo:
    """What differs between a launch and a good one."""
    return BaselineInfo(
        path=good.table.sources[good.launch.sources[0]].name if good.launch.sources else "",
        launch=good.launch.id,
        reached=good.launch.reached,
        stages=_stages(case.launch, good.launch),
        facts=_facts(case.launch, good.launch, places),
        new_messages=_new(case, good, places),
        lost_messages=_new(good, case, places),
        metrics=_metrics(case, good),
    )


def _stages(here: Launch, good: Launch) -> dict[str, list[float | None]]:
    """Seconds from the first mark to the first mark of each stage: here and in the good run."""
    a, b = _reached_after(here), _reached_after(good)
    return {s: [a.get(s), b.get(s)] for s in STAGES if s in a or s in b}


def _reached_after(launch: Launch) -> dict[str, float]:
    times = [m.time for m in launch.marks if m.time is not None]
    start = min(times, default=0.0)
    found: dict[str, float] = {}
    for mark in launch.marks:
        if mark.time is not None and mark.stage not in found:
            found[mark.stage] = round(mark.time - start, 3)
    return found


def _facts(here: Launch, good: Launch, places: Places) -> list[DifferenceInfo]:
    found = []
    for name in sorted(here.facts.keys() | good.facts.keys()):
        a, b = here.facts.get(name), good.facts.get(name)
        group, _, last = name.partition(".")
        if name.startswith(SKIPPED) or last in NEUTRAL or last in NEUTRAL_ENV:
            continue
        if group == "args" and (a is None or b is None):
            continue
        if equal(a.value if a else None, b.value if b else None):
            continue
        found.append(
            DifferenceInfo(
                name=name,
                here=plain(a.value, places) if a else None,
                control=plain(b.value, places) if b else None,
                where=places.span(a.where) if a and a.where else None,
            )
        )
    return found[:MAX_FACTS]


def _new(case: Case, other: Case, places: Places) -> list[Where]:
    """First lines of the shapes of one launch that the other does not have. Warnings and errors up to the first
    failure come first, what follows it last."""
    known = {shape(text)[:200] for _, text in _shapes(other)}
    new = [(row, text) for row, text in _shapes(case) if shape(text)[:200] not in known]
    failure = case.launch.failure(case.launch.first_failure)
    new.sort(key=lambda pair: _weight(case, pair[0], failure.row if failure is not None else None))
    return [Where.of(case.table.span(row), places.safe(text)) for row, text in new[:MAX_MESSAGES]]


def _weight(case: Case, row: int, failure: int | None) -> int:
    if failure is not None and row > failure:
        return 2
    return int(case.table.shapes[int(case.table.shape[row])].kind in CALM)


def _shapes(case: Case) -> Iterable[tuple[int, str]]:
    """First row of every compared shape of a launch, in row order, with its message."""
    rows = case.launch.rows
    ids, first = np.unique(case.table.shape[rows], return_index=True)
    for at in sorted(
        int(rows[i]) for i, k in zip(first, ids, strict=True) if case.table.shapes[int(k)].kind in COMPARED
    ):
        yield at, case.table.text(at)


def _metrics(case: Case, good: Case) -> list[MetricShift]:
    found = []
    for name in METRICS:
        a, b = _median(case, name), _median(good, name)
        if a is not None or b is not None:
            found.append(MetricShift(name=name, here=a, baseline=b))
    return found


def _median(case: Case, name: str) -> float | None:
    values = [_column(series, case, name) for series in case.table.series.values()]
    joined = np.concatenate(values) if values else np.zeros(0)
    joined = joined[~np.isnan(joined)]
    return round(float(np.median(joined)), 4) if len(joined) else None


def _column(series: Series, case: Case, name: str) -> np.ndarray:
    column = series.columns.get(name)
    if column is None:
        return np.zeros(0)
    return np.asarray(column[hot_lines(series, case.table, case.launch.rows)], dtype=np.float64)
