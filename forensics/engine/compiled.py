"""The compiled kernel (extra `fast`, needs numba): lines found, masked, hashed, looked up and sorted in machine code.

A mask is known by its 64-bit hash, length included; the numpy kernel, which compares whole masks, is the oracle that
tests hold this one to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.chunk import RANKS_AT_ONCE
from forensics.engine.compiled_code import available, loops
from forensics.engine.lines import CHOSEN, POWERS, Lines, Picks, Selection
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.numbers import PAD, Words8
from forensics.engine.records import LONG_LINE, PARTS, SLOTS, SLOW, MaskTable

__all__ = ["CompiledKernel", "available", "prepare"]

Array = npt.NDArray[Any]
PLACES = 1 << 17
"""Places in the hash table; it is emptied when half of them are taken."""
ROOM = 1 << 16
"""Lines that a chunk is first taken to have."""
RANKS = 2 * RANKS_AT_ONCE
"""Places for the ranks of one chunk, half of which are used; with more of them numpy thins the series."""


def prepare() -> None:
    """Load the machine code, so that processes that are forked later share it."""
    loops()


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]  # type: ignore[no-any-return]


class CompiledLines:
    """The lines of one chunk as places and records."""

    def __init__(self, kernel: CompiledKernel, padded: bytes | memoryview) -> None:
        self.kernel, self.padded = kernel, padded
        self.count = -1
        while self.count < 0:
            self.count = kernel.split(padded)
        self._start, self._length, self._ids, self._unknown = kernel.lines_table

    def line(self, index: int) -> bytes:
        index %= self.count
        start = int(self._start[index]) + PAD
        return bytes(self.padded[start : start + int(self._length[index])]).translate(DIGITS_TO_ZERO)

    def lookup(self, count: int) -> tuple[Array, Array, Array]:
        ids, hashes = self._ids, self.kernel.state
        fresh: dict[int, int] = {}
        for number, index in enumerate(self._unknown[: int(hashes[0])].tolist()):
            if index >= count:
                break
            key = int(hashes[1 + number])
            found = fresh.get(key)
            if found is None:
                found = self.kernel.table[self.line(index)]
                if self._length[index] <= LONG_LINE:
                    fresh[key] = found
            ids[index] = found
        self.kernel.insert(fresh)
        return ids[:count], self._start[:count], self._length[:count]


class CompiledKernel:
    """Hash table from masks to records, in front of a MaskTable. Arrays are reused from chunk to chunk: what a chunk's
    lines and picks hold is good until the next chunk is split."""

    def __init__(self, table: MaskTable) -> None:
        self._loops = loops()
        self.table = table
        self._generation = table.generation
        self._keys, self._values = np.zeros(PLACES, np.uint64), np.full(PLACES, -1, np.int32)
        self._used = 0
        self._plain = np.zeros(LONG_LINE + 2 * PAD, np.uint8)
        self._text = 0
        self._places = _MetricPlaces(table)
        self._make_room(ROOM)

    def _make_room(self, room: int) -> None:
        """Arrays for chunks of up to so many lines."""
        self._room = room
        self.lines_table = np.zeros((4, room), np.int32)
        self.state = np.zeros(room + 8, np.int64)
        self._dropped = np.zeros(room, np.uint8)
        self._picked = np.zeros((len(CHOSEN), 4, room), np.int32)

    def lines(self, padded: bytes | memoryview) -> Lines:
        if self._generation != self.table.generation or self._used > PLACES // 2:
            self._generation = self.table.generation
            self._values.fill(-1)
            self._used = 0
        return CompiledLines(self, padded)

    def split(self, padded: bytes | memoryview) -> int:
        """Find and look up the lines of a chunk; -1: there is room for them now, and it has to be tried again."""
        self._text = _address(np.frombuffer(padded, np.uint8)) + PAD
        # Past the cap the table decides anew about each line that it has not seen.
        longest = -1 if self.table.reader.capped else LONG_LINE
        tables = _address(self._keys), _address(self._values), PLACES - 1, self._room
        out = _address(self.lines_table), _address(self.state)
        size = len(padded) - 2 * PAD
        count = self._loops["split"](self._text, size, _address(self._plain), longest, *tables, *out)
        if count < 0:
            # To count the lines first would take as long as to split them.
            self._make_room(self._room * 4)
        return count

    def insert(self, fresh: dict[int, int]) -> None:
        """Remember new masks, as many as the table holds."""
        for key, value in fresh.items():
            if self._used >= PLACES * 3 // 4:
                return
            key &= (1 << 64) - 1
            slot = key & (PLACES - 1)
            while self._values[slot] >= 0:
                slot = (slot + 1) & (PLACES - 1)
            self._keys[slot], self._values[slot] = key, value
            self._used += 1

    def select(self, ids: Array, dropped: Array | None) -> Selection:
        plan, marks = self.table.plan(), self.table.marks()
        status = self.table.slots()[0][0]
        uses = np.zeros(plan.shape[1], np.int64)
        state = np.zeros(5, np.int64)
        gone = self._dropped if dropped is None else dropped.view(np.uint8)
        records = _address(marks), _address(plan[PARTS]), _address(uses), _address(plan[SLOTS])
        lines = len(ids), _address(self.lines_table), self._room, _address(gone)
        table = _address(status), status.shape[1]
        while True:
            out = _address(self._picked), self._picked.shape[2], _address(state)
            if not self._loops["select"](self._text, *lines, *records, *table, *out):
                break
            # Glued lines have several parts each, so that there can be more of these than of lines.
            self._picked = np.zeros((len(CHOSEN), 4, 4 * self._picked.shape[2]), np.int32)
            uses.fill(0)
        picks = {k: Picks(*self._picked[i, :, : state[i]]) for i, k in enumerate(CHOSEN)}
        return Selection(uses, picks, int(state[3]), int(state[4]))

    def column(self, words: Words8, entry: Array, constants: Array, slots: Array, at: Array) -> tuple[Array, Array]:
        count = len(slots)
        slots, at = slots.astype(np.int32, copy=False), at.astype(np.int64, copy=False)
        out, slow = np.empty(count), np.empty(count, np.int64)
        text = _address(np.frombuffer(words.padded, np.uint8)) + PAD
        tables = _address(entry), entry.shape[1], _address(constants), _address(POWERS)
        hard = self._loops["column"](text, count, _address(at), _address(slots), *tables, _address(out), _address(slow))
        return out, slow[:hard]

    def thinned(self, picks: Picks, columns: tuple[int, ...], base: int, step: int) -> Array | None:
        plan = self.table.plan()
        metrics, count = len(columns), len(picks.line)
        axes = np.array([*map(len, self.table.axes), 0], np.int32)
        keys, ends = np.full((RANKS, 2), -1, np.int64), np.empty((RANKS, 2), np.int32)
        best, place = np.empty((RANKS, metrics, 2)), np.empty((RANKS, metrics, 2), np.int32)
        keep = np.zeros(count, np.uint8)
        where = _address(picks.line), _address(picks.record), _address(self.lines_table), base, step
        places = _address(self._places.of(columns)), metrics, _address(POWERS)
        groups = RANKS, _address(keys), _address(ends), _address(best), _address(place)
        tables = _address(plan), plan.shape[1], _address(axes), *places
        left = self._loops["thin"](self._text, count, *where, *tables, *groups, _address(keep))
        return None if left else np.flatnonzero(keep)


class _MetricPlaces:
    """Of each number plan the places of a few columns' numbers, side by side; grows as the table does."""

    def __init__(self, table: MaskTable) -> None:
        self._table = table
        self._of: dict[tuple[int, ...], tuple[int, int, Array]] = {}

    def of(self, columns: tuple[int, ...]) -> Array:
        """End, width, fraction and sign by plan and column."""
        numbers, constants = self._table.slots()
        generation, have, places = self._of.get(columns, (-1, 0, np.zeros((0, len(columns), 4), np.int32)))
        wanted = numbers.shape[2]
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
