"""Conditions over a case, in three-valued logic; every node says what it came to, why, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from forensics.grammar.condition_text import format_condition
from forensics.grammar.condition_tree import (
    Absent,
    And,
    Before,
    Compare,
    Count,
    FirstFailureHas,
    Known,
    Level,
    Member,
    Node,
    Not,
    Or,
    Reached,
    Search,
    Seen,
    Silence,
    State,
    Symptom,
    Trend,
    Tried,
    Truth,
)
from forensics.grammar.conditions import parse_condition
from forensics.rulebook import ask_course, ask_fact, ask_series, ask_signal
from forensics.rulebook.case import Case
from forensics.rulebook.outcome import Outcome, kleene_and, kleene_not, kleene_or, some_of
from forensics.schema.finding import Condition

__all__ = ["Outcome", "decide", "decided", "evaluate", "trees"]

_ASK: dict[type, Callable[[Any, Case], Outcome]] = {
    Seen: ask_signal.seen,
    Absent: ask_signal.absent,
    Before: ask_signal.before,
    Count: ask_signal.count,
    FirstFailureHas: ask_signal.first_failure_has,
    Compare: ask_fact.compare,
    Member: ask_fact.member,
    Search: ask_fact.search,
    Truth: ask_fact.truth_of,
    Known: ask_fact.known,
    Symptom: ask_course.symptom,
    Reached: ask_course.reached,
    State: ask_course.state,
    Silence: ask_course.silence,
    Tried: ask_course.tried,
    Level: ask_series.level,
    Trend: ask_series.trend,
}


def evaluate(condition: Condition | Node | str, case: Case) -> Outcome:
    """What a condition comes to in one launch. ConditionError where the text does not parse."""
    node = condition
    if isinstance(condition, Condition):
        node = parse_condition(condition.text, condition.span)
    elif isinstance(condition, str):
        node = parse_condition(condition)
    return _node(node, case)  # type: ignore[arg-type]


def decide(conditions: Iterable[Condition], case: Case) -> bool | None:
    """Whether all conditions hold: the value that `evaluate` gives them together, and nothing else. No more is asked
    than it takes. ConditionError as there."""
    return decided(trees(conditions), case)


def trees(conditions: Iterable[Condition]) -> tuple[Node, ...]:
    """What `decided` asks. ConditionError where a text does not parse."""
    return tuple(parse_condition(c.text, c.span) for c in conditions)


def decided(nodes: tuple[Node, ...], case: Case) -> bool | None:
    """`decide`, for conditions that many cases are asked for."""
    return _all(nodes, case)


def _value(node: Node, case: Case) -> bool | None:
    if isinstance(node, And):
        return _all(node.parts, case)
    if isinstance(node, Or):
        return _any(node.parts, case)
    if isinstance(node, Not):
        return kleene_not(_value(node.part, case))
    return _leaf(node, case).value


def _all(parts: tuple[Node, ...], case: Case) -> bool | None:
    value: bool | None = True
    for part in parts:
        held = _leaf(part, case).value if isinstance(part, Seen) else _value(part, case)
        if held is False:
            return False
        value = value and held
    return value


def _any(parts: tuple[Node, ...], case: Case) -> bool | None:
    """As `_joined` has it: a wording that this release does not print is unknown only where no other one is printed."""
    unknown, lapsed, alive = False, False, False
    for part in parts:
        if isinstance(part, Seen):
            found = _leaf(part, case)
            held, gone = found.value, found.lapsed
            lapsed, alive = lapsed or gone, alive or not gone
        else:
            held, gone = _value(part, case), False
        if held is True:
            return True
        unknown = unknown or (held is None and not gone)
    return None if unknown or (lapsed and not alive) else False


def _node(node: Node, case: Case) -> Outcome:
    if isinstance(node, Not):
        return _negated(node, case)
    if isinstance(node, (And, Or)):
        return _joined(node, case)
    found = _leaf(node, case)
    text = format_condition(node)
    return Outcome(found.value, found.witnesses, found.why, found.settle, found.parts, text, found.lapsed)


def _leaf(node: Node, case: Case) -> Outcome:
    """One question to the case; findings share many."""
    known, key = case.memo.leaves, node.signal if isinstance(node, Seen) and node.on is None else node
    found = known.get(key)
    if found is None:
        found = known[key] = _ASK[type(node)](node, case)
    return found


def _negated(node: Not, case: Case) -> Outcome:
    part = _node(node.part, case)
    text = format_condition(node)
    return Outcome(kleene_not(part.value), part.witnesses, part.why, part.settle, (part,), text, part.lapsed)


def _joined(node: And | Or, case: Case) -> Outcome:
    """All parts are asked, so that each can be explained; those that decided give reason and places."""
    parts = tuple(_node(p, case) for p in node.parts)
    told_parts = _without_lapsed(node, parts) if isinstance(node, Or) else parts
    join = kleene_and if isinstance(node, And) else kleene_or
    value = join(p.value for p in told_parts)
    told = [p for p in told_parts if p.value is value]
    # In a true `or` or a false `and`, one part decides; else all parts of that value do.
    if value is not None and value is isinstance(node, Or):
        told = told[:1]
    witnesses = some_of(w for p in told for w in p.witnesses)
    why = "; ".join(dict.fromkeys(p.why for p in told if p.why))
    settle = "; ".join(dict.fromkeys(p.settle for p in told if p.settle)) if value is None else ""
    return Outcome(value, witnesses, why, settle, parts, format_condition(node))


def _without_lapsed(node: Or, parts: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Wordings that this release does not print leave the question to the alternatives that it does print."""
    lapsed = [isinstance(n, Seen) and p.lapsed for n, p in zip(node.parts, parts, strict=True)]
    alive = any(isinstance(n, Seen) and not p.lapsed for n, p in zip(node.parts, parts, strict=True))
    return tuple(p for p, gone in zip(parts, lapsed, strict=True) if not gone) if alive else parts
