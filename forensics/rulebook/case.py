"""One launch with everything that conditions may ask about."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.schema.block import Block
from forensics.schema.launch import Launch
from forensics.schema.signal import Rule, Signal

if TYPE_CHECKING:
    from forensics.grammar.condition_tree import Node
    from forensics.rulebook.coverage import Coverage
    from forensics.rulebook.facts import Lookup
    from forensics.rulebook.outcome import Outcome


class Memo:
    """Answers that many conditions ask of one case, each filled by the module that gives it: what a condition's leaves
    came to (a signal that is asked for by itself: under its id), what the log would show, facts by name."""

    __slots__ = ("coverages", "facts", "full_dump", "leaves")

    def __init__(self) -> None:
        self.leaves: dict[Node | str, Outcome] = {}
        self.coverages: dict[str, Coverage] = {}
        self.facts: dict[str, Lookup] = {}
        self.full_dump: bool | None = None


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
    memo: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)
