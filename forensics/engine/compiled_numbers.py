"""The compiled kernel's loops over numbers in lines, for numba: ranks, times, columns, and what stays of a series.

Imported only to compile. Arrays and places are as in compiled_lines.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.engine.chunk import MAX_RANK
from forensics.engine.compiled_code import RADIX, SPREAD
from forensics.engine.compiled_hash import fetch, helper, word_at
from forensics.engine.records import (
    AXES,
    AXIS0,
    CLOCK_AT,
    DATE_AT,
    FORM,
    FRACTION_AT,
    FRACTION_WIDTH,
    SLOTS,
)
from forensics.grammar.header import EPOCH_US

MAX_PLACES = 4
"""Axes of a rank that make a key; a line with more is left to numpy."""
AHEAD = 6
"""Lines that are asked for before they are read."""


@helper  # type: ignore[untyped-decorator]
def eight(text: Any, end: int, width: int) -> Any:
    """Value of the `width` (0 to 8) digits that end before `end`."""
    if width <= 0:
        return np.uint64(0)
    shift = np.uint64(64 - 8 * width)
    value = word_at(text, end - 8) & ((np.uint64(0x0F0F0F0F0F0F0F0F) >> shift) << shift)
    value = ((value * np.uint64(2561)) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    value = ((value * np.uint64(6553601)) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return (value * np.uint64(42949672960001)) >> np.uint64(32)


@helper  # type: ignore[untyped-decorator]
def _number(text: Any, end: int, width: int, fraction: int, negative: int, powers: Any) -> float:
    """The number whose whole part has `width` (1 to 16) digits and ends before `end`."""
    if width <= 8:
        value = np.float64(eight(text, end, width))
    else:
        value = np.float64(eight(text, end, 8) + eight(text, end - 8, width - 8) * np.uint64(100_000_000))
    if fraction:
        value += np.float64(eight(text, end + 1 + fraction, fraction)) / powers[fraction]
    return -value if negative else value


@helper  # type: ignore[untyped-decorator]
def _rank_key(text: Any, at: int, record: int, plan: Any, stride: int, axes: Any) -> Any:
    """A number for the rank of a line, another for each; 0: it bears none; -1: left to numpy."""
    combination = plan[AXES * stride + record]
    if combination < 0:
        return 0
    number = axes[combination]
    if number > MAX_PLACES:
        return -1
    key = np.int64(combination + 1)
    for i in range(number):
        width = plan[(AXIS0 + 2 * i + 1) * stride + record]
        end = at + plan[(AXIS0 + 2 * i) * stride + record] + width
        value = np.int64(eight(text, end, 4 if width > 4 else width))
        if value >= MAX_RANK:
            return -1
        key = key * RADIX + value
    return key


@helper  # type: ignore[untyped-decorator]
def _keep(group: Any, ends: Any, place: Any, metrics: int, keep: Any) -> None:
    """Mark what stays of a group: its first and last line and those with extreme values."""
    keep[ends[2 * group]] = 1
    keep[ends[2 * group + 1]] = 1
    for m in range(2 * metrics):
        if place[2 * metrics * group + m] >= 0:
            keep[place[2 * metrics * group + m]] = 1


@helper  # type: ignore[untyped-decorator]
def _open(group: Any, best: Any, place: Any, metrics: int) -> None:
    """No line of a group has extreme values yet."""
    for m in range(metrics):
        best[2 * (metrics * group + m)] = np.inf
        best[2 * (metrics * group + m) + 1] = -np.inf
        place[2 * (metrics * group + m)] = -1
        place[2 * (metrics * group + m) + 1] = -1


@helper  # type: ignore[untyped-decorator]
def _weigh(
    text: Any,
    start: Any,
    line: int,
    slot: Any,
    group: Any,
    places: Any,
    metrics: int,
    powers: Any,
    best: Any,
    place: Any,
) -> bool:
    """Compare the numbers of a line with the extremes of its group; False: left to numpy."""
    for m in range(metrics):
        where = 4 * (metrics * slot + m)
        width = places[where + 1]
        if width < 0:
            return False
        if width == 0:
            continue
        value = _number(text, start + places[where], width, places[where + 2], places[where + 3], powers)
        low = 2 * (metrics * group + m)
        if value < best[low]:
            best[low] = value
            place[low] = line
        if value > best[low + 1]:
            best[low + 1] = value
            place[low + 1] = line
    return True


def thin(
    text: Any,
    count: int,
    line: Any,
    record: Any,
    at: Any,
    base: int,
    step: int,
    plan: Any,
    stride: int,
    axes: Any,
    places: Any,
    metrics: int,
    powers: Any,
    groups: int,
    keys: Any,
    ends: Any,
    best: Any,
    place: Any,
    keep: Any,
) -> int:
    """Which of `count` batch lines stay (`keep`), as `forensics.engine.thin`: of each rank and bucket of `step` bytes
    the first, the last and the extremes of each metric. 0, or -1: left to numpy.

    `places`: of each number plan and metric the end, width, fraction and sign. `keys`, `ends`, `best`, `place`: room
    for `groups` ranks, a power of two; `keys` holds each rank's key and bucket, -1 where nothing stands."""
    group: Any
    used, bucket, beyond = 0, -1, -1
    for i in range(count):
        if i + AHEAD < count:
            fetch(text, np.int64(at[line[i + AHEAD]]))
        start = at[line[i]]
        if base + start >= beyond:
            bucket = (base + start) // step
            beyond = (bucket + 1) * step
        key = _rank_key(text, start, record[i], plan, stride, axes)
        if key < 0:
            return -1
        group = np.int64((np.uint64(key) * np.uint64(SPREAD)) >> np.uint64(40)) & (groups - 1)
        while keys[2 * group] >= 0 and keys[2 * group] != key:
            group = (group + 1) & (groups - 1)
        if keys[2 * group] < 0 or keys[2 * group + 1] != bucket:
            if keys[2 * group] >= 0:
                _keep(group, ends, place, metrics, keep)
            else:
                used += 1
                if 2 * used > groups:
                    return -1
            keys[2 * group] = key
            keys[2 * group + 1] = bucket
            ends[2 * group] = i
            _open(group, best, place, metrics)
        ends[2 * group + 1] = i
        slot = plan[SLOTS * stride + record[i]]
        if slot >= 0 and not _weigh(text, start, i, slot, group, places, metrics, powers, best, place):
            return -1
    for group in range(groups):
        if keys[2 * group] >= 0:
            _keep(group, ends, place, metrics, keep)
    return 0


def times(
    text: Any,
    first: int,
    count: int,
    record: Any,
    at: Any,
    plan: Any,
    stride: int,
    forms: Any,
    day: Any,
    others: Any,
    powers: Any,
    out: Any,
) -> int:
    """Seconds since 1970 of stamps from `first` up to the first whose date is not the `day` (its bytes and form); gives
    its index, or `count`. `forms` has for each form where its date begins and how many bytes tell dates apart (0: it
    has none). `others`: seconds up to that day, up to the day of stamps without a date, time of records below 0."""
    for i in range(first, count):
        if record[i] < 0:
            out[i] = others[2]
            continue
        form = plan[FORM * stride + record[i]]
        dated = at[i] + plan[DATE_AT * stride + record[i]]
        width = plan[FRACTION_WIDTH * stride + record[i]]
        if form == EPOCH_US:
            value = eight(text, dated + width, 8 if width > 8 else width)
            if width > 8:
                value += eight(text, dated + width - 8, width - 8 if width < 16 else 8) * np.uint64(100_000_000)
            out[i] = np.float64(value) / 1e6
            continue
        seconds = _clock(word_at(text, at[i] + plan[CLOCK_AT * stride + record[i]]))
        size = forms[2 * form + 1]
        if size:
            key = word_at(text, dated + forms[2 * form])
            if size < 8:
                key &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
            if key != day[0] or np.uint64(form) != day[1]:
                return i
            seconds += others[0]
        else:
            seconds += others[1]
        if width:
            width = 6 if width > 6 else width
            end = at[i] + plan[FRACTION_AT * stride + record[i]] + width
            seconds += np.float64(eight(text, end, width)) / powers[width]
        out[i] = seconds
    return count


@helper  # type: ignore[untyped-decorator]
def _clock(word: Any) -> float:
    """Seconds of the day of a load of `HH:MM:SS`."""
    v = word - np.uint64(0x30303A30303A3030)
    byte = np.uint64(255)
    hours = (v & byte) * np.uint64(36000) + ((v >> np.uint64(8)) & byte) * np.uint64(3600)
    minutes = ((v >> np.uint64(24)) & byte) * np.uint64(600) + ((v >> np.uint64(32)) & byte) * np.uint64(60)
    seconds = ((v >> np.uint64(48)) & byte) * np.uint64(10) + (v >> np.uint64(56))
    return np.float64(np.int64(hours + minutes + seconds))


def ranks(
    text: Any,
    count: int,
    record: Any,
    at: Any,
    plan: Any,
    stride: int,
    axes: Any,
    keys: Any,
    numbers: Any,
    last: int,
    out: Any,
    unknown: Any,
) -> int:
    """Rank number of each of `count` lines (-1: none). Gives how many have a rank that the hash table `keys`, `numbers`
    does not hold: their indices, each with its key, in `unknown`; -1: left to numpy."""
    missing = 0
    for i in range(count):
        key = _rank_key(text, at[i], record[i], plan, stride, axes)
        if key < 0:
            return -1
        if key == 0:
            out[i] = -1
            continue
        slot = np.int64((np.uint64(key) * np.uint64(SPREAD)) >> np.uint64(40)) & last
        while keys[slot] and keys[slot] != key:
            slot = (slot + 1) & last
        out[i] = numbers[slot]
        if not keys[slot]:
            unknown[2 * missing] = i
            unknown[2 * missing + 1] = key
            missing += 1
    return missing


def columns(
    text: Any,
    count: int,
    at: Any,
    slots: Any,
    wanted: Any,
    number: int,
    table: Any,
    constants: Any,
    stride: int,
    powers: Any,
    out: Any,
    slow: Any,
) -> int:
    """Values of the `number` columns `wanted` of `count` batch lines, column by column in `out`; gives how many have to
    be read one by one, their places there in `slow`.

    `table` has for each column rows of `stride`: start, end, width, fraction, sign of each number plan."""
    hard = 0
    for c in range(number):
        entry = 5 * stride * wanted[c]
        for i in range(count):
            slot = slots[i]
            place = c * count + i
            if slot < 0:
                out[place] = np.nan
                continue
            row = entry + slot
            width = table[row + 2 * stride]
            if width > 0:
                end = at[i] + table[row + stride]
                out[place] = _number(text, end, width, table[row + 3 * stride], table[row + 4 * stride], powers)
                continue
            out[place] = constants[stride * wanted[c] + slot]
            if width < 0:
                slow[hard] = place
                hard += 1
    return hard
