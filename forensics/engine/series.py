"""Batch series of all inputs in the order of the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.merge import Loaded, correction
from forensics.engine.record import DECODE, PREFILL
from forensics.engine.table import Series
from forensics.frozen import frozen

Array = npt.NDArray[Any]
STANDARD = (
    "running",
    "queue",
    "token_usage",
    "throughput",
    "accept_len",
    "cached_tokens",
    "new_tokens",
    "new_seqs",
    "cuda_graph",
)
"""Columns that every series has, unknown (nan) where no line holds them."""
KINDS = {"decode": DECODE, "prefill": PREFILL}


@frozen
class Places:
    """Where the rows of the table come from: `which` source each, its `time`; `mixed`: sources that are interleaved."""

    which: Array
    time: Array
    mixed: list[bool]


def series_of(name: str, kind: int, items: list[Loaded], place: Places, rank_maps: list[Array]) -> Series:
    """One series from the batch lines of all inputs."""
    hots = [item.seen.hot[kind] for item in items]
    row = _whole([_positions(i, item, kind, place) for i, item in enumerate(items)])
    source = _whole([np.full(len(h.line), i, np.int16) for i, h in enumerate(hots)])
    line = _whole([h.line for h in hots])
    time = _whole([h.time - correction(item) for h, item in zip(hots, items, strict=True)])
    rank = _whole([m[h.rank] for h, m in zip(hots, rank_maps, strict=True)])
    names = sorted({column for h in hots for column in h.columns})
    columns = {c: _whole([h.columns.get(c, np.full(len(h.line), np.nan)) for h in hots]) for c in names}
    if len(items) > 1:
        order = np.lexsort((np.arange(len(row)), np.nan_to_num(time, nan=-np.inf) if any(place.mixed) else row, row))
        row, source, line, time, rank = row[order], source[order], line[order], time[order], rank[order]
        columns = {c: v[order] for c, v in columns.items()}
    unknown = np.full(len(row), np.nan)
    known = {c: values for c, values in columns.items() if _holds_any(values)}
    columns = {**dict.fromkeys(STANDARD, unknown), **known}
    return Series(name, row, source, line, time, rank, columns)


def _holds_any(values: Array) -> bool:
    """Whether a column has a number at all; mostly its head tells."""
    return not np.isnan(values[:64]).all() or not np.isnan(values).all()


def _whole(parts: list[Array]) -> Array:
    """Parts as one array; a single part is not copied (the series of a large input are large)."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _positions(number: int, item: Loaded, kind: int, place: Places) -> Array:
    """Table position before which each batch line of one source stood: before the next row of its source, and in an
    interleaved group as far up as its time allows."""
    rows = np.flatnonzero(place.which == number)
    line, hot = item.seen.rows.line, item.seen.hot[kind]
    if not len(rows):
        later = np.flatnonzero(place.which > number)
        return np.full(len(hot.line), later[0] if len(later) else len(place.which), np.int64)
    sign = -1 if item.seen.reversed else 1
    after = np.searchsorted(sign * line, sign * hot.line, side="right")
    below = np.append(rows, rows[-1] + 1)[after].astype(np.int64)
    if not place.mixed[number]:
        return below
    above = np.concatenate([rows[:1], rows + 1])[after]
    first, stop = int(rows[0]), int(rows[-1]) + 1
    clock = np.maximum.accumulate(np.nan_to_num(place.time[first:stop], nan=-np.inf))
    wanted = first + np.searchsorted(clock, np.nan_to_num(hot.time - correction(item), nan=-np.inf), side="right")
    return np.clip(wanted, above, below).astype(np.int64)
