"""Conditions that can never hold: found by writing them as alternatives and looking for clashes inside each."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from forensics.grammar.condition_text import format_condition
from forensics.grammar.condition_tree import (
    And,
    Compare,
    Count,
    FactRef,
    Member,
    Node,
    Not,
    Or,
    Quantity,
    State,
    Symptom,
    Term,
    Text,
    Tried,
)
from forensics.rulebook.arithmetic import number, spelled
from forensics.rulebook.versions import Bound, contradictory, version_key

Literal = tuple[Node, bool]
MAX_ALTERNATIVES = 256
_TURNED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def never_holds(nodes: Iterable[Node], bounds: Iterable[Bound] = ()) -> str:
    """Why the conditions can never hold together, empty where they can. `bounds` limit `version.sglang`."""
    alternatives: list[tuple[Literal, ...]] = [()]
    for node in nodes:
        more = _alternatives(node, True)
        if len(alternatives) * len(more) > MAX_ALTERNATIVES:
            return ""
        alternatives = [a + b for a, b in product(alternatives, more)]
    reason = ""
    for literals in alternatives:
        reason = _clash(literals, tuple(bounds))
        if not reason:
            return ""
    return reason


def _alternatives(node: Node, wanted: bool) -> list[tuple[Literal, ...]]:
    """Disjunctive form: each alternative is a list of parts that must hold (or must not)."""
    if isinstance(node, Not):
        return _alternatives(node.part, not wanted)
    if isinstance(node, (And, Or)):
        parts = [_alternatives(p, wanted) for p in node.parts]
        if isinstance(node, Or) is wanted:
            return [a for part in parts for a in part][:MAX_ALTERNATIVES]
        size = 1
        for part in parts:
            size *= len(part)
        if size > MAX_ALTERNATIVES:
            return [()]
        return [tuple(x for a in chosen for x in a) for chosen in product(*parts)]
    return [((node, wanted),)]


def _clash(literals: tuple[Literal, ...], bounds: tuple[Bound, ...]) -> str:
    """Why these parts exclude each other, empty where they do not."""
    seen: dict[str, bool] = {}
    for node, wanted in literals:
        text = format_condition(node)
        if seen.setdefault(text, wanted) is not wanted:
            return f"`{text}` cannot both hold and not hold"
        if isinstance(node, Count) and wanted and node.op in ("<", "=") and node.number.value < (node.op == "<"):
            return f"`{text}` asks for less than nothing"
    return _values_clash(literals) or _versions_clash(literals, bounds) or _states_clash(literals)


def _values_clash(literals: tuple[Literal, ...]) -> str:
    """One fact cannot have two values, nor a value outside of its bounds."""
    allowed: dict[str, set[str]] = {}
    refused: dict[str, set[str]] = {}
    limits: dict[str, list[tuple[str, float]]] = {}
    for node, wanted in literals:
        if isinstance(node, Compare) and isinstance(node.left, FactRef) and node.left.name != "version.sglang":
            _note(node.left.name, node.op if wanted else _TURNED[node.op], node.right, allowed, refused, limits)
        elif isinstance(node, Member) and isinstance(node.left, FactRef):
            values = {_word(v) for v in node.values}
            if wanted is not node.negated:
                allowed[node.left.name] = allowed.get(node.left.name, values) & values
            else:
                refused.setdefault(node.left.name, set()).update(values)
    for name, values in allowed.items():
        left = values - refused.get(name, set())
        if not left:
            return f"`{name}` cannot have all the values that are asked of it"
        numbers = [n for v in left if (n := number(v)) is not None]
        if len(numbers) == len(left) and not any(_within(n, limits.get(name, [])) for n in numbers):
            return f"no value of `{name}` satisfies all comparisons"
    return next((f"no value of `{n}` satisfies all comparisons" for n, held in limits.items() if _empty(held)), "")


def _note(
    name: str,
    op: str,
    right: Term,
    allowed: dict[str, set[str]],
    refused: dict[str, set[str]],
    limits: dict[str, list[tuple[str, float]]],
) -> None:
    if not isinstance(right, (Quantity, Text)):
        return
    if op == "=":
        allowed[name] = allowed.get(name, {_word(right)}) & {_word(right)}
    elif op == "!=":
        refused.setdefault(name, set()).add(_word(right))
    elif isinstance(right, Quantity):
        limits.setdefault(name, []).append((op, right.value))


def _word(term: Term) -> str:
    if isinstance(term, Quantity):
        return spelled(term.value)
    return term.text.lower() if isinstance(term, Text) else format(term)


def _within(value: float, limits: list[tuple[str, float]]) -> bool:
    tests = {"<": value.__lt__, "<=": value.__le__, ">": value.__gt__, ">=": value.__ge__}
    return all(tests[op](limit) for op, limit in limits)


def _empty(limits: list[tuple[str, float]]) -> bool:
    points = [limit for _, limit in limits]
    probes = [p + shift for p in points for shift in (-1e-9 * max(1.0, abs(p)), 0.0, 1e-9 * max(1.0, abs(p)))]
    return bool(probes) and not any(_within(p, limits) for p in probes)


def _versions_clash(literals: tuple[Literal, ...], bounds: tuple[Bound, ...]) -> str:
    found = list(bounds)
    for node, wanted in literals:
        if isinstance(node, Compare) and isinstance(node.left, FactRef) and node.left.name == "version.sglang":
            text = getattr(node.right, "text", "")
            if version_key(text) is not None:
                op = node.op if wanted else _TURNED[node.op]
                found.append(Bound("==" if op == "=" else op, text))
    if len(found) > len(bounds) and contradictory(tuple(found)):
        return "no release of sglang satisfies all version bounds"
    return ""


def _states_clash(literals: tuple[Literal, ...]) -> str:
    held: dict[str, set[str]] = {}
    for node, wanted in literals:
        if isinstance(node, State) and wanted is not node.negated:
            values = set(node.values)
            held[node.subject] = held.get(node.subject, values) & values
        elif isinstance(node, Symptom) and wanted:
            held["symptom"] = held.get("symptom", {node.name}) & {node.name}
        elif isinstance(node, Tried):
            continue
    return next((f"`{subject}` cannot be two things at once" for subject, values in held.items() if not values), "")
