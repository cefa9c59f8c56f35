"""From a chunk to the number of each line's mask and to the parts that anybody looks at: the part of the scan that has
two implementations.

`NumpyKernel` splits and looks up in plain Python and numpy; `forensics.engine.compiled` does the same in machine code
(extra `fast`). Both ask the same MaskTable, so that they agree by construction wherever hashes do not collide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from forensics.engine.numbers import PAD, Words8
from forensics.engine.record import ACCESS, DECODE, PREFILL, ROW
from forensics.engine.records import (
    KINDS,
    LENGTH,
    MULTI,
    PARTS,
    SLOT_END,
    SLOT_FRACTION,
    SLOT_NEGATIVE,
    SLOT_WIDTH,
    SLOW,
    STAMP,
    MaskTable,
)

Array = npt.NDArray[Any]
Tables = tuple[Array, Array]
"""Places of numbers (column, field, plan) and constants (column, plan)."""
Columns = tuple[list[Array], list[tuple[int, int]]]
"""Values of columns (float64, nan where a line has none), and column and index of those to be read one by one."""
RankNumber = Callable[[tuple[str, ...], tuple[int, ...]], int]
PIECE = 8192
"""Lines that are looked up before it is asked whether too many of them are new for one by one."""
CHOSEN = (ROW, DECODE, PREFILL)
"""Classes whose parts are looked at one by one."""


@dataclass(slots=True)
class Picks:
    """Chosen parts in order: the `line` of each in its chunk, its `record`, and line and record of the last part up to
    it that bears a stamp (-1: none)."""

    line: Array
    record: Array
    stamp_line: Array
    stamp_record: Array

    def take(self, index: Array) -> Picks:
        """Some of them."""
        return Picks(self.line[index], self.record[index], self.stamp_line[index], self.stamp_record[index])


@dataclass(slots=True)
class Selection:
    """How many parts each record has in a chunk, and what is chosen of each class; `ROW` holds the access lines that
    may have failed, too. The stamp is the last one of the chunk (-1: it has none)."""

    uses: Array
    picks: dict[int, Picks]
    stamp_line: int
    stamp_record: int


class Lines(Protocol):
    """The lines of one padded chunk."""

    count: int

    def line(self, index: int) -> bytes:
        """One masked line; negative numbers count from the end."""
        ...

    def lookup(self, count: int) -> tuple[Array, Array, Array]:
        """Record numbers, starts in the chunk and lengths of the first `count` lines."""
        ...


class Kernel(Protocol):
    """Splits chunks and reads numbers. One per source and process."""

    def lines(self, padded: bytes | memoryview) -> Lines:
        """The lines of a chunk that stands between PADDING."""
        ...

    def select(self, ids: Array, dropped: Array | None) -> Selection:
        """What to look at in lines of these records, the ones that `lookup` gave last; `dropped` marks lines that have
        been joined to the one above."""
        ...

    def columns(self, words: Words8, tables: Tables, wanted: list[int], slots: Array, at: Array) -> Columns:
        """Columns of hot lines that start at `at` (int64) and have the number plans `slots` (-1: none)."""
        ...

    def times(self, records: Array, at: Array, base_day: int, before: float) -> Array | None:
        """Seconds since 1970 of the stamps of parts that start at `at` (int64); `before` where the record is below 0.
        None: the caller has to work it out."""
        ...

    def ranks(self, records: Array, at: Array, number: RankNumber) -> Array | None:
        """Rank numbers of lines that start at `at` (int64), -1: none; `number` gives that of a rank by the names of its
        axes and its place on each. None: the caller has to work it out."""
        ...

    def thinned(self, picks: Picks, columns: tuple[int, ...], base: int, step: int) -> Array | None:
        """Which batch lines of the chunk at `base` stay, as `forensics.engine.thin` has it for the metrics in these
        columns and buckets of `step` bytes. None: the caller has to work it out."""
        ...


class NumpyLines:
    """Lines as a list of bytes, looked up in the dict."""

    def __init__(self, table: MaskTable, padded: bytes | memoryview) -> None:
        self._table = table
        self._lines = _masked(np.frombuffer(padded, np.uint8)[PAD:-PAD]).split(b"\n")
        if not self._lines[-1]:
            self._lines.pop()
        self.count = len(self._lines)

    def line(self, index: int) -> bytes:
        return self._lines[index]

    def lookup(self, count: int) -> tuple[Array, Array, Array]:
        ids = np.empty(count, np.intp)
        at = 0
        while at < count:
            stop = count if self._table.crowded else min(count, at + PIECE)
            ids[at:stop] = self._records(self._lines[at:stop])
            self._table.settle()
            at = stop
        lengths = self._table.plan()[LENGTH].take(ids)
        return ids, np.cumsum(lengths + 1, dtype=np.int64) - lengths - 1, lengths

    def _records(self, lines: list[bytes]) -> Array:
        if not self._table.crowded:
            return np.fromiter(map(self._table.__getitem__, lines), np.intp, len(lines))
        ids = np.fromiter(map(self._table.get, lines, repeat(-1)), np.intp, len(lines))
        unknown = np.flatnonzero(ids < 0)
        ids[unknown] = self._table.find([lines[i] for i in unknown.tolist()])
        return ids


_BLOCK = 1 << 17
"""Bytes masked at once: as many as stay in the nearest memory."""


def _masked(text: Array) -> bytes:
    """Text with its digits as zeros: what `bytes.translate` gives, a third as long under way."""
    out, above, digit = np.empty(len(text), np.uint8), np.empty(_BLOCK, np.uint8), np.empty(_BLOCK, np.uint8)
    for start in range(0, len(text), _BLOCK):
        block = text[start : start + _BLOCK]
        size = len(block)
        np.subtract(block, 48, out=above[:size])
        np.less(above[:size], 10, out=digit[:size].view(bool))
        np.multiply(above[:size], digit[:size], out=above[:size])
        np.subtract(block, above[:size], out=out[start : start + size])
    return out.tobytes()


class NumpyKernel:
    """The default: no compiler needed."""

    def __init__(self, table: MaskTable) -> None:
        self._table = table

    def lines(self, padded: bytes | memoryview) -> Lines:
        return NumpyLines(self._table, padded)

    def select(self, ids: Array, dropped: Array | None) -> Selection:
        plan, marks = self._table.plan(), self._table.marks()
        found = marks.take(ids)
        line_of, records = None, ids
        if dropped is not None or bool((found & MULTI).any()):
            parts = plan[PARTS].take(ids).astype(np.int64)
            if dropped is not None:
                parts[dropped] = 0
            line_of = np.repeat(np.arange(len(ids)), parts)
            records = ids[line_of] + np.arange(len(line_of)) - (np.cumsum(parts) - parts)[line_of]
            found = marks.take(records)
        kinds = found & KINDS
        stamps = _Stamps(found, line_of, records)
        picks = {}
        for kind in CHOSEN:
            chosen = kinds == kind
            if kind == ROW:
                chosen |= kinds == ACCESS
            picks[kind] = stamps.picks(np.flatnonzero(chosen))
        last = stamps.picks(np.array([len(records) - 1] if len(records) else [], np.intp))
        stamp = (int(last.stamp_line[0]), int(last.stamp_record[0])) if len(records) else (-1, -1)
        return Selection(np.bincount(records, minlength=plan.shape[1]), picks, *stamp)

    def columns(self, words: Words8, tables: Tables, wanted: list[int], slots: Array, at: Array) -> Columns:
        values: list[Array] = []
        slow: list[tuple[int, int]] = []
        for number, column in enumerate(wanted):
            found, hard = self._column(words, tables[0][column], tables[1][column], slots, at)
            values.append(found)
            slow += [(number, i) for i in hard.tolist()]
        return values, slow

    def times(self, records: Array, at: Array, base_day: int, before: float) -> Array | None:
        return None

    def ranks(self, records: Array, at: Array, number: RankNumber) -> Array | None:
        return None

    def thinned(self, picks: Picks, columns: tuple[int, ...], base: int, step: int) -> Array | None:
        return None

    def _column(self, words: Words8, entry: Array, constants: Array, slots: Array, at: Array) -> tuple[Array, Array]:
        """Values of one column, and the indices of those to be read one by one."""
        width = entry[SLOT_WIDTH].take(slots, mode="clip")
        if bool((width > 0).all()) and bool((slots >= 0).all()):
            return self._numbers(words, entry, slots, at, width), np.zeros(0, np.int64)
        width = np.where(slots >= 0, width, 0)
        values = np.where(slots >= 0, constants[slots], np.nan)
        fast = np.flatnonzero(width > 0)
        if len(fast):
            values[fast] = self._numbers(words, entry, slots[fast], at[fast], width[fast])
        return values, np.flatnonzero(width == SLOW)

    @staticmethod
    def _numbers(words: Words8, entry: Array, slots: Array, at: Array, width: Array) -> Array:
        """The numbers of lines that all have one."""
        end = at + entry[SLOT_END].take(slots)
        number: Array = words.digits(end, width).astype(np.float64)
        fraction = entry[SLOT_FRACTION].take(slots)
        if fraction.any():
            end += fraction
            end += 1
            part = words.digits(end, fraction).astype(np.float64)
            part /= POWERS.take(fraction)
            number += part
        if entry[SLOT_NEGATIVE].any():
            number = np.where(entry[SLOT_NEGATIVE].take(slots) != 0, -number, number)
        return number


POWERS = 10.0 ** np.arange(20)


class _Stamps:
    """The stamps of all parts of a chunk. Nearly all parts bear their own, so that the others are looked up."""

    def __init__(self, marks: Array, line_of: Array | None, records: Array) -> None:
        self._line_of, self._records = line_of, records
        self._bare = np.flatnonzero((marks & STAMP) == 0)
        runs = np.arange(len(self._bare))
        if len(runs) > 1:
            runs[1:][np.diff(self._bare) == 1] = 0
        self._stamp = self._bare[np.maximum.accumulate(runs)] - 1
        """Of each part without a stamp the last part above it that has one."""

    def picks(self, chosen: Array) -> Picks:
        """Chosen parts with their stamps."""
        source = chosen
        if len(self._bare):
            place = np.searchsorted(self._bare, chosen)
            bare = self._bare.take(place, mode="clip") == chosen
            source = np.where(bare, self._stamp.take(place, mode="clip"), chosen)
        return Picks(self._lines(chosen), self._records.take(chosen), self._lines(source), self._of(source))

    def _lines(self, parts: Array) -> Array:
        if self._line_of is None:
            return parts
        return np.where(parts >= 0, self._line_of.take(parts, mode="clip"), -1)

    def _of(self, parts: Array) -> Array:
        return np.where(parts >= 0, self._records.take(parts, mode="clip"), -1)
