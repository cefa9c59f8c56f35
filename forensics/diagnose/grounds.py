"""Conditions of a finding asked of one launch: each becomes a ground for, against or unknown, with its places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache

from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import Outcome, decide, evaluate
from forensics.schema.finding import Condition, Finding
from forensics.schema.signal import Rule
from forensics.schema.span import Span

FOR, AGAINST, UNKNOWN = "for", "against", "unknown"
_WORD = re.compile(r"[A-Za-z][\w/-]*(?:\.[a-z_]\w*)*")
_QUOTED = re.compile(r'"[^"]*"')
_NEGATED = re.compile(r"\b(?:not|absent)\s+(?:count\s+)?([A-Za-z][\w/-]*)")
_OBSERVING = re.compile(r"\b(?:silence|series|tried|first failure has|stage|ended)\b")


@frozen
class Ground:
    """One condition asked of one launch. `value` is what the condition came to (None: the log cannot tell); `side`
    says what that means for the finding. `observed`: the condition rests on something that the log shows happening
    (a signal, a silence, a series), not on settings alone. `signals`: those that it names and that were seen."""

    side: str
    strength: str
    condition: str
    value: bool | None
    why: str
    settle: str = ""
    where: tuple[Span, ...] = ()
    observed: bool = False
    signals: tuple[str, ...] = ()


class Ledger:
    """All grounds of one finding on one launch, by strength, each kind asked when somebody looks: of most findings no
    more is needed than whether they can be true at all. Nothing is decided here; where something that it requires is
    false, its other grounds are not asked (`explain` asks all). `holds`: whether all that it requires is so."""

    def __init__(self, finding: Finding, case: Case, holds: bool | None) -> None:
        self._finding, self._case = finding, case
        self._asked: dict[str, tuple[Ground, ...]] = {}
        self.holds = holds

    @cached_property
    def fits(self) -> bool | None:
        """Whether the launch is of the kind that can have it."""
        return decide(self._finding.applies, self._case)

    @property
    def applies(self) -> tuple[Ground, ...]:
        """What makes a launch one that can have it."""
        return self._of("applies")

    @property
    def must(self) -> tuple[Ground, ...]:
        """What it requires."""
        return self._of("must")

    @property
    def decisive(self) -> tuple[Ground, ...]:
        """What names the cause."""
        return self._of("decisive")

    @property
    def strong(self) -> tuple[Ground, ...]:
        """What tells it from most look-alikes."""
        return self._of("strong")

    @property
    def weak(self) -> tuple[Ground, ...]:
        """What fits it, and others."""
        return self._of("weak")

    @property
    def excludes(self) -> tuple[Ground, ...]:
        """What rules it out."""
        return self._of("excludes")

    def all(self) -> tuple[Ground, ...]:
        """Every ground, the weightiest first."""
        order = ("must", "decisive", "strong", "excludes", "against", "weak", "applies")
        return tuple(ground for strength in order for ground in self._of(strength))

    def held(self, strength: str) -> tuple[Ground, ...]:
        """Grounds of this strength whose condition is true."""
        return tuple(g for g in self._of(strength) if g.value is True)

    def observed(self) -> bool:
        """Whether something that it requires, or that names the cause, is true and rests on what the log shows
        happening."""
        alive = self.holds is not False and self.fits is not False
        asked = (c for c in self._finding.grounds if c.strength == "must" or (alive and c.strength == "decisive"))
        return any(observing(c, self._case.rules) and decide((c,), self._case) is True for c in asked)

    def _of(self, strength: str) -> tuple[Ground, ...]:
        found = self._asked.get(strength)
        if found is None:
            asked = strength in ("must", "applies") or (self.holds is not False and self.fits is not False)
            conditions = self._finding.applies if strength == "applies" else self._finding.grounds
            wanted = [c for c in conditions if asked and strength in ("applies", c.strength)]
            found = self._asked[strength] = tuple(ask(c, strength, self._case) for c in wanted)
        return found


def ask(condition: Condition, strength: str, case: Case) -> Ground:
    """One condition on one launch."""
    outcome = evaluate(condition, case)
    named = signals_in([condition], case.rules)
    return Ground(
        side=_side(strength, outcome.value),
        strength=strength,
        condition=condition.text,
        value=outcome.value,
        why=outcome.why,
        settle=outcome.settle,
        where=spans(outcome),
        observed=observing(condition, case.rules),
        signals=tuple(n for n in named if n in case.signals),
    )


def observing(condition: Condition, rules: Mapping[str, Rule]) -> bool:
    """Whether a condition asks for something that a log shows happening, not for settings alone."""
    return bool(signals_in([condition], rules, negated=True)) or _OBSERVING.search(condition.text) is not None


def signals_in(conditions: Iterable[Condition], rules: Mapping[str, Rule], *, negated: bool = False) -> tuple[str, ...]:
    """Ids of the rules that conditions name, in order. Negated mentions (`not x`, `absent x`) only if asked for."""
    found: dict[str, None] = {}
    for condition in conditions:
        words, skip = _words(condition.text)
        for word in words:
            name = word if word in rules else word.split(".", 1)[0]
            if name in rules and (negated or name not in skip):
                found[name] = None
    return tuple(found)


@lru_cache(maxsize=8192)
def _words(condition: str) -> tuple[tuple[str, ...], frozenset[str]]:
    """Words of a condition outside quotes, each once, and those that it negates."""
    text = _QUOTED.sub(" ", condition)
    return tuple(dict.fromkeys(_WORD.findall(text))), frozenset(_NEGATED.findall(text))


def spans(outcome: Outcome) -> tuple[Span, ...]:
    """Places of what a condition rests on."""
    return tuple(dict.fromkeys(outcome.witnesses))


def _side(strength: str, value: bool | None) -> str:
    if value is None:
        return UNKNOWN
    speaks_against = strength in ("against", "excludes")
    return AGAINST if value is speaks_against else FOR
