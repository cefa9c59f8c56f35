"""The ranges of one source → its rows in one numbering: line numbers, inherited times, kinds that need context."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.chunk import Hot, Rows
from forensics.engine.context import context_kinds, thin_repeats
from forensics.engine.probe import Probe
from forensics.engine.record import DECODE, PREFILL
from forensics.engine.table import STAMPED
from forensics.engine.worker import Scanned, join_hot, join_rows

Array = npt.NDArray[Any]
AxisKey = tuple[tuple[str, ...], tuple[int, ...]]


@dataclass(slots=True)
class Assembled:
    """One source, whole: `shapes` and `ranks` are local to it; `kinds` counts all its lines."""

    rows: Rows
    hot: dict[int, Hot]
    shapes: list[tuple[str, str]]
    shape_counts: list[int]
    ranks: list[AxisKey]
    kinds: dict[str, int]
    wrappers: list[str]
    lines: int
    notes: list[str]
    reversed: bool
    preamble: str | None = None


def assemble(parts: list[Scanned], probe: Probe) -> Assembled:
    """Join ranges, then settle what depends on neighbours."""
    shapes: dict[tuple[str, str], int] = {}
    ranks: dict[AxisKey, int] = {}
    counts: list[int] = []
    rows: list[Rows] = []
    hot: dict[int, list[Hot]] = {DECODE: [], PREFILL: []}
    lines, now = 0, float("nan")
    for part in parts:
        shape_map = np.array([shapes.setdefault(s, len(shapes)) for s in part.shapes], np.int32)
        rank_map = np.array([ranks.setdefault(r, len(ranks)) for r in part.ranks] + [-1], np.int16)
        counts += [0] * (len(shapes) - len(counts))
        for local, number in enumerate(part.shape_counts):
            counts[int(shape_map[local])] += number
        part.rows.shape = shape_map[part.rows.shape] if len(shape_map) else part.rows.shape
        part.rows.rank = rank_map[part.rows.rank]
        _carry(part.rows, now)
        part.rows.line = part.rows.line + lines
        rows.append(part.rows)
        for kind, batch in part.hot.items():
            batch.rank = rank_map[batch.rank]
            batch.line = batch.line + lines
            _carry(batch, now)
            hot[kind].append(batch)
        lines += part.lines
        now = part.last_time if part.last_time == part.last_time else now
    joined = join_rows(rows)
    series = {kind: join_hot(batches) for kind, batches in hot.items()}
    notes = _notes(parts)
    if probe.dateless:
        _midnights(joined, series)
    names = list(shapes)
    if probe.reversed:
        notes.append("newest line first: read from the end")
        _reverse(joined, series)
    names, counts = context_kinds(joined, names, counts, probe.reversed)
    kinds: dict[str, int] = {}
    for (name, _), number in zip(names, counts, strict=True):
        if number:
            kinds[name] = kinds.get(name, 0) + number
    joined = thin_repeats(joined, names)
    wrappers = sorted(set().union(*(p.wrappers for p in parts)))
    return Assembled(
        joined, series, names, counts, list(ranks), kinds, wrappers, lines, notes, probe.reversed, probe.preamble
    )


def _carry(part: Rows | Hot, now: float) -> None:
    """Lines before the first stamp of a range inherit the last time of the range before."""
    if now == now and len(part.time):
        part.time = np.where(np.isnan(part.time), now, part.time)


def _notes(parts: list[Scanned]) -> list[str]:
    notes = []
    if any(p.capped for p in parts):
        notes.append("more shapes than are told apart: later ones share one shape per kind")
    if any(p.ranks_capped for p in parts):
        notes.append("more ranks than are told apart: lines of further ones count as lines without a rank")
    thinned = sum(p.thinned for p in parts)
    if thinned:
        notes.append(
            f"batch series thinned to first, last, lowest and highest per rank and stretch, {thinned} only counted"
        )
    return notes


def _midnights(rows: Rows, series: dict[int, Hot]) -> None:
    """Stamps without a date: a fall of more than half a day is midnight."""
    everything: list[Rows | Hot] = [rows, *series.values()]
    line = np.concatenate([x.line for x in everything])
    time = np.concatenate([x.time for x in everything])
    order = np.argsort(line, kind="stable")
    known = order[~np.isnan(time[order])]
    if len(known) < 2:
        return
    falls = np.concatenate([[0], np.cumsum(np.diff(time[known]) < -43_200)])
    time[known] += falls * 86_400.0
    at = 0
    for part in everything:
        part.time = time[at : at + len(part.line)]
        at += len(part.line)


def _reverse(rows: Rows, series: dict[int, Hot]) -> None:
    """Rows of a newest-first export in order of time; unstamped lines inherit from the line that now stands above."""
    order = np.lexsort((-np.arange(len(rows.line)), -rows.line))
    for name in ("offset", "length", "lead", "line", "time", "rank", "shape", "flags"):
        setattr(rows, name, getattr(rows, name)[order])
    stamped = (rows.flags & STAMPED) != 0
    last = np.maximum.accumulate(np.where(stamped, np.arange(len(order)), -1))
    rows.time = np.where(last >= 0, rows.time[last], np.nan)
    for kind, hot in series.items():
        back = np.arange(len(hot.line))[::-1]
        series[kind] = replace(
            hot,
            line=hot.line[back],
            time=hot.time[back],
            rank=hot.rank[back],
            columns={k: v[back] for k, v in hot.columns.items()},
        )
