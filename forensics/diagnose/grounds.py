"""Conditions of a finding asked of one launch: each becomes a ground for, against or unknown, with its places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import Outcome, evaluate
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


@frozen
class Ledger:
    """All grounds of one finding on one launch, by strength."""

    applies: tuple[Ground, ...]
    must: tuple[Ground, ...]
    decisive: tuple[Ground, ...]
    strong: tuple[Ground, ...]
    weak: tuple[Ground, ...]
    against: tuple[Ground, ...]
    excludes: tuple[Ground, ...]

    def all(self) -> tuple[Ground, ...]:
        """Every ground, the weightiest first."""
        return (
            *self.must,
            *self.decisive,
            *self.strong,
            *self.excludes,
            *self.against,
            *self.weak,
            *self.applies,
        )

    def held(self, strength: str) -> tuple[Ground, ...]:
        """Grounds of this strength whose condition is true."""
        return tuple(g for g in getattr(self, strength) if g.value is True)


def ledger(finding: Finding, case: Case) -> Ledger:
    """Evaluate the conditions of a finding on one launch. Nothing is decided here; where something that it requires is
    false, its other grounds are not asked (`explain` asks all)."""
    applies = tuple(ask(c, "applies", case) for c in finding.applies)
    must = tuple(ask(c, "must", case) for c in finding.grounds if c.strength == "must")
    asked: dict[str, list[Ground]] = {}
    if all_of(must) is not False and all_of(applies) is not False:
        for condition in finding.grounds:
            if condition.strength != "must":
                asked.setdefault(condition.strength, []).append(ask(condition, condition.strength, case))
    get = {name: tuple(grounds) for name, grounds in asked.items()}
    return Ledger(
        applies=applies,
        must=must,
        decisive=get.get("decisive", ()),
        strong=get.get("strong", ()),
        weak=get.get("weak", ()),
        against=get.get("against", ()),
        excludes=get.get("excludes", ()),
    )


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
        where=spans(outcome, case),
        observed=bool(signals_in([condition], case.rules, negated=True)) or bool(_OBSERVING.search(condition.text)),
        signals=tuple(n for n in named if n in case.signals),
    )


def all_of(grounds: Iterable[Ground]) -> bool | None:
    """Kleene conjunction; true of nothing."""
    values = [g.value for g in grounds]
    if False in values:
        return False
    return None if None in values else True


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


def spans(outcome: Outcome, case: Case) -> tuple[Span, ...]:
    """Places of what a condition rests on."""
    return tuple(dict.fromkeys(outcome.witnesses))


def _side(strength: str, value: bool | None) -> str:
    if value is None:
        return UNKNOWN
    speaks_against = strength in ("against", "excludes")
    return AGAINST if value is speaks_against else FOR
