"""The ranges of one source → its rows in one numbering: line numbers, inherited times, kinds that need context."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine import apart
from forensics.engine.chunk import Hot, Rows
from forensics.engine.context import context_kinds, thin_repeats
from forensics.engine.plain import plain_kind
from forensics.engine.probe import Probe
from forensics.engine.record import DECODE, PREFILL
from forensics.engine.table import STAMPED
from forensics.engine.worker import Scanned, join_hot, join_rows, without_plain

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


def assemble(parts: list[Scanned], probe: Probe, size: int) -> Assembled:
    """Join the ranges of an input of `size` bytes, then settle what depends on neighbours."""
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
    names = list(shapes)
    if len(names) > apart.SHAPE_CAP or any(part.last_apart for part in parts):
        names, counts = _told_apart(joined, names, counts, parts)
        joined = without_plain(joined, [plain_kind(name) for name in names], ranks, size)
        notes += _further(names, counts)
    if probe.dateless:
        _midnights(joined, series)
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


def _told_apart(
    rows: Rows, names: list[tuple[str, str]], counts: list[int], parts: list[Scanned]
) -> tuple[list[tuple[str, str]], list[int]]:
    """Shapes and their counts where those that the whole input cannot tell apart (apart.py) are one for each kind;
    `rows` are numbered anew in place."""
    places = {
        name: place for part in parts for name, place in zip(part.shapes, part.places, strict=False) if place >= 0
    }
    live = [i for i, (_, text) in enumerate(names) if text != apart.OTHER_SHAPE]
    place = np.array([places[n] if (n := names[i]) in places else apart.order(n) for i in live], np.int64)
    lasts = [part.last_apart for part in parts if part.last_apart is not None]
    last = apart.last_apart(place, bool(lasts))
    lasts += [] if last is None else [last]
    if not lasts:
        return names, counts
    for i in np.array(live, np.int64)[apart.beyond(place, apart.least(lasts))].tolist():
        names[i] = names[i][0], apart.OTHER_SHAPE
    table: dict[tuple[str, str], int] = {}
    numbers = np.array([table.setdefault(name, len(table)) for name in names], np.int32)
    totals = np.zeros(len(table), np.int64)
    np.add.at(totals, numbers, counts)
    rows.shape = numbers[rows.shape]
    return list(table), totals.tolist()


def _further(names: list[tuple[str, str]], counts: list[int]) -> list[str]:
    """What became of the shapes that are not told apart."""
    lines = sum(count for (_, text), count in zip(names, counts, strict=True) if text == apart.OTHER_SHAPE)
    text = (
        f"more than {apart.SHAPE_CAP:,} shapes: {lines:,} lines are told apart by their kind alone;"
        " of those of free text the first and last of each stretch and rank are kept, the others only counted"
    )
    return [text] if lines else []


def _carry(part: Rows | Hot, now: float) -> None:
    """Lines before the first stamp of a range inherit the last time of the range before."""
    if now == now and len(part.time):
        part.time = np.where(np.isnan(part.time), now, part.time)


def _notes(parts: list[Scanned]) -> list[str]:
    notes = []
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
