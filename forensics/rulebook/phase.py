"""Stage and phase words of a row: what a rule's `stages` is compared with."""

from __future__ import annotations

import re

import numpy as np

from forensics.engine.table import EventTable
from forensics.schema.block import Block
from forensics.schema.launch import Launch
from forensics.schema.rank import Rank
from forensics.timeline.stages import stage_at

_DECODE = re.compile(r"forward_decode|decode_cuda_graph|run_batch_decode|\bdecode\b", re.IGNORECASE)
_PREFILL = re.compile(r"forward_extend|prefill|\bextend\b", re.IGNORECASE)


def phase_words(table: EventTable, launch: Launch, row: int, rank: Rank | None, block: Block | None) -> frozenset[str]:
    """The start-up stage of a row; while serving, `serving` and the phases that it may be in."""
    stage = stage_at(launch.marks, row, rank)
    words = {stage}
    functions = _functions(block)
    if _DECODE.search(functions):
        words.add("decode")
    if _PREFILL.search(functions):
        words.add("prefill")
    if stage == "serving" and len(words) == 1:
        words |= _by_batches(table, launch, row)
    return frozenset(words)


def _functions(block: Block | None) -> str:
    if block is None:
        return ""
    frames = [*block.frames, *(f for raised in block.raised for f in raised.frames)]
    return " ".join(f"{f.function} {f.file.rpartition('/')[2]}" for f in frames)


def _by_batches(table: EventTable, launch: Launch, row: int) -> set[str]:
    """The kind of the last batch line above the row; nothing tells a single cause apart, so both neighbours count."""
    last: dict[str, int] = {}
    for kind, series in table.series.items():
        at = int(np.searchsorted(series.row, row, side="right"))
        if at and series.row[at - 1] >= int(launch.rows[0]):
            last[kind] = int(series.line[at - 1])
    if not last:
        return {"idle"}
    newest = max(last, key=lambda kind: last[kind])
    # A decode line is printed every so many steps, a prefill line for each: after a prefill it may be either.
    return {"prefill", "decode"} if newest == "prefill" else {"decode", "idle"}
