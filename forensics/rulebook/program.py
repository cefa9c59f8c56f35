"""Rules made ready for matching: compiled patterns, and one prefilter over shapes for all of them together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from forensics.engine.mask import SHAPE_LENGTH, fold
from forensics.engine.table import EventTable, Shape
from forensics.frozen import frozen
from forensics.grammar.line import opaque
from forensics.rulebook.literals import demands, digit_blind, required
from forensics.rulebook.patterns import Pattern, compiled
from forensics.rulebook.prefilter import Prefilter, prefilter
from forensics.schema.signal import Rule

Rules = Mapping[str, Rule] | Iterable[Rule]
FEW_WORDS = 24
"""Up to so many words are found faster one by one than by a set."""
USER_TEXT = frozenset({"request-dump"})
_DIGIT = re.compile(r"\d", re.ASCII)
_MASKED = re.compile(r"[.,]{0,6}\d[\d.,]*|\s+|[^\x20-\x7e]+")


@dataclass(frozen=True)
class Ready:
    """One rule, compiled when it is first asked. `blind`: the first line of a shape decides for all its lines (only
    what they capture may differ). `plain`: it asks nothing of the place of a match."""

    rule: Rule
    blind: bool
    plain: bool

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        return tuple(map(compiled, self.rule.patterns))

    @cached_property
    def needs(self) -> frozenset[str] | None:
        """Texts of which a match holds one; None where one of the patterns does without."""
        return _needed(self.rule)

    @cached_property
    def _needs(self) -> tuple[frozenset[str] | None, ...]:
        return tuple(map(required, self.rule.patterns))

    def near(self, text: str) -> tuple[Pattern, ...]:
        """The patterns that a text, or one that differs from it in digits only, may satisfy: it holds what they cannot
        do without."""
        lowered = text.lower()
        # Where one line decides for all it is searched anyhow; else each is read, and a closer look at one pays.
        return tuple(
            pattern
            for pattern, need, text in zip(self.patterns, self._needs, self.rule.patterns, strict=True)
            if (need is None or any(n in lowered for n in need)) and (self.blind or _holds(lowered, demands(text)))
        )

    @cached_property
    def absent(self) -> tuple[Pattern, ...]:
        return tuple(map(compiled, self.rule.absent))

    @cached_property
    def frames(self) -> Pattern | None:
        return compiled(self.rule.frames) if self.rule.frames else None

    @cached_property
    def innermost(self) -> Pattern | None:
        return compiled(self.rule.innermost) if self.rule.innermost else None

    @cached_property
    def exception(self) -> Pattern | None:
        return compiled(self.rule.exception) if self.rule.exception else None


@frozen
class Program:
    """All rules of a run, and what tells which of them a text may satisfy."""

    ready: tuple[Ready, ...]
    prefilter: Prefilter

    def candidates(self, text: str) -> list[int]:
        """Indexes of the rules that this text may satisfy."""
        return sorted(self.prefilter.near(text))


@frozen
class ShapePlan:
    """What the prefilter says about one shape. `open`: its lines differ in more than digits, so each is asked."""

    rules: tuple[int, ...]
    open: bool


def program_of(rules: Rules) -> Program:
    """The compiled program of these rules (the last few are kept)."""
    asked = tuple(rules.values() if isinstance(rules, Mapping) else rules)
    newest = next(iter(_NEWEST), None)
    if newest is None or newest[0] != asked:  # the same objects, as of the launch before, are quick to compare
        newest = asked, _program(asked)
        _NEWEST[:] = [newest]
    return newest[1]


_NEWEST: list[tuple[tuple[Rule, ...], Program]] = []
"""At most one, of rules and what was made of them alone. Read once by each caller, as another thread may put its own
there."""


@lru_cache(maxsize=8)
def _program(rules: tuple[Rule, ...]) -> Program:
    return Program(tuple(map(_ready, rules)), prefilter(map(_needed, rules)))


def _needed(rule: Rule) -> frozenset[str] | None:
    """Texts of which a rule needs one; None where one of its patterns does without."""
    wanted = [required(pattern) for pattern in rule.patterns]
    return None if any(w is None for w in wanted) else frozenset().union(*(w for w in wanted if w))


def _ready(rule: Rule) -> Ready:
    texts = rule.patterns + rule.absent
    decided = rule.where or rule.derive or (rule.captures and (rule.min_same > 1 or rule.differs))
    blind = not decided and all(digit_blind(p) for p in texts)
    return Ready(rule, blind, not (rule.exception or rule.frames or rule.innermost or rule.stages))


def _holds(lowered: str, wanted: tuple[frozenset[str], ...]) -> bool:
    return all(any(text in lowered for text in texts) for texts in wanted)


class Asked:
    """Some of the rules, for texts that differ: which of them one may satisfy. Of a few rules the words are looked for
    one by one, in the raw line first."""

    def __init__(self, program: Program, rules: Sequence[int]) -> None:
        self._program = program
        self._rules = rules
        self._needs = [program.ready[i].needs for i in rules]
        words = {word for need in self._needs for word in need or ()}
        self._words = () if None in self._needs or len(words) > FEW_WORDS else tuple(sorted(words))
        self._raw_words = tuple(word.encode() for word in self._words)

    def nobody(self, raw: bytes) -> bool:
        """Whether the message of a raw line surely satisfies none: it stands there as it is, without their words. Lines
        with colours or escapes, and those that were cut in parts, may hold them anyhow."""
        if not self._words or b"\x1b" in raw or b"\\" in raw or b"\n" in raw or _KELVIN in raw or _DOTTED in raw:
            return not self._rules
        lowered = raw.lower()
        return not any(word in lowered for word in self._raw_words)

    def among(self, text: str) -> list[int]:
        """Indexes of the rules that a text may satisfy."""
        if not self._words:
            return [i for i in self._program.candidates(text) if i in self._rules]
        lowered = text.lower()
        held = {word for word in self._words if word in lowered}
        pairs = zip(self._rules, self._needs, strict=True)
        return [i for i, need in pairs if need and not held.isdisjoint(need)] if held else []


_KELVIN, _DOTTED = "\u212a".encode(), "\u0130".encode()
"""The two characters that become letters of ASCII in lower case."""


class ShapePlans:
    """Prefilter results of one table, made when a shape is first asked for. The table keeps them, not they the table:
    with the last launch that asks, both go."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._plans: dict[int, ShapePlan] = {}

    def plan(self, table: EventTable, shape_id: int) -> ShapePlan:
        found = self._plans.get(shape_id)
        if found is None:
            found = self._plans[shape_id] = self._make(table, shape_id)
        return found

    def _make(self, table: EventTable, shape_id: int) -> ShapePlan:
        shape = table.shapes[shape_id]
        if _whole(table, shape) and not self._kept(self.program.candidates(shape.text), shape):
            return _NOBODY
        text = table.text(shape.row)
        is_open = shape.count > 1 and _varies(text, shape.text)
        asked = range(len(self.program.ready)) if is_open else self.program.candidates(text)
        return ShapePlan(self._kept(asked, shape), is_open)

    def _kept(self, asked: Iterable[int], shape: Shape) -> tuple[int, ...]:
        return tuple(i for i in asked if takes_kind(self.program.ready[i].rule, shape.kind))


_NOBODY = ShapePlan((), False)


def _whole(table: EventTable, shape: Shape) -> bool:
    """Whether the shape's text holds all that its lines say, so that their own text need not be read."""
    return int(table.length[shape.row]) <= SHAPE_LENGTH and opaque().match(shape.text) is None


def normal(text: str) -> str:
    """Text without everything that a mask may have changed."""
    return _MASKED.sub("0", text.lower())


def takes_kind(rule: Rule, kind: str) -> bool:
    """Whether a rule looks at lines of a kind. What users wrote is only looked at by rules that ask for it."""
    return kind in rule.kinds if rule.kinds else kind not in USER_TEXT


def _varies(text: str, shape: str) -> bool:
    """Whether lines of a shape may differ in more than digits and hex words: free text, or a tail beyond the shape."""
    folded, _, free = fold(_DIGIT.sub("0", text))
    return free or len(text) > SHAPE_LENGTH or normal(folded) != normal(shape)


def plans_of(program: Program, table: EventTable) -> ShapePlans:
    """The prefilter of this table, kept with it for its further launches; the newest program's alone."""
    found: ShapePlans | None = table.memo.get("plans")
    if found is None or found.program is not program:
        found = table.memo["plans"] = ShapePlans(program)
    return found
