"""One chunk of whole lines → arrays: dict lookups for the masks, numpy for everything else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.lines import POWERS, Kernel, Lines, NumpyKernel
from forensics.engine.numbers import PAD, Words8, clock_seconds, days
from forensics.engine.probe import Probe
from forensics.engine.record import ACCESS, DECODE, PREFILL, ROW
from forensics.engine.records import (
    AXES,
    AXIS0,
    CLASS,
    CLOCK_AT,
    DATE_AT,
    FLAGS,
    FORM,
    FRACTION_AT,
    FRACTION_WIDTH,
    PARTIAL,
    PARTS,
    SHAPE,
    SLOT_END,
    SLOT_START,
    SLOTS,
    START,
    STOP,
    WRAPPER,
    MaskTable,
)
from forensics.engine.thin import METRICS, groups
from forensics.grammar.header import CLOCK, EPOCH_US, FULL

Array = npt.NDArray[Any]
SlotTable = tuple[Array, Array]
_DATE_SHIFT = {FULL: 2}
MAX_JOINED = 64 << 20
"""Bytes of one message that a wrapper cut into lines; beyond, it is several messages."""
MAX_RANK = 4096
"""Indexes of a rank from this on are taken for text that only looks like one."""
MAX_RANKS = 8192
"""Ranks told apart in one range of an input; the rest counts as lines without a rank."""
KEYS_COUNTED = 1 << 16
"""Combinations of axis numbers that are counted in a table; more are sorted."""


@dataclass(slots=True)
class Hot:
    """Batch lines of one kind in one chunk."""

    line: Array
    time: Array
    rank: Array
    columns: dict[str, Array]


@dataclass(slots=True)
class Rows:
    """Kept lines of one chunk; `shape` and `rank` are this process's own numbers."""

    offset: Array
    length: Array
    lead: Array
    line: Array
    time: Array
    rank: Array
    shape: Array
    flags: Array


def empty_rows() -> Rows:
    """No rows."""
    ints = np.zeros(0, np.int64)
    return Rows(
        ints,
        ints.astype(np.int32),
        ints.astype(np.int32),
        ints,
        ints.astype(float),
        ints.astype(np.int16),
        ints.astype(np.int32),
        ints.astype(np.uint8),
    )


class ChunkScanner:
    """Scans chunks in order; keeps the last time and the growing tables between them."""

    def __init__(self, table: MaskTable, probe: Probe, bucket: int = 0, kernel: Kernel | None = None) -> None:
        self.table = table
        self.probe = probe
        self.bucket = bucket
        self.kernel = kernel or NumpyKernel(table)
        self.thinned = 0
        self.now = float("nan")
        self.ranks: dict[tuple[tuple[str, ...], tuple[int, ...]], int] = {}
        self.shape_counts = np.zeros(0, np.int64)
        self.wrapper_counts = np.zeros(0, np.int64)

    def held_back(self, lines: Lines) -> int:
        """How many last lines are parts of a message that goes on after them."""
        held = 0
        while held < lines.count:
            line = lines.line(-1 - held)
            if not (line[:1] == b"{" or b" P" in line[:80]) or not self.table.is_partial(line):
                break
            held += 1
        return held

    def scan(self, padded: bytes, base: int, first_line: int, final: bool) -> tuple[int, int, Rows, dict[int, Hot]]:
        """Scan whole lines, given between PADDING, that stand at `base` of the source. Gives bytes and lines consumed
        (less than all where the chunk ends inside a message that a wrapper cut), the rows and the hot lines."""
        lines = self.kernel.lines(padded)
        size = len(padded) - 2 * PAD
        count = lines.count
        if not final:
            held = self.held_back(lines)
            if held == count and size < MAX_JOINED:
                return 0, 0, empty_rows(), {}
            if 0 < held < count:
                size -= sum(len(lines.line(-1 - k)) + 1 for k in range(held))
                count -= held
        ids, lengths = lines.lookup(count)
        starts = np.cumsum(lengths + 1) - lengths - 1
        dropped = self._join_partials(lines, ids, lengths, starts)
        plan = self.table.plan()
        line_of, records = _units(ids, plan, dropped)
        self._count(plan, records)
        words = Words8(padded)
        where = _Units(plan, records, starts[line_of], lengths[line_of], base, line_of + first_line)
        clock = _Clock(where, words, self.probe.base_day, self.now)
        hot = {kind: self._hot(kind, words, padded, where, clock) for kind in (DECODE, PREFILL)}
        rows = self._rows(words, where, clock)
        self.now = clock.final()
        self.table.forget()
        return size, count, rows, hot

    def _count(self, plan: Array, records: Array) -> None:
        uses = np.bincount(records, minlength=plan.shape[1])
        self.shape_counts = _added(self.shape_counts, np.bincount(plan[SHAPE], weights=uses))
        self.wrapper_counts = _added(self.wrapper_counts, np.bincount(plan[WRAPPER], weights=uses))

    def _join_partials(self, lines: Lines, ids: Array, lengths: Array, starts: Array) -> Array | None:
        plan = self.table.plan()
        partial = plan[PARTIAL][ids] != 0
        if not partial.any():
            return None
        dropped = np.zeros(len(ids), bool)
        for index in np.flatnonzero(partial):
            if dropped[index]:
                continue
            stop = int(index)
            while partial[stop] and stop + 1 < len(ids):
                stop += 1
            if stop == index:
                continue
            reader = self.table.reader
            bodies = [reader.message_of(lines.line(k).decode("latin-1")) for k in range(index + 1, stop + 1)]
            ids[index] = self.table.add(reader.joined(lines.line(int(index)).decode("latin-1"), bodies), joined=True)
            lengths[index] = starts[stop] + lengths[stop] - starts[index]
            dropped[index + 1 : stop + 1] = True
        return dropped

    def _ranks(self, words: Words8, where: _Units, pick: Array) -> Array:
        """Rank numbers of the chosen parts (-1: none)."""
        records = where.records[pick]
        axes = where.plan[AXES][records]
        rank = np.full(len(pick), -1, np.int16)
        names = list(self.table.axes)
        for number in np.flatnonzero(np.bincount(axes + 1, minlength=1)):
            if number == 0:
                continue
            mine = np.flatnonzero(axes == number - 1)
            chosen, start = records[mine], where.at[pick[mine]]
            numbers: list[Array] = []
            for i in range(len(names[number - 1])):
                width = where.plan[AXIS0 + 2 * i + 1][chosen]
                end = start + where.plan[AXIS0 + 2 * i][chosen] + width
                numbers.append(words.digits(end, np.minimum(width, 4)).astype(np.int64))
            rank[mine] = self._rank_numbers(names[number - 1], numbers)
        return rank

    def _rank_numbers(self, names: tuple[str, ...], numbers: list[Array]) -> Array:
        """Rank number of each line, given its number on each axis."""
        sizes = [int(values.max()) + 1 for values in numbers]
        key = numbers[0]
        for values, size in zip(numbers[1:], sizes[1:], strict=True):
            key = key * size + values
        if math.prod(sizes) <= KEYS_COUNTED:
            found = np.flatnonzero(np.bincount(key))
            known = np.zeros(int(found[-1]) + 1, np.int16)
            known[found] = [self._rank_number(names, int(k), sizes) for k in found]
            return known[key]
        found, inverse = np.unique(key, return_inverse=True)
        return np.array([self._rank_number(names, int(k), sizes) for k in found], np.int16)[inverse]

    def _rank_number(self, names: tuple[str, ...], key: int, sizes: list[int]) -> int:
        values: list[int] = []
        for size in reversed(sizes):
            key, value = divmod(key, size)
            values.append(value)
        name = names, tuple(reversed(values))
        if name not in self.ranks and (max(values) >= MAX_RANK or len(self.ranks) >= MAX_RANKS):
            self.table.ranks_capped = True
            return -1
        return self.ranks.setdefault(name, len(self.ranks))

    def _rows(self, words: Words8, where: _Units, clock: _Clock) -> Rows:
        kinds = where.plan[CLASS][where.records]
        keep = kinds == ROW
        access = np.flatnonzero(kinds == ACCESS)
        if len(access):
            status = _column(self.kernel, 0, words, b"", self.table.slots(), where.slots(access), where.at[access])
            keep[access[~(status < 400)]] = True
        pick = np.flatnonzero(keep)
        records = where.records[pick]
        plan = where.plan
        start, stop = plan[START][records], plan[STOP][records]
        stop = np.where(stop >= 0, stop, where.length[pick])
        return Rows(
            offset=where.base + where.at[pick] + start,
            length=(stop - start).astype(np.int32),
            lead=start,
            line=where.line[pick],
            time=clock.times(pick),
            rank=self._ranks(words, where, pick),
            shape=plan[SHAPE][records],
            flags=plan[FLAGS][records].astype(np.uint8),
        )

    def _hot(self, kind: int, words: Words8, padded: bytes, where: _Units, clock: _Clock) -> Hot:
        pick = np.flatnonzero(where.plan[CLASS][where.records] == kind)
        names = self.table.reader.columns["decode-batch" if kind == DECODE else "prefill-batch"].names
        rank = self._ranks(words, where, pick)
        table = self.table.slots()
        columns: dict[str, Array] = {}
        if self.bucket and len(pick):
            # Of a thinned input only the metrics decide what is kept; the other columns are read of that alone.
            at, slots = where.at[pick], where.slots(pick)
            metrics = {
                n: _column(self.kernel, c, words, padded, table, slots, at) for n, c in names.items() if n in METRICS
            }
            keep = self.kernel.kept(groups(where.base + at, rank, self.bucket), metrics)
            self.thinned += len(pick) - len(keep)
            pick, rank = pick[keep], rank[keep]
            columns = {n: values[keep] for n, values in metrics.items()}
        at, slots = where.at[pick], where.slots(pick)
        columns.update(
            {n: _column(self.kernel, c, words, padded, table, slots, at) for n, c in names.items() if n not in columns}
        )
        return Hot(where.line[pick], clock.times(pick), rank, columns)


class _Clock:
    """Times of the parts of a chunk, decoded only where somebody asks; unstamped ones inherit from above."""

    def __init__(self, where: _Units, words: Words8, base_day: int, before: float) -> None:
        self.where, self.words, self.base_day, self.before = where, words, base_day, before
        self.forms = where.plan[FORM][where.records]
        self.stamped = np.maximum.accumulate(np.where(self.forms > 0, np.arange(len(self.forms)), -1))

    def times(self, pick: Array) -> Array:
        """Seconds since the epoch of the chosen parts."""
        source = self.stamped[pick]
        time = np.full(len(pick), self.before)
        known = np.flatnonzero(source >= 0)
        source = source[known]
        forms = self.forms[source]
        for form in np.flatnonzero(np.bincount(forms, minlength=1)):
            mine = np.flatnonzero(forms == form)
            time[known[mine]] = self._decode(int(form), source[mine])
        return time

    def final(self) -> float:
        """Time that the next chunk inherits."""
        return float(self.times(np.array([len(self.forms) - 1]))[0]) if len(self.forms) else self.before

    def _decode(self, form: int, units: Array) -> Array:
        plan, records, at = self.where.plan, self.where.records[units], self.where.at[units]
        if form == EPOCH_US:
            width = plan[FRACTION_WIDTH][records].astype(np.int64)
            return self.words.digits(at + plan[DATE_AT][records] + width, width).astype(np.float64) / 1e6
        seconds = clock_seconds(self.words.load(at + plan[CLOCK_AT][records])).astype(np.float64)
        if form == CLOCK:
            seconds += self.base_day * 86400.0
        else:
            dates = self.words.load(at + plan[DATE_AT][records] + _DATE_SHIFT.get(form, 0))
            seconds += days(dates, form, self.base_day) * 86400.0
        width = np.minimum(plan[FRACTION_WIDTH][records], 6).astype(np.int64)
        if width.any():
            digits = self.words.digits(at + plan[FRACTION_AT][records] + width, width)
            seconds += digits.astype(np.float64) / POWERS[width]
        return seconds


def _added(total: Array, more: Array) -> Array:
    """Sum of two count arrays of different lengths."""
    out = np.zeros(max(len(total), len(more)), np.int64)
    out[: len(total)] += total
    out[: len(more)] += more.astype(np.int64)
    return out


def _column(
    kernel: Kernel, column: int, words: Words8, padded: bytes, table: SlotTable, slots: Array, at: Array
) -> Array:
    """Values of one column for hot lines that start at `at` and have the plans `slots` (-1: no plan)."""
    numbers, constants = table
    if not numbers.shape[2] or not len(slots):
        return np.full(len(slots), np.nan)
    entry = numbers[column]
    values, slow = kernel.column(words, entry, constants[column], slots, at)
    for i in slow.tolist():
        start = int(at[i]) + PAD
        try:
            values[i] = float(padded[start + int(entry[SLOT_START][slots[i]]) : start + int(entry[SLOT_END][slots[i]])])
        except ValueError:
            values[i] = np.nan
    return values


@dataclass(slots=True)
class _Units:
    """All parts of all lines of a chunk, with what is known of each."""

    plan: Array
    records: Array
    at: Array
    length: Array
    base: int
    line: Array

    def slots(self, pick: Array) -> Array:
        """Number plans of the chosen parts."""
        found: Array = self.plan[SLOTS][self.records[pick]]
        return found


def _units(ids: Array, plan: Array, dropped: Array | None) -> tuple[Array, Array]:
    """Line number and record of each part of each line."""
    parts = plan[PARTS][ids].astype(np.int64)
    if dropped is not None:
        parts[dropped] = 0
    if bool((parts == 1).all()):
        return np.arange(len(ids)), ids
    line_of = np.repeat(np.arange(len(ids)), parts)
    first = np.cumsum(parts) - parts
    return line_of, ids[line_of] + np.arange(len(line_of)) - first[line_of]
