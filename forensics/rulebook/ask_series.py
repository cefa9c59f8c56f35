"""Conditions about batch metrics: levels (median of the serving time) and trends."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forensics.engine.table import Series
from forensics.grammar.condition_tree import Level, Trend
from forensics.rulebook.arithmetic import compare_values
from forensics.rulebook.case import Case
from forensics.rulebook.outcome import Outcome
from forensics.schema.span import Span
from forensics.timeline.stages import hot_lines

FALL = 0.7
"""A trend is a change of the median between the first and the last third by at least this factor."""
LEAST = 6
"""Batch lines that a trend needs."""
_PREFILL_FIRST = ("cached_tokens", "new_tokens", "new_seqs")

Values = npt.NDArray[np.float64]


def level(node: Level, case: Case) -> Outcome:
    """Median of the metric over the launch, compared with a number."""
    found = _values(node.series, case)
    if found is None:
        return _missing(node.series)
    values, at = found
    middle, word = _middle(values)
    return Outcome(compare_values(node.op, middle, node.number.value), (at,), f"{word} {node.series} is {middle:.4g}")


def _middle(values: Values) -> tuple[float, str]:
    """The median; of switches (0 and 1 only) the share of batches that have it on."""
    if np.isin(values, (0.0, 1.0)).all() and values.any() and not values.all():
        return float(values.mean()), "share of"
    ordered = np.sort(values)
    # np.median loads numpy's masked arrays, a fiftieth of the time of a small log.
    return float((ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2), "median"


def trend(node: Trend, case: Case) -> Outcome:
    """Whether the metric falls or rises from the first to the last third of the launch's batch lines."""
    found = _values(node.series, case)
    if found is None:
        return _missing(node.series)
    values, at = found
    if len(values) < LEAST:
        return Outcome(
            None, (at,), f"only {len(values)} batch lines show {node.series}", "a log with more serving time"
        )
    third = len(values) // 3
    first, last = float(np.median(values[:third])), float(np.median(values[-third:]))
    falls, rises = last < FALL * first, last * FALL > first
    why = f"{node.series} goes from {first:.4g} to {last:.4g}"
    return Outcome(falls if node.direction == "falls" else rises, (at,), why)


def _missing(name: str) -> Outcome:
    why = f"no batch line of the launch shows {name}"
    return Outcome(None, (), why, "a log with batch lines (no --disable-log-stats, a smaller --decode-log-interval)")


def _values(name: str, case: Case) -> tuple[Values, Span] | None:
    """The metric's values of this launch in time order, and the place of the last batch line that shows it."""
    kinds = ["prefill", "decode"] if name in _PREFILL_FIRST else ["decode", "prefill"]
    for kind in kinds:
        series = case.table.series.get(kind)
        if series is None or name not in series.columns:
            continue
        known = np.zeros(len(series.row), dtype=bool)
        inside = hot_lines(series, case.table, case.launch.rows)
        known[inside] = ~np.isnan(series.columns[name][inside])
        chosen = np.flatnonzero(known)
        if len(chosen):
            return series.columns[name][chosen], _place(series, int(chosen[-1]), case)
    return None


def _place(series: Series, index: int, case: Case) -> Span:
    """Batch lines are no rows: only source and line are known."""
    return Span(case.table.sources[int(series.source[index])].name, int(series.line[index]))
