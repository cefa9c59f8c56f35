"""The compiled kernel's loops, for numba. Imported only to compile; arrays are bare pointers and sizes, so that the
machine code needs nothing of numba (or of Python) to run.

Places in the text count from its first byte; PAD readable bytes lie before it and behind its end.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import cfunc
from numba import types as numba_types

from forensics.engine.chunk import MAX_RANK
from forensics.engine.compiled_code import RADIX, SPREAD
from forensics.engine.compiled_hash import fetch, masked_line, word_at
from forensics.engine.record import ACCESS
from forensics.engine.records import AXES, AXIS0, CLASSES, KINDS, MULTI, SLOTS, STAMP

_helper: Any = numba.njit(error_model="numpy", inline="always")
_cfunc: Any = cfunc
_types: Any = numba_types
_KINDS = {
    "b": _types.uint8,
    "h": _types.int16,
    "s": _types.int32,
    "l": _types.int64,
    "u": _types.uint64,
    "d": _types.float64,
}
FREE = -1
"""Value of a place in the hash table of masks that is not taken; lower ones are masks whose record is not known yet."""
GOOD = 400
"""Statuses below this one are those of answers."""
LONGEST_NAME = 64
"""Characters of a hex word at most; longer runs are no ids."""
MAX_PLACES = 4
"""Axes of a rank that make a key; a line with more is left to numpy."""


@_helper  # type: ignore[untyped-decorator]
def _eight(text: Any, end: int, width: int) -> Any:
    """Value of the `width` (0 to 8) digits that end before `end`."""
    if width <= 0:
        return np.uint64(0)
    shift = np.uint64(64 - 8 * width)
    word = (word_at(text, end - 8) >> shift) << shift
    value = word - ((np.uint64(0x3030303030303030) >> shift) << shift)
    value = ((value * np.uint64(2561)) >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    value = ((value * np.uint64(6553601)) >> np.uint64(16)) & np.uint64(0x0000FFFF0000FFFF)
    return (value * np.uint64(42949672960001)) >> np.uint64(32)


@_helper  # type: ignore[untyped-decorator]
def _number(text: Any, end: int, width: int, fraction: int, negative: int, powers: Any) -> float:
    """The number whose whole part has `width` (1 to 16) digits and ends before `end`."""
    if width <= 8:
        value = np.float64(_eight(text, end, width))
    else:
        value = np.float64(_eight(text, end, 8) + _eight(text, end - 8, width - 8) * np.uint64(100_000_000))
    if fraction:
        value += np.float64(_eight(text, end + 1 + fraction, fraction)) / powers[fraction]
    return -value if negative else value


@_helper  # type: ignore[untyped-decorator]
def _place(keys: Any, values: Any, last: int, key: Any) -> Any:
    """Where a key stands in the hash table, or would stand."""
    slot = np.int64(key & np.uint64(last))
    while values[slot] != FREE and keys[slot] != key:
        slot = (slot + 1) & last
    return slot


@_helper  # type: ignore[untyped-decorator]
def _is_word(byte: int) -> bool:
    return 48 <= byte <= 57 or 97 <= byte <= 122 or 65 <= byte <= 90 or byte == 95


@_helper  # type: ignore[untyped-decorator]
def _without_ids(text: Any, at: int, length: int, out: Any) -> bool:
    """Copy a line to `out` with the digits and letters of its hex words as zeros; whether it has any.

    A hex word stands alone, has 8 to 64 of the characters 0-9 and a-f, digits and letters among them."""
    found = False
    k = 0
    while k < length:
        byte = text[at + k]
        if not _is_word(byte):
            out[k] = byte
            k += 1
            continue
        stop = k
        digits, letters, others = 0, 0, 0
        while stop < length and _is_word(text[at + stop]):
            byte = text[at + stop]
            out[stop] = byte
            if 48 <= byte <= 57:
                digits += 1
            elif 97 <= byte <= 102:
                letters += 1
            else:
                others += 1
            stop += 1
        if not others and digits and letters and 8 <= stop - k <= LONGEST_NAME:
            found = True
            for i in range(k, stop):
                out[i] = 48
        k = stop
    out[length] = 10
    return found


def split(
    text: Any,
    stop: int,
    plain: Any,
    longest: int,
    remembered: int,
    keys: Any,
    values: Any,
    last: int,
    used: int,
    room: int,
    table: Any,
    state: Any,
) -> int:
    """Find the lines of [0, stop), look their masks up. Gives their number, -1 where there are more than `room`.

    `table` has rows of `room`: start, length and record of each line, then of each new mask the index of its first line
    and its place in the hash table (-1: it has none, as lines longer than `remembered`). The n-th new mask, from 0 on,
    stands as record -2 - n there and in its lines. A line of at most `longest` bytes whose mask is new is looked up
    without the ids in it, the scratch line `plain`. `state` gets the number of new masks and of places taken."""
    length: Any
    record: Any
    count, missing, position = 0, 0, 0
    while position < stop:
        if count == room:
            return -1
        found, key = masked_line(text, position)
        length = np.int64(found)
        if position + length > stop:
            length = stop - position
        slot = _place(keys, values, last, key)
        if values[slot] == FREE and length <= longest and _without_ids(text, position, length, plain):
            found, key = masked_line(plain, 0)
            slot = _place(keys, values, last, key)
        record = np.int64(values[slot])
        if record == FREE:
            record = -2 - missing
            table[3 * room + missing] = count
            table[4 * room + missing] = -1
            if length <= remembered and 4 * used < 3 * last:
                keys[slot] = key
                values[slot] = record
                table[4 * room + missing] = slot
                used += 1
            missing += 1
        table[count] = position
        table[room + count] = length
        table[2 * room + count] = record
        count += 1
        position = position + length + 1
    state[0], state[1] = missing, used
    return count


def select(
    text: Any,
    count: int,
    lines: Any,
    room: int,
    dropped: Any,
    marks: Any,
    parts: Any,
    uses: Any,
    slots: Any,
    status: Any,
    stride: int,
    out: Any,
    size: int,
    state: Any,
) -> int:
    """Count the records of the parts of `count` lines and sort the parts by class. 0, or -1: no room.

    `lines` as `split` left them (`dropped`: 1 for a line that the one above took in). `out` has for each class four
    rows of `size`: line, record, and line and record of the last stamp (-1: none). Access lines with a plain good
    status are only counted. `state` gets the number of each class and the last stamp."""
    kind: Any
    stamp_line, stamp_record = -1, -1
    for kind in range(CLASSES):
        state[kind] = 0
    for i in range(count):
        if dropped[i]:
            continue
        first = lines[2 * room + i]
        number = 1
        if marks[first] & MULTI:
            number = parts[first]
        for record in range(first, first + number):
            uses[record] += 1
            mark = marks[record]
            if mark & STAMP:
                stamp_line, stamp_record = i, record
            # No branch by class: they alternate as they please.
            kind = np.int64(mark & KINDS)
            place = 4 * size * kind + state[kind]
            out[place] = i
            out[size + place] = record
            out[2 * size + place] = stamp_line
            out[3 * size + place] = stamp_record
            state[kind] += 1
            if state[kind] == size:
                return -1
    kept = 0
    start = 4 * size * ACCESS
    for n in range(start, start + state[ACCESS]):
        slot = slots[out[size + n]]
        if slot >= 0:
            width = status[2 * stride + slot]
            plain = 0 < width <= 3 and not status[3 * stride + slot] and not status[4 * stride + slot]
            end = lines[out[n]] + status[stride + slot]
            if plain and _eight(text, end, width) < np.uint64(GOOD):
                continue
        for row in range(4):
            out[row * size + start + kept] = out[row * size + n]
        kept += 1
    state[ACCESS] = kept
    state[CLASSES], state[CLASSES + 1] = stamp_line, stamp_record
    return 0


@_helper  # type: ignore[untyped-decorator]
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
        value = np.int64(_eight(text, end, 4 if width > 4 else width))
        if value >= MAX_RANK:
            return -1
        key = key * RADIX + value
    return key


@_helper  # type: ignore[untyped-decorator]
def _keep(group: Any, ends: Any, place: Any, metrics: int, keep: Any) -> None:
    """Mark what stays of a group: its first and last line and those with extreme values."""
    keep[ends[2 * group]] = 1
    keep[ends[2 * group + 1]] = 1
    for m in range(2 * metrics):
        if place[2 * metrics * group + m] >= 0:
            keep[place[2 * metrics * group + m]] = 1


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
        if i + 6 < count:
            fetch(text, np.int64(at[line[i + 6]]))
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
            for m in range(metrics):
                best[2 * (metrics * group + m)] = np.inf
                best[2 * (metrics * group + m) + 1] = -np.inf
                place[2 * (metrics * group + m)] = -1
                place[2 * (metrics * group + m) + 1] = -1
        ends[2 * group + 1] = i
        slot = plan[SLOTS * stride + record[i]]
        if slot < 0:
            continue
        for m in range(metrics):
            where = 4 * (metrics * slot + m)
            width = places[where + 1]
            if width <= 0:
                if width < 0:
                    return -1
                continue
            value = _number(text, start + places[where], width, places[where + 2], places[where + 3], powers)
            low = 2 * (metrics * group + m)
            if value < best[low]:
                best[low] = value
                place[low] = i
            if value > best[low + 1]:
                best[low + 1] = value
                place[low + 1] = i
    for group in range(groups):
        if keys[2 * group] >= 0:
            _keep(group, ends, place, metrics, keep)
    return 0


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


def made(signatures: dict[str, str]) -> dict[str, tuple[str, str]]:
    """LLVM text of the loops named in `signatures` (one letter for each argument), and the name of the C function that
    each is there."""
    found = {}
    for name, letters in signatures.items():
        kinds = [_types.int64 if k == "i" else _types.CPointer(_KINDS[k]) for k in letters]
        function = _cfunc(_types.int64(*kinds), nopython=True, error_model="numpy")(globals()[name])
        found[name] = function.inspect_llvm(), function.native_name
    return found
