"""The compiled kernel (extra `fast`, needs numba): lines found, masked and hashed eight bytes at a time.

A mask is known by its 64-bit hash, length included; the numpy kernel, which compares whole masks, is the oracle that
tests hold this one to.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.lines import POWERS, Lines
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.numbers import PAD, PADDING, Words8
from forensics.engine.record import LineReader
from forensics.engine.records import LONG_LINE, MaskTable
from forensics.errors import UsageError

Array = npt.NDArray[Any]
SLOTS = 1 << 18
"""Places in the hash table; it is emptied when half of them are taken."""


def available() -> bool:
    """Whether numba is installed."""
    return importlib.util.find_spec("numba") is not None


def _split(words: Any, start: int, stop: int, at: Any, length: Any, hashes: Any) -> int:
    """Start, length and masked hash of each line of [start, stop); gives the number of lines, -1 where there are more
    than the arrays hold.

    `words` are the unaligned 8-byte words of the padded chunk. The padding holds newlines, so that a search for the
    end of a line always ends."""
    low, high = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    seven = np.uint64(0x7F7F7F7F7F7F7F7F)
    newline = np.uint64(0x0A0A0A0A0A0A0A0A)
    from_zero, past_nine = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
    zeros = np.uint64(0x3030303030303030)
    mix, seed = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xCBF29CE484222325)
    one, eight, shift, full = np.uint64(1), np.uint64(8), np.uint64(32), np.uint64(255)
    seven_bits = np.uint64(7)
    count = 0
    position = start
    room = len(at)
    while position < stop:
        if count == room:
            return -1
        begin = position
        state = seed
        while True:
            word = words[position]
            digit = ((word & seven) + from_zero) & ~((word & seven) + past_nine) & ~word & high
            cover = (digit >> seven_bits) * full
            masked = (word & ~cover) | (zeros & cover)
            other = word ^ newline
            ends = (other - low) & ~other & high
            if ends:
                size = 0
                while not (ends & full):
                    ends >>= eight
                    size += 1
                if size:
                    masked &= (one << np.uint64(8 * size)) - one
                    state = (state ^ masked) * mix
                    state ^= state >> shift
                position += size
                break
            state = (state ^ masked) * mix
            state ^= state >> shift
            position += 8
        if position > stop:
            position = stop
        at[count] = begin
        length[count] = position - begin
        # The length goes in: a hash of equal words and another number of zero bytes is another line.
        state = (state ^ np.uint64(position - begin)) * mix
        hashes[count] = state ^ (state >> shift)
        count += 1
        position += 1
    return count


def _find(hashes: Any, count: int, keys: Any, values: Any, ids: Any, unknown: Any) -> int:
    """Look hashes up; gives how many are unknown, their indices in `unknown`."""
    missing = 0
    last = np.uint64(len(keys) - 1)
    one = np.uint64(1)
    for i in range(count):
        slot = hashes[i] & last
        while values[slot] >= 0 and keys[slot] != hashes[i]:
            slot = (slot + one) & last
        ids[i] = values[slot]
        if values[slot] < 0:
            unknown[missing] = i
            missing += 1
    return missing


def _column(
    data: Any, pad: int, entry: Any, constants: Any, slots: Any, at: Any, powers: Any, out: Any, slow: Any
) -> int:
    """Values of one column; gives how many have to be read one by one, their indices in `slow`."""
    hard = 0
    for i in range(len(slots)):
        slot = slots[i]
        if slot < 0:
            out[i] = np.nan
            continue
        width = entry[2, slot]
        if width <= 0:
            out[i] = constants[slot]
            if width < 0:
                slow[hard] = i
                hard += 1
            continue
        stop = at[i] + entry[1, slot] + pad
        whole = 0
        for k in range(stop - width, stop):
            whole = whole * 10 + (data[k] - 48)
        value = float(whole)
        fraction = entry[3, slot]
        if fraction:
            part = 0
            for k in range(stop + 1, stop + 1 + fraction):
                part = part * 10 + (data[k] - 48)
            value += part / powers[fraction]
        out[i] = -value if entry[4, slot] else value
    return hard


def _extremes(values: Any, key: Any, best: Any, place: Any) -> None:
    """The first lines with the lowest and the highest value in each group (`key`): values in `best`, indices in
    `place`. nan is neither."""
    for i in range(len(values)):
        value, group = values[i], key[i]
        if value < best[group, 0]:
            best[group, 0] = value
            place[group, 0] = i
        if value > best[group, 1]:
            best[group, 1] = value
            place[group, 1] = i


ROOM = 1 << 16
"""Lines that a chunk is first taken to have."""
_compiled: dict[str, Any] = {}


def _kernels() -> dict[str, Any]:
    if not _compiled:
        try:
            import numba
        except ImportError:
            raise UsageError(
                "the compiled engine needs numba", hint="pip install 'sglang-forensics[fast]', or --engine numpy"
            ) from None
        for function in (_split, _find, _column, _extremes):
            _compiled[function.__name__] = numba.njit(cache=True, nogil=True)(function)
    return _compiled


def prepare() -> None:
    """Load the compiler and the kernels, so that processes that are forked later share them."""
    table = MaskTable(LineReader(), outer_time=False)
    kernel = CompiledKernel(table)
    kernel.lines(PADDING + b"\n" + PADDING).lookup(1)
    none, nowhere = np.zeros(0, np.int32), np.zeros(0, np.int64)
    kernel.column(Words8(PADDING), np.zeros((5, 1), np.int32), np.zeros(1), none, nowhere)
    kernel.kept(np.zeros(1, np.int64), {"none": np.zeros(1)})


class CompiledLines:
    """The lines of one chunk as places and hashes."""

    def __init__(self, kernel: CompiledKernel, padded: bytes) -> None:
        self._kernel = kernel
        self._padded = padded
        size = len(padded) - 2 * PAD
        words = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))
        self.count = -1
        while self.count < 0:
            room = kernel.room
            self.at, self.length = np.empty(room, np.int64), np.empty(room, np.int64)
            self.hashes = np.empty(room, np.uint64)
            self.count = int(_kernels()["_split"](words, PAD, PAD + size, self.at, self.length, self.hashes))
            # To count the lines first would take as long as to split them.
            kernel.room = room if self.count >= 0 else room * 4

    def line(self, index: int) -> bytes:
        index %= self.count
        start = int(self.at[index])
        return self._padded[start : start + int(self.length[index])].translate(DIGITS_TO_ZERO)

    def lookup(self, count: int) -> tuple[Array, Array]:
        ids = np.empty(count, np.int64)
        unknown = np.empty(count, np.int64)
        missing = self._kernel.find(self.hashes, count, ids, unknown)
        fresh: dict[int, int] = {}
        for index in unknown[:missing].tolist():
            key = int(self.hashes[index])
            found = fresh.get(key)
            if found is None:
                found = self._kernel.table[self.line(index)]
                if self.length[index] <= LONG_LINE:
                    fresh[key] = found
            ids[index] = found
        self._kernel.insert(fresh)
        return ids, self.length[:count]


class CompiledKernel:
    """Hash table from masks to records, in front of a MaskTable."""

    def __init__(self, table: MaskTable) -> None:
        _kernels()
        self.table = table
        self._generation = table.generation
        self._keys = np.zeros(SLOTS, np.uint64)
        self._values = np.full(SLOTS, -1, np.int64)
        self._used = 0
        self.room = ROOM
        """Lines that the arrays of the next chunk hold."""

    def lines(self, padded: bytes) -> Lines:
        if self._generation != self.table.generation or self._used > SLOTS // 2:
            self._generation = self.table.generation
            self._values.fill(-1)
            self._used = 0
        return CompiledLines(self, padded)

    def find(self, hashes: Array, count: int, ids: Array, unknown: Array) -> int:
        """Record numbers of hashes; gives how many are unknown."""
        return int(_kernels()["_find"](hashes, count, self._keys, self._values, ids, unknown))

    def insert(self, fresh: dict[int, int]) -> None:
        """Remember new masks, as many as the table holds."""
        for key, value in fresh.items():
            if self._used >= SLOTS * 3 // 4:
                return
            slot = key & (SLOTS - 1)
            while self._values[slot] >= 0:
                slot = (slot + 1) & (SLOTS - 1)
            self._keys[slot], self._values[slot] = key, value
            self._used += 1

    def column(self, words: Words8, entry: Array, constants: Array, slots: Array, at: Array) -> tuple[Array, Array]:
        out, slow = np.empty(len(slots)), np.empty(len(slots), np.int64)
        data = np.frombuffer(words.padded, np.uint8)
        hard = int(_kernels()["_column"](data, PAD, entry, constants, slots, at, POWERS, out, slow))
        return out, slow[:hard]

    def kept(self, key: Array, metrics: dict[str, Array]) -> Array:
        groups = int(key.max()) + 1
        lines = np.arange(len(key))
        ends = np.full((groups, 2), -1)
        ends[key[::-1], 0], ends[key, 1] = lines[::-1], lines
        keep = np.zeros(len(key), bool)
        keep[ends[ends >= 0]] = True
        for values in metrics.values():
            best, place = np.tile((np.inf, -np.inf), (groups, 1)), np.full((groups, 2), -1)
            _kernels()["_extremes"](values, key, best, place)
            keep[place[place >= 0]] = True
        return np.flatnonzero(keep)
