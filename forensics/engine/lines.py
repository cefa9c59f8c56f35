"""From a chunk to the number of each line's mask: the part of the scan that has two implementations.

`NumpyLines` splits and looks up in plain Python and numpy; `forensics.engine.compiled` does the same in machine code
(extra `fast`). Both ask the same MaskTable, so that they agree by construction wherever hashes do not collide.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from forensics.engine import thin
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.numbers import PAD, Words8
from forensics.engine.records import LENGTH, SLOT_END, SLOT_FRACTION, SLOT_NEGATIVE, SLOT_WIDTH, SLOW, MaskTable

Array = npt.NDArray[Any]


class Lines(Protocol):
    """The lines of one padded chunk."""

    count: int

    def line(self, index: int) -> bytes:
        """One masked line; negative numbers count from the end."""
        ...

    def lookup(self, count: int) -> tuple[Array, Array]:
        """Record numbers and lengths of the first `count` lines (both int64)."""
        ...


class Kernel(Protocol):
    """Splits chunks and reads numbers. One per source and process."""

    def lines(self, padded: bytes) -> Lines:
        """The lines of a chunk that stands between PADDING."""
        ...

    def column(self, words: Words8, entry: Array, constants: Array, slots: Array, at: Array) -> tuple[Array, Array]:
        """One column of hot lines that start at `at`: values (float64, nan where a line has none) and the indices of
        those that have to be read one by one. `entry` (field, plan) and `constants` (plan) are the places of this
        column's number, `slots` the plan of each line (-1: none)."""
        ...

    def kept(self, key: Array, metrics: dict[str, Array]) -> Array:
        """`forensics.engine.thin.kept`."""
        ...


class NumpyLines:
    """Lines as a list of bytes, looked up in the dict."""

    def __init__(self, table: MaskTable, padded: bytes) -> None:
        self._table = table
        self._lines = padded.translate(DIGITS_TO_ZERO).split(b"\n")[PAD:-PAD]
        if padded[-PAD - 1] == 10:
            self._lines.pop()
        self.count = len(self._lines)

    def line(self, index: int) -> bytes:
        return self._lines[index]

    def lookup(self, count: int) -> tuple[Array, Array]:
        ids = np.fromiter(map(self._table.__getitem__, self._lines[:count]), np.int64, count)
        return ids, self._table.plan()[LENGTH][ids].astype(np.int64)


class NumpyKernel:
    """The default: no compiler needed."""

    def __init__(self, table: MaskTable) -> None:
        self._table = table

    def lines(self, padded: bytes) -> Lines:
        return NumpyLines(self._table, padded)

    def column(self, words: Words8, entry: Array, constants: Array, slots: Array, at: Array) -> tuple[Array, Array]:
        width = entry[SLOT_WIDTH].take(slots, mode="clip")
        if bool((width > 0).all()) and bool((slots >= 0).all()):
            return self._numbers(words, entry, slots, at, width), np.zeros(0, np.int64)
        width = np.where(slots >= 0, width, 0)
        values = np.where(slots >= 0, constants[slots], np.nan)
        fast = np.flatnonzero(width > 0)
        if len(fast):
            values[fast] = self._numbers(words, entry, slots[fast], at[fast], width[fast])
        return values, np.flatnonzero(width == SLOW)

    def kept(self, key: Array, metrics: dict[str, Array]) -> Array:
        return thin.kept(key, metrics)

    @staticmethod
    def _numbers(words: Words8, entry: Array, slots: Array, at: Array, width: Array) -> Array:
        """The numbers of lines that all have one."""
        end = at + entry[SLOT_END].take(slots)
        number: Array = words.digits(end, width).astype(np.float64)
        fraction = entry[SLOT_FRACTION].take(slots)
        if fraction.any():
            number += words.digits(end + 1 + fraction, fraction).astype(np.float64) / POWERS.take(fraction)
        if entry[SLOT_NEGATIVE].any():
            number = np.where(entry[SLOT_NEGATIVE].take(slots) != 0, -number, number)
        return number


POWERS = 10.0 ** np.arange(20)
