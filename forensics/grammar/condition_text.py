"""The canonical text of a condition: printing and parsing give the same tree back."""

from __future__ import annotations

import re

from forensics.grammar.condition_tree import (
    Absent,
    And,
    Before,
    CaptureRef,
    Compare,
    Count,
    FactRef,
    FirstFailureHas,
    Known,
    Level,
    Member,
    Node,
    Not,
    Or,
    Quantifier,
    Quantity,
    Reached,
    Search,
    Seen,
    Silence,
    State,
    Symptom,
    Term,
    Text,
    Trend,
    Tried,
    Truth,
)

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[-.\/:][A-Za-z0-9_]+)*|v?\d+\.\d+(?:\.[A-Za-z0-9]+)+(?:\+[\w.-]+)?")
_KEYWORDS = frozenset(
    [
        "or",
        "and",
        "not",
        "in",
        "before",
        "absent",
        "known",
        "count",
        "within",
        "silence",
        "symptom",
        "stage",
        "reached",
        "ended",
        "first",
        "tried",
        "series",
        "on",
    ]
)
_OUTCOMES = {"": "", "same": " and same failure", "none": " and no failure"}


def format_condition(node: Node) -> str:
    """The condition in canonical form."""
    if isinstance(node, Or):
        return " or ".join(format_condition(p) for p in node.parts)
    if isinstance(node, And):
        return " and ".join(_bracketed(p, Or) for p in node.parts)
    if isinstance(node, Not):
        return f"not {_bracketed(node.part, (Or, And))}"
    return _relation(node)


def _bracketed(node: Node, looser: type | tuple[type, ...]) -> str:
    text = format_condition(node)
    return f"({text})" if isinstance(node, looser) else text


def _relation(node: Node) -> str:
    if isinstance(node, Seen):
        return node.signal + _on(node.on)
    if isinstance(node, Absent):
        return f"absent {node.signal}{_on(node.on)}"
    if isinstance(node, Before):
        return f"{format_condition(node.first)} before {format_condition(node.second)}{_on(node.on)}"
    if isinstance(node, Compare):
        return f"{_term(node.left)} {node.op} {_term(node.right)}"
    if isinstance(node, Member):
        return f"{_term(node.left)} {_negated(node.negated)}in {{{', '.join(map(_term, node.values))}}}"
    if isinstance(node, Search):
        return f"{_term(node.left)} ~ {_quoted(node.pattern)}"
    if isinstance(node, Truth):
        return node.name
    if isinstance(node, Known):
        return f"known {node.name}"
    return _observation(node)


def _observation(node: Node) -> str:
    if isinstance(node, Count):
        within = f" within {node.within.text}" if node.within else ""
        return f"count {node.signal}{_on(node.on)} {node.op} {node.number.text}{within}"
    if isinstance(node, Silence):
        before = f" before {node.before}" if node.before else ""
        return f"silence {node.op} {node.length.text}{_on(node.on)}{before}"
    if isinstance(node, Symptom):
        return f"symptom {node.name}"
    if isinstance(node, Reached):
        return f"stage reached {node.stage}"
    if isinstance(node, State):
        if len(node.values) == 1:
            return f"{node.subject} {'!=' if node.negated else '='} {node.values[0]}"
        return f"{node.subject} {_negated(node.negated)}in {{{', '.join(node.values)}}}"
    if isinstance(node, FirstFailureHas):
        return f"first failure has {node.signal}"
    if isinstance(node, Tried):
        setting = node.name if node.value is None else f"{node.name}={_value(node.value)}"
        return f"tried {setting}{_OUTCOMES[node.outcome]}"
    if isinstance(node, Trend):
        return f"series {node.series} {node.direction}"
    if isinstance(node, Level):
        return f"series {node.series} {node.op} {node.number.text}"
    raise TypeError(f"no condition: {node!r}")


def _term(term: Term, least: int = 0) -> str:
    """A term; one that binds looser than `least` goes into brackets."""
    if isinstance(term, Quantity):
        return term.text
    if isinstance(term, Text):
        return term.text if _PLAIN.fullmatch(term.text) and term.text not in _KEYWORDS else _quoted(term.text)
    if isinstance(term, FactRef):
        return term.name
    if isinstance(term, CaptureRef):
        return f"{term.signal}.{term.capture}" if term.signal else term.capture
    binds = 1 if term.op in "+-" else 2
    text = f"{_term(term.left, binds)} {term.op} {_term(term.right, binds + 1)}"
    return f"({text})" if binds < least else text


def _on(on: Quantifier | None) -> str:
    if on is None:
        return ""
    if on.kind == "named":
        return f" on rank {on.rank}"
    return " on the failing rank" if on.kind == "failing" else f" on {on.kind} rank"


def _negated(negated: bool) -> str:
    return "not " if negated else ""


def _value(text: str) -> str:
    return text if re.fullmatch(r'[^\s"(){},]+', text) else f'"{text}"'


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
