"""One launch with everything that conditions may ask about."""

from __future__ import annotations

from dataclasses import field

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.schema.block import Block
from forensics.schema.launch import Launch
from forensics.schema.signal import Rule, Signal


@frozen
class Case:
    """`signals` by rule id (only those that matched). `earlier` are the launches before this one, oldest first, plus
    those that an explicit history adds. `symptom` is what the user stated."""

    table: EventTable
    blocks: tuple[Block, ...]
    launch: Launch
    signals: dict[str, Signal]
    rules: dict[str, Rule]
    symptom: str | None = None
    earlier: tuple[Case, ...] = field(default=())
