"""The compiled kernel's loops over lines, for numba: found, looked up, sorted by class. Imported only to compile.

Arrays are bare pointers and sizes, so that the machine code needs nothing of numba (or of Python) to run. Places in the
text count from its first byte; PAD readable bytes lie before it and behind its end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.engine.compiled_code import FREE
from forensics.engine.compiled_hash import helper, masked_line
from forensics.engine.compiled_numbers import eight
from forensics.engine.record import ACCESS
from forensics.engine.records import CLASSES, KINDS, MULTI, STAMP

GOOD = 400
"""Statuses below this one are those of answers."""
LONGEST_NAME = 64
"""Characters of a hex word at most; longer runs are no ids."""


@helper  # type: ignore[untyped-decorator]
def _place(keys: Any, sizes: Any, values: Any, last: int, key: Any, size: Any) -> Any:
    """Where a key of a line of that size stands in the hash table, or would stand."""
    slot = np.int64(key & np.uint64(last))
    while values[slot] != FREE and (keys[slot] != key or sizes[slot] != size):
        slot = (slot + 1) & last
    return slot


@helper  # type: ignore[untyped-decorator]
def _is_word(byte: int) -> bool:
    return 48 <= byte <= 57 or 97 <= byte <= 122 or 65 <= byte <= 90 or byte == 95


@helper  # type: ignore[untyped-decorator]
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
    seed: int,
    keys: Any,
    sizes: Any,
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
        found, key = masked_line(text, position, seed)
        length = np.int64(found)
        if position + length > stop:
            length = stop - position
        slot = _place(keys, sizes, values, last, key, length)
        if values[slot] == FREE and length <= longest and _without_ids(text, position, length, plain):
            found, key = masked_line(plain, 0, seed)
            slot = _place(keys, sizes, values, last, key, length)
        record = np.int64(values[slot])
        if record == FREE:
            record = -2 - missing
            table[3 * room + missing] = count
            table[4 * room + missing] = -1
            if length <= remembered and 4 * used < 3 * last:
                keys[slot] = key
                sizes[slot] = length
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


@helper  # type: ignore[untyped-decorator]
def _without_good(text: Any, lines: Any, slots: Any, status: Any, stride: int, out: Any, size: int, number: int) -> Any:
    """Close up the `number` access lines of `out` over those with a plain good status; gives how many stay."""
    kept: Any
    kept = 0
    start = 4 * size * ACCESS
    for n in range(start, start + number):
        slot = slots[out[size + n]]
        if slot >= 0:
            width = status[2 * stride + slot]
            plain = 0 < width <= 3 and not status[3 * stride + slot] and not status[4 * stride + slot]
            end = lines[out[n]] + status[stride + slot]
            if plain and eight(text, end, width) < np.uint64(GOOD):
                continue
        for row in range(4):
            out[row * size + start + kept] = out[row * size + n]
        kept += 1
    return kept


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
    state[ACCESS] = _without_good(text, lines, slots, status, stride, out, size, state[ACCESS])
    state[CLASSES], state[CLASSES + 1] = stamp_line, stamp_record
    return 0
