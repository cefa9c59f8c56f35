"""One chunk of whole lines → arrays: dict lookups for the masks, numpy for everything else."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.lines import POWERS, Kernel, Lines, NumpyKernel, Picks, Selection
from forensics.engine.numbers import DATE_BYTES, PAD, Words8, clock_seconds, days
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
    PARTIAL_MARK,
    SHAPE,
    SLOT_END,
    SLOT_START,
    SLOTS,
    START,
    STOP,
    WRAPPER,
    MaskTable,
)
from forensics.engine.thin import METRICS, groups, kept
from forensics.grammar.header import CLOCK, EPOCH_US

Array = npt.NDArray[Any]
MAX_JOINED = 64 << 20
"""Bytes of one message that a wrapper cut into lines; beyond, it is several messages."""
MAX_RANK = 4096
"""Indexes of a rank from this on are taken for text that only looks like one."""
MAX_RANKS = 8192
"""Ranks told apart in one range of an input; the rest counts as lines without a rank."""
RANKS_AT_ONCE = 1 << 12
"""Ranks that a kernel may find in one chunk."""
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
        self._uses = np.zeros(0, np.int64)

    def held_back(self, lines: Lines) -> int:
        """How many last lines are parts of a message that goes on after them."""
        held = 0
        while held < lines.count:
            line = lines.line(-1 - held)
            if not (line[:1] == b"{" or b" P" in line[:80]) or not self.table.is_partial(line):
                break
            held += 1
        return held

    def scan(
        self, padded: bytes | memoryview, base: int, first_line: int, final: bool
    ) -> tuple[int, int, Rows, dict[int, Hot]]:
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
        ids, starts, lengths = lines.lookup(count)
        dropped = self._join_partials(lines, ids, starts, lengths)
        selection = self.kernel.select(ids, dropped)
        plan = self.table.plan()
        self._uses = _added(self._uses, selection.uses)
        chunk = _Chunk(plan, Words8(padded), starts, lengths, base, first_line)
        clock = _Clock(chunk, self.kernel, self.probe.base_day, self.now)
        hot = {kind: self._hot(kind, chunk, selection.picks[kind], clock) for kind in (DECODE, PREFILL)}
        rows = self._rows(chunk, selection.picks[ROW], clock)
        self.now = clock.last(selection)
        if self.table.full:
            self.count()
            self.table.forget()
        return size, count, rows, hot

    def count(self) -> None:
        """Add what the records have counted up to shapes and wrappers."""
        plan = self.table.plan()[:, : len(self._uses)]
        self.shape_counts = _added(self.shape_counts, np.bincount(plan[SHAPE], weights=self._uses))
        self.wrapper_counts = _added(self.wrapper_counts, np.bincount(plan[WRAPPER], weights=self._uses))
        self._uses = np.zeros(0, np.int64)

    def _join_partials(self, lines: Lines, ids: Array, starts: Array, lengths: Array) -> Array | None:
        marks = self.table.marks() & PARTIAL_MARK
        if not marks.any():
            return None
        partial = marks.take(ids) != 0
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

    def _ranks(self, chunk: _Chunk, picks: Picks, at: Array) -> Array:
        """Rank numbers of the chosen parts (-1: none)."""
        found = self.kernel.ranks(picks.record, at, self._rank_number)
        if found is not None:
            return found
        axes = chunk.plan[AXES].take(picks.record)
        rank = np.full(len(axes), -1, np.int16)
        names = list(self.table.axes)
        for number in np.flatnonzero(np.bincount(axes + 1, minlength=1)):
            if number == 0:
                continue
            mine = np.flatnonzero(axes == number - 1)
            alone = len(mine) == len(axes)
            chosen, start = (picks.record, at) if alone else (picks.record[mine], at[mine])
            numbers: list[Array] = []
            for i in range(len(names[number - 1])):
                width = chunk.plan[AXIS0 + 2 * i + 1].take(chosen)
                end = start + chunk.plan[AXIS0 + 2 * i].take(chosen) + width
                numbers.append(chunk.words.digits(end, np.minimum(width, 4)).astype(np.int64))
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
            known[found] = [self._rank_number(names, _places(int(k), sizes)) for k in found]
            return known[key]
        found, inverse = np.unique(key, return_inverse=True)
        return np.array([self._rank_number(names, _places(int(k), sizes)) for k in found], np.int16)[inverse]

    def _rank_number(self, names: tuple[str, ...], places: tuple[int, ...]) -> int:
        name = names, places
        if name not in self.ranks and (max(places) >= MAX_RANK or len(self.ranks) >= MAX_RANKS):
            self.table.ranks_capped = True
            return -1
        return self.ranks.setdefault(name, len(self.ranks))

    def _rows(self, chunk: _Chunk, picks: Picks, clock: _Clock) -> Rows:
        plan = chunk.plan
        access = np.flatnonzero(plan[CLASS].take(picks.record) == ACCESS)
        if len(access):
            asked = picks.take(access)
            slots, at = plan[SLOTS].take(asked.record), chunk.at(asked.line)
            (status,) = self._columns([0], chunk, slots, at, by_hand=False)
            keep = np.ones(len(picks.line), bool)
            keep[access] = ~(status < 400)
            picks = picks.take(np.flatnonzero(keep))
        records, at = picks.record, chunk.at(picks.line)
        start, stop = plan[START].take(records), plan[STOP].take(records)
        stop = np.where(stop >= 0, stop, chunk.lengths[picks.line])
        return Rows(
            offset=chunk.base + at + start,
            length=(stop - start).astype(np.int32),
            lead=start,
            line=picks.line.astype(np.int64) + chunk.first_line,
            time=clock.times(picks),
            rank=self._ranks(chunk, picks, at),
            shape=plan[SHAPE].take(records),
            flags=plan[FLAGS].take(records).astype(np.uint8),
        )

    def _hot(self, kind: int, chunk: _Chunk, picks: Picks, clock: _Clock) -> Hot:
        names = self.table.reader.columns["decode-batch" if kind == DECODE else "prefill-batch"].names
        rank: Array | None = None
        columns: dict[str, Array] = {}
        if self.bucket and len(picks.line):
            # Of a thinned input only the metrics decide what is kept; the other columns are read of that alone.
            metrics = {n: c for n, c in names.items() if n in METRICS}
            keep = self.kernel.thinned(picks, tuple(metrics.values()), chunk.base, self.bucket)
            if keep is None or len(self.ranks) + RANKS_AT_ONCE > MAX_RANKS:
                keep, rank, columns = self._thinned(metrics, chunk, picks)
            self.thinned += len(picks.line) - len(keep)
            picks = picks.take(keep)
        at, slots = chunk.at(picks.line), chunk.plan[SLOTS].take(picks.record)
        rank = self._ranks(chunk, picks, at) if rank is None else rank
        more = {n: c for n, c in names.items() if n not in columns}
        columns.update(zip(more, self._columns([*more.values()], chunk, slots, at), strict=True))
        return Hot(picks.line.astype(np.int64) + chunk.first_line, clock.times(picks), rank, columns)

    def _thinned(self, metrics: dict[str, int], chunk: _Chunk, picks: Picks) -> tuple[Array, Array, dict[str, Array]]:
        """Which of the batch lines stay, and their ranks and metrics."""
        at, slots = chunk.at(picks.line), chunk.plan[SLOTS].take(picks.record)
        rank = self._ranks(chunk, picks, at)
        columns = dict(zip(metrics, self._columns([*metrics.values()], chunk, slots, at), strict=True))
        keep = kept(groups(chunk.base + at, rank, self.bucket), columns)
        return keep, rank[keep], {n: values[keep] for n, values in columns.items()}

    def _columns(self, wanted: list[int], chunk: _Chunk, slots: Array, at: Array, by_hand: bool = True) -> list[Array]:
        """Columns of hot lines that start at `at` and have the plans `slots` (-1: no plan)."""
        tables = self.table.slots()
        if not tables[0].shape[2] or not len(slots):
            return [np.full(len(slots), np.nan) for _ in wanted]
        values, slow = self.kernel.columns(chunk.words, tables, wanted, slots, at)
        for number, i in slow:
            entry, start = tables[0][wanted[number]], int(at[i]) + PAD
            place = slice(start + int(entry[SLOT_START][slots[i]]), start + int(entry[SLOT_END][slots[i]]))
            try:
                values[number][i] = float(bytes(chunk.words.padded[place]) if by_hand else b"")
            except ValueError:
                values[number][i] = np.nan
        return values


class _Clock:
    """Times of the parts of a chunk, decoded only where somebody asks; unstamped ones inherit from above."""

    def __init__(self, chunk: _Chunk, kernel: Kernel, base_day: int, before: float) -> None:
        self.chunk, self.kernel, self.base_day, self.before = chunk, kernel, base_day, before

    def times(self, picks: Picks) -> Array:
        """Seconds since the epoch of the chosen parts."""
        records, lines = picks.stamp_record, picks.stamp_line
        # A line below 0 has no record either: its place is not looked at.
        found = self.kernel.times(records, self.chunk.at(np.maximum(lines, 0)), self.base_day, self.before)
        if found is not None:
            return found
        if bool((records < 0).any()):
            known = np.flatnonzero(records >= 0)
            time = np.full(len(records), self.before)
            time[known] = self._known(records[known], self.chunk.at(lines[known]))
            return time
        return self._known(records, self.chunk.at(lines))

    def _known(self, records: Array, at: Array) -> Array:
        """Times of parts that start at `at` and bear a stamp."""
        forms = self.chunk.plan[FORM].take(records)
        found = np.flatnonzero(np.bincount(forms, minlength=1))
        if len(found) == 1:
            return self._decode(int(found[0]), records, at)
        time = np.empty(len(records))
        for form in found:
            mine = np.flatnonzero(forms == form)
            time[mine] = self._decode(int(form), records[mine], at[mine])
        return time

    def last(self, selection: Selection) -> float:
        """Time that the next chunk inherits."""
        if selection.stamp_record < 0:
            return self.before
        at = self.chunk.at(np.array([selection.stamp_line]))
        return float(self._known(np.array([selection.stamp_record]), at)[0])

    def _decode(self, form: int, records: Array, at: Array) -> Array:
        plan, words = self.chunk.plan, self.chunk.words
        if form == EPOCH_US:
            width = plan[FRACTION_WIDTH].take(records).astype(np.int64)
            return words.digits(at + plan[DATE_AT].take(records) + width, width).astype(np.float64) / 1e6
        seconds = clock_seconds(words.load(at + plan[CLOCK_AT].take(records))).astype(np.float64)
        if form == CLOCK:
            seconds += self.base_day * 86400.0
        else:
            dates = words.load(at + plan[DATE_AT].take(records) + DATE_BYTES[form][0])
            seconds += days(dates, form, self.base_day) * 86400.0
        width = np.minimum(plan[FRACTION_WIDTH].take(records), 6).astype(np.int64)
        if width.any():
            digits = words.digits(at + plan[FRACTION_AT].take(records) + width, width)
            seconds += digits.astype(np.float64) / POWERS[width]
        return seconds


def _places(key: int, sizes: list[int]) -> tuple[int, ...]:
    """A rank's place on each axis from its key, in a table of these sizes."""
    values: list[int] = []
    for size in reversed(sizes):
        key, value = divmod(key, size)
        values.append(value)
    return tuple(reversed(values))


def _added(total: Array, more: Array) -> Array:
    """Sum of two count arrays of different lengths."""
    if len(total) < len(more):
        total = np.concatenate([total, np.zeros(len(more) - len(total), np.int64)])
    total[: len(more)] += more.astype(np.int64, copy=False)
    return total


@dataclass(slots=True)
class _Chunk:
    """The plan, the text and the lines of a chunk."""

    plan: Array
    words: Words8
    starts: Array
    lengths: Array
    base: int
    first_line: int

    def at(self, lines: Array) -> Array:
        """Where lines start."""
        found: Array = self.starts.take(lines).astype(np.int64, copy=False)
        return found
