"""What a good run that the caller named shows besides: rows for the text and the Markdown report."""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.output.view import setting_name, value_text
from forensics.schema.report import BaselineInfo, MetricShift

SLOWER, SECONDS = 1.5, 5.0
"""A stage counts as later from this ratio and this many seconds on."""
SHIFT = 0.2
"""Share by which a median must differ."""


@frozen
class Row:
    """One difference: what differs, the value here and in the good run."""

    name: str
    here: str
    there: str


def rows(found: BaselineInfo) -> list[Row]:
    """Stages, settings and medians of batch metrics that differ, in this order."""
    return [*_stages(found), *_facts(found), *_metrics(found)]


def _stages(found: BaselineInfo) -> list[Row]:
    """Stages that one of the two did not reach, or reached much later. Seconds count from the first stage."""
    told = []
    for stage, (here, there) in found.stages.items():
        if here is None or there is None or _apart(here, there):
            told.append(Row(f"stage {stage}", _seconds(here), _seconds(there)))
    return told


def _apart(a: float, b: float) -> bool:
    low, high = sorted((a, b))
    return high - low > SECONDS and high > SLOWER * low


def _seconds(value: float | None) -> str:
    return "not reached" if value is None else f"after {value:.0f} s"


def _facts(found: BaselineInfo) -> list[Row]:
    return [Row(setting_name(d.name), value_text(d.here), value_text(d.control)) for d in found.facts]


def _metrics(found: BaselineInfo) -> list[Row]:
    shifted = [m for m in found.metrics if _shifts(m)]
    return [Row(f"median {m.name}", value_text(m.here), value_text(m.baseline)) for m in shifted]


def _shifts(metric: MetricShift) -> bool:
    if metric.here is None or metric.baseline is None:
        return metric.here is not metric.baseline
    return abs(metric.here - metric.baseline) > SHIFT * max(abs(metric.here), abs(metric.baseline))
