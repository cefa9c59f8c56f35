"""The compiled kernel (extra `fast`, needs numba): lines found, masked, hashed, looked up and sorted in machine code.

A mask is known by its length and its 64-bit hash under a seed of the process; the numpy kernel, which compares whole
masks, is the oracle that tests hold this one to.
"""

from __future__ import annotations

import os
from ctypes import string_at
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.chunk import RANKS_AT_ONCE
from forensics.engine.compiled_code import FREE, RADIX, SPREAD, at_hand, available, loops, works
from forensics.engine.lines import CHOSEN, POWERS, Columns, Lines, Picks, RankNumber, Selection, Tables
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.numbers import DATE_BYTES, PAD, Words8, day_of_word
from forensics.engine.record import ACCESS, ROW
from forensics.engine.records import CLASSES, DATE_AT, FORM, LONG_LINE, PARTS, SLOTS, SLOW, MaskTable
from forensics.engine.thin import METRICS

__all__ = ["CompiledKernel", "at_hand", "available", "prepare", "works"]

Array = npt.NDArray[Any]
PLACES = 1 << 17
"""Places in the hash table; it is emptied when half of them are taken."""
MANY = 4096
"""New lines from which on the whole chunk is masked at once."""
ROOM = 1 << 16
"""Lines that a chunk is first taken to have."""
MANY_DATES = 64
"""Changes of the date in one chunk from which on numpy reads the times."""
RANKS = 2 * RANKS_AT_ONCE
"""Places for the ranks of one chunk, half of which are used; with more of them numpy thins the series."""
RANK_PLACES = 1 << 14
"""Places in the hash table of ranks."""


def prepare() -> None:
    """Load the machine code, so that processes that are forked later share it."""
    loops()


def _address(array: Array) -> int:
    return array.ctypes.data


_POWERS = _address(POWERS)
_FORMS = np.zeros((max(DATE_BYTES) + 8, 2), np.int32)
"""Of each form of stamps where its date begins and how many bytes tell dates apart."""
for _form, _place in DATE_BYTES.items():
    _FORMS[_form] = _place


class CompiledLines:
    """The lines of one chunk as places and records."""

    def __init__(self, kernel: CompiledKernel, padded: bytes | memoryview) -> None:
        self.kernel, self.padded = kernel, padded
        self.count = -1
        while self.count < 0:
            self.count = kernel.split(padded)
        self._start, self._length, self._ids, self._new, self._places = kernel.lines_table

    def line(self, index: int) -> bytes:
        index %= self.count
        start = int(self._start[index]) + PAD
        return bytes(self.padded[start : start + int(self._length[index])]).translate(DIGITS_TO_ZERO)

    def lookup(self, count: int) -> tuple[Array, Array, Array]:
        ids, missing = self._ids[: self.count], self.kernel.missing
        if missing:
            records = self.kernel.table.find(self._masked(self._new[:missing])).astype(np.int32)
            self.kernel.learn(self._places[:missing], records)
            unknown = np.flatnonzero(ids < 0)
            ids[unknown] = records[-2 - ids[unknown]]
        return ids[:count], self._start[:count], self._length[:count]

    def _masked(self, indices: Array) -> list[bytes]:
        """Masked lines."""
        if len(indices) < MANY:
            return [self.line(index) for index in indices.tolist()]
        text = bytes(self.padded).translate(DIGITS_TO_ZERO)
        start = self._start[indices] + PAD
        return [text[at:end] for at, end in zip(start.tolist(), (start + self._length[indices]).tolist(), strict=True)]


class CompiledKernel:
    """Hash table from masks to records, in front of a MaskTable. Arrays are reused from chunk to chunk: what a chunk's
    lines and picks hold is good until the next chunk is split."""

    def __init__(self, table: MaskTable) -> None:
        self._loops = loops()
        self.table = table
        self._generation = table.generation
        self._seed = int.from_bytes(os.urandom(8), "little", signed=True)
        self._keys, self._sizes = np.zeros(PLACES, np.uint64), np.zeros(PLACES, np.int32)
        self._values = np.full(PLACES, FREE, np.int32)
        self._used = self._before = 0
        self.missing = 0
        """New masks in the chunk, as long as their records are not known."""
        self._plain = np.zeros(LONG_LINE + 2 * PAD, np.uint8)
        self._text = 0
        self._day = 0, 0, 0.0
        """The date last met: its bytes, its form, and the seconds from 1970 up to it."""
        self._places, self._ranks = _MetricPlaces(table), _RankNumbers()
        sizes = (2, np.int64), (2, np.int32), (2 * len(METRICS), np.float64), (2 * len(METRICS), np.int32)
        self._groups = [np.empty((RANKS, width), kind) for width, kind in sizes]
        self._make_room(ROOM)

    def _make_room(self, room: int) -> None:
        """Arrays for chunks of up to so many lines."""
        self._room = room
        self.lines_table = np.zeros((5, room), np.int32)
        self._dropped = np.zeros(room, np.uint8)
        self._picked = np.zeros((CLASSES, 4, room), np.int32)

    def lines(self, padded: bytes | memoryview) -> Lines:
        if self._generation != self.table.generation or self._used > PLACES // 2:
            self._generation = self.table.generation
            self._forget()
        elif self.missing:
            self._take_back()
        return CompiledLines(self, padded)

    def split(self, padded: bytes | memoryview) -> int:
        """Find and look up the lines of a chunk; -1: there is room for them now, and it has to be tried again."""
        self._text = _address(np.frombuffer(padded, np.uint8)) + PAD
        state = np.zeros(2, np.int64)
        tables = _address(self._keys), _address(self._sizes), _address(self._values), PLACES - 1, self._used, self._room
        text = self._text, len(padded) - 2 * PAD, _address(self._plain), LONG_LINE, LONG_LINE, self._seed
        count = self._loops["split"](*text, *tables, _address(self.lines_table), _address(state))
        if count < 0:
            # To count the lines first would take as long as to split them.
            self._make_room(self._room * 4)
            self._take_back()
        else:
            self.missing, used = state.tolist()
            self._before, self._used = self._used, used
        return count

    def learn(self, places: Array, records: Array) -> None:
        """Remember the records of the new masks."""
        self.missing = 0
        have = np.flatnonzero(places >= 0)
        self._values[places[have]] = records[have]

    def _take_back(self) -> None:
        """Free the places of masks that were not read. They were taken last, so that no other is behind them."""
        self._values[self._values < FREE] = FREE
        self.missing, self._used = 0, self._before

    def _forget(self) -> None:
        self._values.fill(FREE)
        self.missing = self._used = self._before = 0

    def select(self, ids: Array, dropped: Array | None) -> Selection:
        plan, marks = self.table.plan(), self.table.marks()
        status = self.table.slots()[0][0]
        uses, state = np.zeros(plan.shape[1], np.int64), np.zeros(CLASSES + 2, np.int64)
        gone = self._dropped if dropped is None else dropped.view(np.uint8)
        records = _address(marks), _address(plan[PARTS]), _address(uses), _address(plan[SLOTS])
        lines = len(ids), _address(self.lines_table), self._room, _address(gone)
        table = _address(status), status.shape[1]
        while True:
            out = _address(self._picked), self._picked.shape[2], _address(state)
            if not self._loops["select"](self._text, *lines, *records, *table, *out):
                break
            # Glued lines have several parts each, so that there can be more of these than of lines.
            self._picked = np.zeros((CLASSES, 4, 4 * self._picked.shape[2]), np.int32)
            uses.fill(0)
        *counts, stamp_line, stamp_record = state.tolist()
        picks = {kind: Picks(*self._picked[kind, :, : counts[kind]]) for kind in CHOSEN}
        if counts[ACCESS]:
            both = np.concatenate([self._picked[kind, :, : counts[kind]] for kind in (ROW, ACCESS)], axis=1)
            picks[ROW] = Picks(*both[:, np.lexsort(both[1::-1])])
        return Selection(uses, picks, stamp_line, stamp_record)

    def columns(self, words: Words8, tables: Tables, wanted: list[int], slots: Array, at: Array) -> Columns:
        numbers, constants = tables
        out, slow = np.empty((len(wanted), len(at))), np.empty(len(wanted) * len(at), np.int64)
        which, slots = np.array(wanted, np.int32), slots.astype(np.int32, copy=False)
        lines = self._text, len(at), _address(at), _address(slots), _address(which), len(wanted)
        places = _address(numbers), _address(constants), numbers.shape[2], _POWERS
        hard = self._loops["columns"](*lines, *places, _address(out), _address(slow))
        # Each by itself: they are let go one by one, later.
        return [row.copy() for row in out], [divmod(place, len(at)) for place in slow[:hard].tolist()]

    def times(self, records: Array, at: Array, base_day: int, before: float) -> Array | None:
        plan, count, done, dates = self.table.plan(), len(at), 0, MANY_DATES
        out, records = np.empty(count), records.astype(np.int32, copy=False)
        stamps = count, _address(records), _address(at), _address(plan), plan.shape[1], _address(_FORMS)
        while True:
            day, others = np.array(self._day[:2], np.uint64), np.array([self._day[2], base_day * 86400.0, before])
            known = _address(day), _address(others), _POWERS
            done = self._loops["times"](self._text, done, *stamps, *known, _address(out))
            if done == count:
                return out
            dates -= 1
            if not dates:
                return None
            form = int(plan[FORM, records[done]])
            start, width = _FORMS[form].tolist()
            place = self._text + int(at[done]) + int(plan[DATE_AT, records[done]]) + start
            word = int.from_bytes(string_at(place, width), "little")
            self._day = word, form, day_of_word(word, form, base_day) * 86400.0

    def ranks(self, records: Array, at: Array, number: RankNumber) -> Array | None:
        plan = self.table.plan()
        records = records.astype(np.int32, copy=False)
        out, unknown = np.empty(len(at), np.int16), np.empty((len(at), 2), np.int64)
        lines = self._text, len(at), _address(records), _address(at), _address(plan), plan.shape[1]
        axes = np.array([*map(len, self.table.axes), 0], np.int32)
        keys, numbers = self._ranks.keys, self._ranks.numbers
        known = _address(axes), _address(keys), _address(numbers), len(keys) - 1
        missing = self._loops["ranks"](*lines, *known, _address(out), _address(unknown))
        if missing < 0:
            return None
        if missing:
            self._ranks.learn(unknown[:missing], out, list(self.table.axes), number)
        return out

    def thinned(self, picks: Picks, columns: tuple[int, ...], base: int, step: int) -> Array | None:
        plan = self.table.plan()
        metrics, count = len(columns), len(picks.line)
        axes = np.array([*map(len, self.table.axes), 0], np.int32)
        keys, ends, best, place = self._groups
        keys.fill(-1)
        keep = np.zeros(count, np.uint8)
        where = _address(picks.line), _address(picks.record), _address(self.lines_table), base, step
        places = _address(self._places.of(columns)), metrics, _POWERS
        groups = RANKS, _address(keys), _address(ends), _address(best), _address(place)
        tables = _address(plan), plan.shape[1], _address(axes), *places
        left = self._loops["thin"](self._text, count, *where, *tables, *groups, _address(keep))
        return None if left else np.flatnonzero(keep.view(bool))


class _RankNumbers:
    """Hash table from the keys of ranks to their numbers; a place with key 0 is free."""

    def __init__(self) -> None:
        self.keys, self.numbers = np.zeros(RANK_PLACES, np.int64), np.zeros(RANK_PLACES, np.int16)
        self._known: dict[int, int] = {}

    def learn(self, unknown: Array, out: Array, axes: list[tuple[str, ...]], number: RankNumber) -> None:
        """Ask for the `number` of each key that is new, in a fixed order; `unknown` has the place in `out` and the
        key of each line."""
        keys = {int(k): _axes_and_places(int(k), axes) for k in np.unique(unknown[:, 1])}
        for key, (combination, places) in sorted(keys.items(), key=lambda item: item[1]):
            if key not in self._known:
                self._known[key] = number(axes[combination], places)
                if len(self._known) <= RANK_PLACES // 2:
                    self._insert(key)
        for index, key in unknown.tolist():
            out[index] = self._known[key]

    def _insert(self, key: int) -> None:
        slot = ((key * SPREAD) & ((1 << 64) - 1)) >> 40 & (RANK_PLACES - 1)
        while self.keys[slot]:
            slot = (slot + 1) & (RANK_PLACES - 1)
        self.keys[slot], self.numbers[slot] = key, self._known[key]


def _axes_and_places(key: int, axes: list[tuple[str, ...]]) -> tuple[int, tuple[int, ...]]:
    """Number of the combination of axes in a rank's key, and the rank's place on each."""
    places: list[int] = []
    while key > len(axes) or len(places) < len(axes[key - 1]):
        key, place = divmod(key, RADIX)
        places.append(place)
    return key - 1, tuple(reversed(places))


class _MetricPlaces:
    """Of each number plan the places of a few columns' numbers, side by side; grows as the table does."""

    def __init__(self, table: MaskTable) -> None:
        self._table = table
        self._of: dict[tuple[int, ...], tuple[int, int, Array]] = {}

    def of(self, columns: tuple[int, ...]) -> Array:
        """End, width, fraction and sign by plan and column."""
        numbers, constants = self._table.slots()
        generation, have, places = self._of.get(columns, (-1, 0, np.zeros((0, len(columns), 4), np.int32)))
        wanted = self._table.plans
        if generation != self._table.generation:
            have = 0
        if len(places) < wanted:
            grown = np.zeros((wanted * 2, len(columns), 4), np.int32)
            grown[:have] = places[:have]
            places = grown
        if have < wanted:
            picked = list(columns)
            fresh = numbers[picked, 1:5, have:wanted].transpose(2, 0, 1)
            places[have:wanted] = fresh
            # A word instead of a number is left to numpy, as what has no simple number is.
            odd = ~np.isnan(constants[picked, have:wanted].T) & (fresh[:, :, 1] == 0)
            places[have:wanted, :, 1][odd] = SLOW
        self._of[columns] = self._table.generation, wanted, places
        return places
