"""Numbers out of raw bytes, many lines at once: eight digits per 64-bit load, no text in between."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from forensics.grammar.header import COMPACT, FULL, LONG_COMPACT, MONTH_DAY, MONTH_NAME

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
PAD = 64
"""Bytes before and after a chunk's text, so that a load around any digit stays inside the buffer, and the compiled
kernel's last load."""
PADDING = b"\n" * PAD
"""Newlines, so that the padded text still splits into lines (and PAD empty ones on either side)."""
_U = np.uint64
_EPOCH = date(1970, 1, 1).toordinal()
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: i + 1 for i, name in enumerate(_NAMES)}


class Words8:
    """Unaligned 8-byte loads from a padded buffer; `at` counts from the start of the chunk's text."""

    def __init__(self, padded: bytes | memoryview) -> None:
        self.padded = padded
        self._view: Words = np.ndarray((len(padded) - 7,), "<u8", buffer=padded, strides=(1,))

    def load(self, at: Ints) -> Words:
        return self._view[at + PAD]

    def digits(self, end: Ints, width: npt.NDArray[np.integer]) -> Words:
        """Value of the `width` (0 to 16) digits that end before `end`."""
        if not len(width):
            return np.zeros(0, np.uint64)
        most = int(width.max())
        low = _decode(self._view[end + (PAD - 8)], width if most <= 8 else np.minimum(width, 8))
        if most > 8:
            high = _decode(self._view[end + (PAD - 16)], np.clip(width - 8, 0, 8))
            high *= _U(100_000_000)
            low += high
        return low


_KEEP = np.array([0, *((0x0F0F0F0F0F0F0F0F >> s) << s for s in (56, 48, 40, 32, 24, 16, 8, 0))], np.uint64)
"""Of each number of digits the bits of their values; the first digit is the lowest byte."""


def _decode(word: Words, width: npt.NDArray[np.integer]) -> Words:
    """Eight ASCII digits per word, of which the last `width` count (three multiplications, no loop); in place."""
    word &= _KEEP.take(width)
    for factor, shift, mask in ((2561, 8, 0x00FF00FF00FF00FF), (6553601, 16, 0x0000FFFF0000FFFF)):
        word *= _U(factor)
        word >>= _U(shift)
        word &= _U(mask)
    word *= _U(42949672960001)
    word >>= _U(32)
    return word


def clock_seconds(word: Words) -> Ints:
    """Seconds of the day from loads of `HH:MM:SS`."""
    v = word - _U(0x30303A30303A3030)
    byte = _U(255)
    seconds: Ints = (
        (v & byte) * _U(36000)
        + ((v >> _U(8)) & byte) * _U(3600)
        + ((v >> _U(24)) & byte) * _U(600)
        + ((v >> _U(32)) & byte) * _U(60)
        + ((v >> _U(48)) & byte) * _U(10)
        + (v >> _U(56))
    ).astype(np.int64)
    return seconds


DATE_BYTES = {FULL: (2, 8), MONTH_DAY: (0, 5), COMPACT: (0, 4), LONG_COMPACT: (0, 8), MONTH_NAME: (0, 6)}
"""Of each form: offset of the bytes that tell dates apart (from the date's start), and how many."""


def days(words: Words, form: int, base_day: int) -> Ints:
    """Days since 1970 for loads of date bytes; forms without a year take the year of `base_day`."""
    if not len(words):
        return np.zeros(0, np.int64)
    width = DATE_BYTES[form][1]
    keys = words & _U((1 << (8 * width)) - 1) if width < 8 else words
    if keys[0] == keys[-1] and bool((keys == keys[0]).all()):
        return np.full(len(keys), day_of_word(int(keys[0]), form, base_day), np.int64)
    found, inverse = np.unique(keys, return_inverse=True)
    return np.array([day_of_word(int(k), form, base_day) for k in found], np.int64)[inverse]


@lru_cache(maxsize=4096)
def day_of_word(word: int, form: int, base_day: int) -> int:
    """Days since 1970 of the bytes that tell dates of that form apart, as one number."""
    text = word.to_bytes(8, "little").decode("latin-1").rstrip("\0")
    return day_of(form, "20" + text if form == FULL else text, base_day)


def day_of(form: int, text: str, base_day: int = 0) -> int:
    """Days since 1970 of one date text of that form; 0 for what is no date (`2026-13-99`)."""
    year = date.fromordinal(_EPOCH + base_day).year
    try:
        if form == FULL:
            parts = (int(text[:4]), int(text[5:7]), int(text[8:10]))
        elif form == LONG_COMPACT:
            parts = (int(text[:4]), int(text[4:6]), int(text[6:8]))
        elif form == MONTH_NAME:
            parts = (year, _MONTHS[text[:3]], int(text[4:6]))
        else:
            # c10 prints the month without a leading zero: `E504` is May 4.
            clean = text.replace("-", "").strip().zfill(4)
            parts = (year, int(clean[:2]), int(clean[2:4]))
        return date(*parts).toordinal() - _EPOCH
    except (ValueError, KeyError):
        return base_day
