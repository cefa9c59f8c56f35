"""Where rows stand: the block of each row, and the stacks of the blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.rulebook.patterns import Pattern
from forensics.schema.block import Block, Frame

Stack = tuple[str, ...]


class BlockPlaces:
    """`block_of`: for each row the index of its block, -1 where it is in none; the first block that names a row keeps
    it. Equal stacks, as ranks and launches print them, are searched once. `rows`: how many the table has."""

    def __init__(self, blocks: Sequence[Block], rows: int) -> None:
        self.blocks = blocks
        self.block_of = _block_of(blocks, rows)
        self._stacks: dict[int, Stack] = {}
        self._known: dict[Stack, Stack] = {}
        self._held: dict[tuple[Pattern, int], bool] = {}

    def in_stack(self, place: int, wanted: Pattern) -> bool:
        """Whether a frame of a block (-1: none) matches."""
        stack = self._stack(place)
        key = wanted, id(stack)
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = any(wanted.search(frame) for frame in stack)
        return found

    def _stack(self, place: int) -> Stack:
        found = self._stacks.get(place)
        if found is None:
            stack = _frames(self.blocks[place]) if place >= 0 else ()
            found = self._stacks[place] = self._known.setdefault(stack, stack)
        return found


def raised_in(block: Block, row: int, wanted: Pattern) -> bool:
    """Whether the innermost frame of the exception that a row states (else of the block) matches."""
    own = next((r.frames for r in block.raised if r.row == row and r.frames), block.frames)
    return bool(own) and wanted.search(_shown(own[-1])) is not None


def _frames(block: Block) -> Stack:
    """The different frames of a block as rules see them."""
    every = chain(block.frames, *(raised.frames for raised in block.raised))
    return tuple(dict.fromkeys(map(_shown, every)))


def _shown(frame: Frame) -> str:
    return f"{frame.file}:{frame.number} in {frame.function}"


def _block_of(blocks: Sequence[Block], length: int) -> npt.NDArray[np.int32]:
    found = np.full(length, -1, np.int32)
    rows = [np.fromiter(block.rows, np.int64, len(block.rows)) for block in reversed(blocks)]
    if rows:
        index = np.repeat(np.arange(len(blocks) - 1, -1, -1, dtype=np.int32), [len(r) for r in rows])
        found[np.concatenate(rows)] = index
    return found


def places_of(blocks: Sequence[Block], table: EventTable) -> BlockPlaces:
    """The places of these blocks, kept with the table for its further launches."""
    found: BlockPlaces | None = table.memo.get("places")
    if found is None or found.blocks is not blocks:
        found = table.memo["places"] = BlockPlaces(blocks, len(table))
    return found
