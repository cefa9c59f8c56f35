"""What the labels of batch lines say about the release: `Decode batch` and `Prefill batch` gained and lost values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
import numpy.typing as npt

from forensics.engine.record import column_name
from forensics.engine.table import Series
from forensics.schema.span import Span
from forensics.timeline.catalog import catalog
from forensics.timeline.facts_sheet import Sheet
from forensics.timeline.version_argparse import Evidence

_MESSAGES = {"decode": "batch-decode", "prefill": "batch-prefill"}


def batch_evidence(sheet: Sheet) -> Iterator[Evidence]:
    """Bounds from the values that the launch's batch lines carry. A missing value proves nothing: many are printed
    under conditions."""
    rows = sheet.rows if len(sheet.table) else np.zeros(1, np.int64)
    if not len(rows):
        return
    low, high = int(rows[0]), int(rows[-1]) + 1
    for kind, message in _MESSAGES.items():
        series = sheet.table.series.get(kind)
        if series is None or not len(series.row):
            continue
        first, stop = np.searchsorted(series.row, low, "left"), np.searchsorted(series.row, high, "right")
        lives = _lives(message)
        for column, values in series.columns.items():
            oldest, newest = lives.get(column, (None, None))
            if not oldest and not newest:
                continue
            held = _first_held(values, int(first), int(stop))
            if held is not None:
                yield Evidence(f"{kind} batch lines have {column}", _place(sheet, series, held), oldest, newest, 2)


def _first_held(values: npt.NDArray[np.float64], first: int, stop: int) -> int | None:
    """The first place in [first, stop) that has a value: most often one of the very first."""
    for end in (min(first + 64, stop), stop):
        held = ~np.isnan(values[first:end])
        if held.any():
            return first + int(held.argmax())
    return None


def _place(sheet: Sheet, series: Series, at: int) -> Span:
    return Span(sheet.table.sources[int(series.source[at])].name, int(series.line[at]))


@cache
def _lives(message: str) -> dict[str, tuple[str | None, str | None]]:
    """(oldest build, newest release) that can print a column; a column of several labels lives as long as any."""
    known = catalog()
    entry = next(m for m in known.messages if m["id"] == message)
    at = {release: i for i, release in enumerate(known.read)}
    spans: dict[str, list[tuple[int, int]]] = {}
    began: dict[str, int] = {}
    for change in entry["values"]:
        for label in change.get("add", ()):
            began.setdefault(label, at[change["since"]])
        for label in change.get("remove", ()):
            if label in began:
                spans.setdefault(column_name(label), []).append((began.pop(label), at[change["since"]] - 1))
    for label, first in began.items():
        spans.setdefault(column_name(label), []).append((first, len(known.read) - 1))
    result: dict[str, tuple[str | None, str | None]] = {}
    for column, found in spans.items():
        first, last = min(s for s, _ in found), max(e for _, e in found)
        newest = None if last == len(known.read) - 1 else known.read[last]
        life = known.lifetime(known.read[first], newest)
        result[column] = (life.low, life.high)
    return result
