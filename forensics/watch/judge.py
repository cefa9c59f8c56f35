"""The whole analysis on what is held: early on the digest, at the end on everything that was read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.analysis import read_table, report
from forensics.engine.scan import scan
from forensics.ingest.sources import Source
from forensics.knowledge.store import Knowledge
from forensics.schema.options import Options
from forensics.schema.report import Report
from forensics.watch.digest import Digest

DEAD = ("crashed", "killed", "stopped")
BOUNDED = "the whole log is not at hand any more: this report is made from a bounded part of it"


def judge_digest(name: str, digest: Digest, options: Options, knowledge: Knowledge) -> Report | None:
    """Report on the digest, with the line numbers of the stream; None while there is nothing to say."""
    held = digest.source(name)
    if held is None:
        return None
    source, numbers = held
    try:
        table = scan([source], options)
        if not len(table):
            return None
        table.line = numbers[np.clip(table.line - 1, 0, len(numbers) - 1)]
        for series in table.series.values():
            series.line[:] = numbers[np.clip(series.line - 1, 0, len(numbers) - 1)]
        return report(read_table(table, options, knowledge), options, knowledge)
    finally:
        source.close()


def judge_all(sources: Sequence[Source], options: Options, knowledge: Knowledge) -> Report:
    """Report on everything, as `forensics analyze` gives it."""
    return report(read_table(scan(list(sources), options), options, knowledge), options, knowledge)


def is_dead(found: Report) -> bool:
    """Whether the last launch is over."""
    return bool(found.launches) and found.launches[-1].ended in DEAD


def is_foreign(report: Report) -> bool:
    """Whether nothing in the input is of an sglang server: no fact, no rank, no stage, no failure."""
    return not any(
        x.first_failure or x.failures or x.facts or x.ranks.seen or x.progress or x.reached not in ("", "config")
        for x in report.launches
    )
