"""Values of terms and comparisons between them: numbers, texts, switches, release names."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from forensics.grammar.condition_tree import Arithmetic, CaptureRef, Compare, FactRef, Quantity, Term, Text
from forensics.rulebook.versions import compare as compare_versions
from forensics.schema.facts import Value

_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ORDER: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
_OFF = frozenset({"0", "false", "no", "off", "n", "f"})
_ON = frozenset({"1", "true", "yes", "on", "y", "t"})
_NULL = frozenset({"none", "null", ""})


def value_of(term: Term, captures: Mapping[str, Value], facts: Callable[[str], Value]) -> Value:
    """The value of a term: `captures` by `signal.capture` (or the bare name in a rule's `where`), facts by name."""
    if isinstance(term, Quantity):
        return term.value
    if isinstance(term, Text):
        return term.text
    if isinstance(term, FactRef):
        return facts(term.name)
    if isinstance(term, CaptureRef):
        return captures.get(f"{term.signal}.{term.capture}" if term.signal else term.capture)
    left, right = (number(value_of(side, captures, facts)) for side in (term.left, term.right))
    if left is None or right is None or (term.op == "/" and right == 0):
        return None
    return _ARITHMETIC[term.op](left, right)


def compare_terms(node: Compare, captures: Mapping[str, Value]) -> bool | None:
    """A comparison over captures alone (a rule's `where`)."""
    left = value_of(node.left, captures, lambda _: None)
    right = value_of(node.right, captures, lambda _: None)
    return None if left is None or right is None else compare_values(node.op, left, right)


def compare_values(op: str, left: Value, right: Value, *, switch: bool = False, release: bool = False) -> bool | None:
    """`left op right`. `switch`: texts of environment switches (`0` and `false` are equal); `release`: release names.
    None where an order is asked of things that have none."""
    if release:
        sign = compare_versions(str(left), str(right))
        return None if sign is None else _ORDER[op](sign, 0)
    if op in ("=", "!="):
        return equal(left, right, switch) is (op == "=")
    a, b = number(left), number(right)
    return None if a is None or b is None else _ORDER[op](a, b)


def equal(left: Value, right: Value, switch: bool = False) -> bool:
    """Equality between a typed value and one that an author wrote."""
    if left is None or right is None:
        return spelled(left) in _NULL and spelled(right) in _NULL
    if isinstance(left, bool) or isinstance(right, bool):
        return truth(left) is not None and truth(left) is truth(right)
    if switch and truth(left) is not None:
        return truth(left) is truth(right)
    a, b = number(left), number(right)
    if a is not None and b is not None:
        return a == b
    return spelled(left) == spelled(right)


def number(value: Value) -> float | None:
    """A number, or a text that is one; switches are no numbers."""
    if isinstance(value, bool) or value is None or isinstance(value, tuple):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def truth(value: Value) -> bool | None:
    """The switch position that a value means, None where it means none."""
    if isinstance(value, bool):
        return value
    word = spelled(value).lower()
    return False if word in _OFF else True if word in _ON else None


def spelled(value: Value) -> str:
    """A value as authors write it in conditions; null is `none`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return ", ".join(spelled(v) for v in value)
    return str(value)


def captures_in(term: Term) -> list[CaptureRef]:
    """Captures that a term uses."""
    return [leaf for leaf in _leaves(term) if isinstance(leaf, CaptureRef)]


def facts_in(term: Term) -> list[FactRef]:
    """Facts that a term uses."""
    return [leaf for leaf in _leaves(term) if isinstance(leaf, FactRef)]


def _leaves(term: Term) -> list[Term]:
    """What a term is made of, from left to right."""
    return _leaves(term.left) + _leaves(term.right) if isinstance(term, Arithmetic) else [term]
