"""The mask table: a dict from masked line to a row of plan numbers that numpy can gather."""

from __future__ import annotations

import re
from array import array
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import re2

from forensics.engine import apart
from forensics.engine.apart import OTHER_SHAPE, order
from forensics.engine.crowd import LONGEST, Crowd, Words
from forensics.engine.mask import MAYBE_HEX
from forensics.engine.plain import plain_kind
from forensics.engine.record import CLASS_OF, ROW, LineReader, Part, stamp_of
from forensics.engine.table import ESCAPED, GLUED, HEADED, STAMPED, TRUNCATED, WRAPPED
from forensics.grammar.header import Head
from forensics.grammar.terminals import latin1_options

(
    CLASS,
    SHAPE,
    FORM,
    DATE_AT,
    CLOCK_AT,
    FRACTION_AT,
    FRACTION_WIDTH,
    AXES,
    FLAGS,
    START,
    STOP,
    PARTS,
    PARTIAL,
    SLOTS,
    WRAPPER,
    LENGTH,
    AXIS0,
) = range(17)
MAX_AXES = 6
MAX_COMBINATIONS = 64
"""Combinations of axes (`DP TP`, `TP EP`, …) that are read as ranks; one server prints two or three."""
WIDTH = AXIS0 + 2 * MAX_AXES
LONG_LINE = 8192
"""Longer lines are read by their head only and are not remembered as masks."""
HEADS_KEPT = 1024
"""Headers whose part of a record is remembered."""
MASK_CAP = 40_000
"""Masks remembered at once; a full table is emptied between chunks."""
CLASSES = 5
"""How many classes of records there are: ROW, DECODE, PREFILL, ACCESS, BLANK."""
KINDS, STAMP, MULTI, PARTIAL_MARK = 7, 8, 16, 32
"""Bits of a record's mark: its class, that it bears a stamp, that further records of the line follow, that its message
goes on in the next line."""
SLOT_COLUMNS = 24
(SLOT_START, SLOT_END, SLOT_WIDTH, SLOT_FRACTION, SLOT_NEGATIVE) = range(5)
SLOW = -1
"""Width of a number that no plan fits: its text is read by itself."""
Array = npt.NDArray[Any]
GIVEN_UP = 1 << 40
"""Place of a shape that is not told apart."""
CROWD = 256
"""New lines from which on they are read together."""
MANY_NEW = 2048
"""Records made for one stretch of lines from which on it pays to look for new lines first."""
HEX_WORD = re.compile(rb"(?<![0-9A-Za-z_])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*0)[0-9a-f]{8,64}(?![0-9A-Za-z_])")
_MAYBE_HEX = re2.compile(MAYBE_HEX.encode(), latin1_options())


def _zeros(match: re.Match[bytes]) -> bytes:
    return b"0" * len(match[0])


class MaskTable(dict[bytes, int]):
    """Masked line → index of its first record; a line of several parts has as many consecutive records."""

    def __init__(self, reader: LineReader, outer_time: bool) -> None:
        super().__init__()
        self.reader = reader
        self.outer_time = outer_time
        self.generation = 0
        """Counts how often the records were dropped: numbers given before then mean nothing any more."""
        self.shapes: dict[tuple[str, str], int] = {}
        self.names: list[tuple[str, str]] = []
        """Kind and text of each shape number; shapes that were given up bear OTHER_SHAPE."""
        self.places = array("q")
        """Of each shape number, the place of its text in the order of shapes; -1: nobody asked yet."""
        self._room = apart.SHAPE_CAP * 5 // 4
        self.others = array("b")
        """Of each shape number, the kind of free text where no shapes are told apart (plain.py), else -1."""
        self.last_apart: apart.Last | None = None
        """Places in the order of shapes (apart.py) behind which none is told apart; None: all are."""
        self.crowded = False
        """Whether so many lines are new that they are read together."""
        self.axes: dict[tuple[str, ...], int] = {}
        self.ranks_capped = False
        self.wrappers: dict[tuple[str, ...], int] = {(): 0}
        self._rows: list[list[int]] = []
        self._by_head: dict[int, tuple[Head, list[int]]] = {}
        self._crowd = Crowd(reader)
        self._others: dict[tuple[int, int], int] = {}
        self._long: dict[tuple[bytes, int], int] = {}
        self._rows_before = 0
        self._plan = np.zeros((WIDTH, 0), np.int32)
        self._marks = np.zeros(0, np.uint8)
        self._planned = self._slotted = 0
        self._slot_rows: list[npt.NDArray[np.int32]] = []
        self._constants: list[npt.NDArray[np.float64]] = []
        self._slot_table = np.zeros((SLOT_COLUMNS, 5, 0), np.int32)
        self._constant_table = np.zeros((SLOT_COLUMNS, 0))

    def __missing__(self, key: bytes) -> int:
        if len(key) <= LONG_LINE:
            # Lines that differ in hashes and request ids only share one mask, which is not remembered for each.
            plain = HEX_WORD.sub(_zeros, key) if _MAYBE_HEX.search(key) else key
            known = self.get(plain)
            if known is not None:
                return known
            index = self.add(plain.decode("latin-1"))
            self[plain] = index
        else:
            index = self._long_line(key)
        self._rows[index][LENGTH] = len(key)
        return index

    def _long_line(self, key: bytes) -> int:
        """A line that is read by its head: remembered by a digest of that."""
        digest = blake2b(key[:LONG_LINE], digest_size=16).digest(), len(key)
        index = self._long.get(digest)
        if index is None:
            index = self._long[digest] = self.add(key[:LONG_LINE].decode("latin-1"), cut=True)
        return index

    def find(self, lines: list[bytes]) -> npt.NDArray[np.int64]:
        """Records of masked lines that may all be new, as if each were looked up."""
        ids = np.full(len(lines), -1, np.int64)
        if len(lines) >= CROWD:
            seen = self._crowd.read(lines)
            taken = seen.head >= 0
            fresh = seen.place[taken & ~self._beyond(seen.place)]
            if len(fresh) >= CROWD:
                self._narrow(fresh)
            further = taken & self._beyond(seen.place)
            self._together(lines, seen, np.flatnonzero(further), ids)
            for index in np.flatnonzero(taken & ~further).tolist():
                ids[index] = self._apart(lines[index], seen, index)
        for index in np.flatnonzero(ids < 0).tolist():
            ids[index] = self[lines[index]]
        return ids

    def settle(self) -> None:
        """See whether many of the lines since the last call were new."""
        self.crowded = self.last_apart is not None or len(self._rows) - self._rows_before >= MANY_NEW
        self._rows_before = len(self._rows)

    def shared(self) -> list[int]:
        """Records that stand for lines of many masks."""
        return list(self._others.values())

    def _apart(self, line: bytes, seen: Words, index: int) -> int:
        """The record of one line that was read with others."""
        known = self.get(line)
        if known is None:
            head, kind = self._crowd.heads[int(seen.head[index])]
            shape = kind, seen.shape(index)
            self.shape_id(shape, int(seen.place[index]))
            known = self[line] = self._plain(Part(0, len(line), head, kind, shape))
        return known

    def _together(
        self, lines: list[bytes], seen: Words, pick: npt.NDArray[np.int64], ids: npt.NDArray[np.int64]
    ) -> None:
        """Records of lines whose shapes are not told apart: one for each header and length."""
        if not len(pick):
            return
        length = np.fromiter(map(len, lines), np.int64, len(lines))[pick]
        signature = seen.head[pick] * LONGEST + length
        found = np.flatnonzero(np.bincount(signature))
        record = np.zeros(int(found[-1]) + 1, np.int64)
        record[found] = [self._other(*divmod(number, LONGEST)) for number in found.tolist()]
        ids[pick] = record[signature]

    def _other(self, number: int, length: int) -> int:
        known = self._others.get((number, length))
        if known is None:
            head, kind = self._crowd.heads[number]
            known = self._others[number, length] = self._plain(Part(0, length, head, kind, (kind, OTHER_SHAPE)))
        return known

    def _plain(self, part: Part) -> int:
        """A new record of a line that is one part."""
        row = self._record(part, 0, 1, whole=True, cut=False)
        row[LENGTH] = part.stop
        self._rows.append(row)
        return len(self._rows) - 1

    def add(self, masked: str, cut: bool = False, joined: bool = False) -> int:
        """Read one masked line and append its records; `cut`: the line goes on beyond `masked`; `joined`: it is a
        message put together from several lines, kept as one row whatever it is."""
        index = len(self._rows)
        parts = self.reader.read(masked)[: 1 if joined else None]
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            self._rows.append(self._record(part, number, len(parts), whole=last, cut=cut))
        if joined:
            self._rows[-1][CLASS] = ROW
        return index

    def is_partial(self, key: bytes) -> bool:
        """Whether the message of this masked line goes on in the next line."""
        return bool(self._rows[self[key]][PARTIAL])

    def _record(self, part: Part, number: int, parts: int, whole: bool, cut: bool) -> list[int]:
        row = self._of_head(part.head).copy()
        row[CLASS] = CLASS_OF.get(part.kind, ROW)
        row[SHAPE] = self.shape_id(part.shape)
        row[FLAGS] |= (GLUED if number else 0) | (TRUNCATED if cut and whole else 0)
        to_end = whole and not row[FLAGS] & ESCAPED
        row[START], row[STOP], row[PARTS] = part.start, -1 if to_end else part.stop, parts
        row[SLOTS] = self._slots(part) if part.slots else -1
        return row

    def _of_head(self, head: Head) -> list[int]:
        """What a header makes of a record. Most lines have one of a few, which the reader gives time and again."""
        known = self._by_head.get(id(head))
        if known is not None and known[0] is head:
            return known[1]
        row = [0] * WIDTH
        stamp = stamp_of(head, self.outer_time)
        if stamp is not None:
            row[FORM], row[DATE_AT], row[CLOCK_AT] = stamp.form, stamp.date_at, stamp.clock_at
            row[FRACTION_AT], row[FRACTION_WIDTH] = stamp.fraction_at, stamp.fraction_width
            row[FLAGS] |= STAMPED
        if head.header:
            row[FLAGS] |= HEADED
        if head.wrappers[:1] in (("W_SLURM",), ("W_PREAMBLE",)):
            row[FLAGS] |= WRAPPED
        if head.wrappers[:1] == ("W_ESCAPED",):
            row[FLAGS] |= ESCAPED
        axes = head.axes[:MAX_AXES]
        row[AXES] = self._axes_id(tuple(a.name for a in axes)) if axes else -1
        for i, axis in enumerate(axes):
            row[AXIS0 + 2 * i], row[AXIS0 + 2 * i + 1] = axis.at, axis.width
        row[PARTIAL] = int(head.partial)
        row[WRAPPER] = self.wrappers.setdefault(head.wrappers, len(self.wrappers))
        if len(self._by_head) >= HEADS_KEPT:
            self._by_head.clear()
        self._by_head[id(head)] = head, row
        return row

    def _axes_id(self, names: tuple[str, ...]) -> int:
        """Number of a combination of axes; past the cap such lines count as lines without a rank."""
        found = self.axes.get(names, -1)
        if found < 0 and len(self.axes) >= MAX_COMBINATIONS:
            self.ranks_capped = True
        elif found < 0:
            found = self.axes[names] = len(self.axes)
        return found

    def _slots(self, part: Part) -> int:
        table = np.zeros((SLOT_COLUMNS, 5), np.int32)
        constants = np.full(SLOT_COLUMNS, np.nan)
        for slot in part.slots:
            if slot.constant is not None:
                constants[slot.column] = slot.constant
                continue
            table[slot.column] = (slot.start, slot.end, SLOW if slot.slow else slot.width, slot.fraction, slot.negative)
        self._slot_rows.append(table)
        self._constants.append(constants)
        return len(self._slot_rows) - 1

    def shape_id(self, shape: tuple[str, str], place: int = -1) -> int:
        """Number of a shape; past the cap, those that are not told apart share one for each kind. `place`: its text's
        in the order of shapes, where that is known."""
        found = self.shapes.get(shape)
        if found is not None:
            return found
        other = shape[1] == OTHER_SHAPE
        if self.last_apart is not None and not other:
            place = order(shape) if place < 0 else place
            if place > self.last_apart[place >> 32]:
                return self.shape_id((shape[0], OTHER_SHAPE))
        found = self.shapes[shape] = len(self.names)
        self.names.append(shape)
        self.places.append(GIVEN_UP if other else place)
        self.others.append(plain_kind(shape))
        if len(self.shapes) >= self._room:
            self._narrow(np.zeros(0, np.int64))
            return self.shape_id(shape, place)
        return found

    def _beyond(self, places: Array) -> Array:
        """Which places are those of shapes that are not told apart."""
        return np.zeros(len(places), bool) if self.last_apart is None else apart.beyond(places, self.last_apart)

    def _narrow(self, new: Array) -> None:
        """Tell no more shapes apart than the cap allows, if with those at the places `new` there are more; lines of the
        others count for what their kind shares."""
        if self.last_apart is None and len(self.shapes) + len(new) <= apart.SHAPE_CAP:
            return
        for number in np.flatnonzero(np.array(self.places) < 0).tolist():
            self.places[number] = order(self.names[number])
        places = np.array(self.places, np.int64)
        live = np.flatnonzero(places < GIVEN_UP)
        places = places[live]
        last = apart.last_apart(np.union1d(places, new), self.last_apart is not None)
        if last is not None:
            self.last_apart = last = last if self.last_apart is None else apart.least((last, self.last_apart))
            for number in live[apart.beyond(places, last)].tolist():
                kind, _ = shape = self.names[number]
                del self.shapes[shape]
                self.names[number], self.places[number] = (kind, OTHER_SHAPE), GIVEN_UP
                self.others[number] = plain_kind((kind, OTHER_SHAPE))
        self._room = max(apart.SHAPE_CAP + 1 if last is None else 0, len(self.shapes) * 5 // 4) + 1024

    @property
    def plans(self) -> int:
        """Number plans of hot masks so far."""
        return len(self._slot_rows)

    def plan(self) -> npt.NDArray[np.int32]:
        """Records as one array, field by record, with room behind them; they keep their numbers until `forget`."""
        have, wanted = self._planned, len(self._rows)
        if have < wanted:
            self._plan = _roomy(self._plan, have, wanted)
            self._plan[:, have:wanted] = np.array(self._rows[have:], dtype=np.int32).T
            self._marks = _roomy(self._marks, have, wanted)
            self._marks[have:wanted] = _marked(self._plan[:, have:wanted])
            self._planned = wanted
        return self._plan

    def marks(self) -> npt.NDArray[np.uint8]:
        """What of each record decides how its lines are treated, in one byte."""
        self.plan()
        return self._marks

    def slots(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Places of numbers (column, field, plan) and constants (column, plan) of the hot masks, with room behind
        them."""
        have, wanted = self._slotted, len(self._slot_rows)
        if have < wanted:
            self._slot_table = _roomy(self._slot_table, have, wanted)
            self._slot_table[:, :, have:wanted] = np.stack(self._slot_rows[have:], axis=2)
            self._constant_table = _roomy(self._constant_table, have, wanted)
            self._constant_table[:, have:wanted] = np.stack(self._constants[have:], axis=1)
            self._slotted = wanted
        return self._slot_table, self._constant_table

    @property
    def full(self) -> bool:
        """Whether there are so many records that they have to be dropped."""
        return len(self._rows) >= MASK_CAP

    def forget(self) -> None:
        """Drop the masks (not the shapes); only between chunks."""
        self.clear()
        self.generation += 1
        self._rows_before = 0
        self._others, self._long = {}, {}
        self._rows = []
        self._planned = self._slotted = 0
        self._slot_rows = []
        self._constants = []


def _roomy(table: npt.NDArray[Any], have: int, wanted: int) -> npt.NDArray[Any]:
    """A table of at least `wanted` places in its last axis, the first `have` of them as they were."""
    if table.shape[-1] >= wanted:
        return table
    grown = np.zeros((*table.shape[:-1], 2 * wanted), table.dtype)
    grown[..., :have] = table[..., :have]
    return grown


def _marked(plan: npt.NDArray[np.int32]) -> npt.NDArray[np.uint8]:
    """The marks of records."""
    stamps, parts, partial = (plan[FORM] > 0) * STAMP, (plan[PARTS] > 1) * MULTI, (plan[PARTIAL] != 0) * PARTIAL_MARK
    marks: npt.NDArray[np.uint8] = (plan[CLASS] + stamps + parts + partial).astype(np.uint8)
    return marks
