"""The mask table: a dict from masked line to a row of plan numbers that numpy can gather."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.record import _CLASSES, ROW, SHAPE_CAP, LineReader, Part, stamp_of
from forensics.engine.table import GLUED, HEADED, STAMPED, TRUNCATED, WRAPPED
from forensics.grammar.header import Head

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
OTHER_SHAPE = "\u2026"


HEX_WORD = re.compile(rb"(?<![0-9A-Za-z_])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*0)[0-9a-f]{8,64}(?![0-9A-Za-z_])")


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
        self.axes: dict[tuple[str, ...], int] = {}
        self.ranks_capped = False
        self.wrappers: dict[tuple[str, ...], int] = {(): 0}
        self._rows: list[list[int]] = []
        self._coarse_records: dict[tuple[Head, str, int], int] = {}
        self._plan = np.zeros((WIDTH, 0), np.int32)
        self._marks = np.zeros(0, np.uint8)
        self._planned = self._slotted = 0
        self._slot_rows: list[npt.NDArray[np.int32]] = []
        self._constants: list[npt.NDArray[np.float64]] = []
        self._slot_table = np.zeros((SLOT_COLUMNS, 5, 0), np.int32)
        self._constant_table = np.zeros((SLOT_COLUMNS, 0))

    def __missing__(self, key: bytes) -> int:
        if self.reader.capped:
            index = self._coarse(key)
            if index >= 0:
                return index
        if len(key) <= LONG_LINE:
            # Lines that differ in hashes and request ids only share one mask, which is not remembered for each.
            plain = HEX_WORD.sub(_zeros, key)
            known = self.get(plain)
            if known is not None:
                return known
            index = self.add(plain.decode("latin-1"))
            self[plain] = index
        else:
            index = self.add(key[:LONG_LINE].decode("latin-1"), cut=True)
        self._rows[index][LENGTH] = len(key)
        return index

    def _coarse(self, key: bytes) -> int:
        """Past the cap of shapes: one record per header, kind and length, and no mask remembered. -1: read it fully."""
        found = self.reader.coarse(key[:LONG_LINE].decode("latin-1"))
        if found is None:
            return -1
        head, kind = found
        signature = (head, kind, len(key))
        index = self._coarse_records.get(signature)
        if index is None:
            index = self._coarse_records[signature] = len(self._rows)
            part = Part(0, len(key), head, kind, (kind, OTHER_SHAPE))
            self._rows.append(self._record(part, 0, 1, whole=True, cut=len(key) > LONG_LINE))
            self._rows[index][LENGTH] = len(key)
        return index

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
        head = part.head
        row = [0] * WIDTH
        row[CLASS] = _CLASSES.get(part.kind, ROW)
        row[SHAPE] = self.shape_id(part.shape)
        stamp = stamp_of(head, self.outer_time)
        flags = (GLUED if number else 0) | (TRUNCATED if cut and whole else 0)
        if stamp is not None:
            row[FORM], row[DATE_AT], row[CLOCK_AT] = stamp.form, stamp.date_at, stamp.clock_at
            row[FRACTION_AT], row[FRACTION_WIDTH] = stamp.fraction_at, stamp.fraction_width
            flags |= STAMPED
        if head.header:
            flags |= HEADED
        if head.wrappers[:1] in (("W_SLURM",), ("W_PREAMBLE",)):
            flags |= WRAPPED
        axes = head.axes[:MAX_AXES]
        row[AXES] = self._axes_id(tuple(a.name for a in axes)) if axes else -1
        for i, axis in enumerate(axes):
            row[AXIS0 + 2 * i], row[AXIS0 + 2 * i + 1] = axis.at, axis.width
        row[FLAGS], row[START], row[STOP] = flags, part.start, -1 if whole else part.stop
        row[PARTS], row[PARTIAL] = parts, int(head.partial)
        row[WRAPPER] = self.wrappers.setdefault(head.wrappers, len(self.wrappers))
        row[SLOTS] = self._slots(part) if part.slots else -1
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

    def shape_id(self, shape: tuple[str, str]) -> int:
        """Number of a shape; past the cap all new ones of a kind share one."""
        found = self.shapes.get(shape)
        if found is not None:
            return found
        if len(self.shapes) >= SHAPE_CAP:
            self.reader.capped = True
            shape = (shape[0], OTHER_SHAPE)
        return self.shapes.setdefault(shape, len(self.shapes))

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
        self._coarse_records = {}
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
