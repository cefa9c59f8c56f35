"""Conditions about facts and captures: comparisons, membership, search, switches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from forensics.grammar.condition_tree import CaptureRef, Compare, FactRef, Known, Member, Quantity, Search, Term, Truth
from forensics.rulebook.arithmetic import captures_in, compare_values, facts_in, spelled, truth, value_of
from forensics.rulebook.ask_signal import matches_of, not_seen
from forensics.rulebook.case import Case
from forensics.rulebook.facts import Lookup, look_up, settle_fact
from forensics.rulebook.outcome import Outcome, kleene_or, some_of
from forensics.rulebook.patterns import compiled
from forensics.rulebook.versions import interval_satisfies
from forensics.schema.facts import Value, VersionInterval
from forensics.schema.signal import Match
from forensics.schema.span import Span

MAX_COMBINATIONS = 4096
_RELATIONS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}


def compare(node: Compare, case: Case) -> Outcome:
    """A comparison: over the version interval, over facts, or over the captures of one match."""
    if _is_version(node.left) and _constant(node.right):
        return _version(node.op, _written(node.right), case)
    unknown = _unknown_fact((*facts_in(node.left), *facts_in(node.right)), case)
    if unknown is not None:
        return unknown
    signals = list(dict.fromkeys(c.signal for c in (*captures_in(node.left), *captures_in(node.right))))
    if not signals:
        value, why = _held(node, {}, case)
        return Outcome(value, _fact_spans(node, case), why)
    for signal in signals:
        if not matches_of(case, signal):
            return not_seen(case, signal)
    return _over_matches(node, signals, case)


def _over_matches(node: Compare, signals: list[str], case: Case) -> Outcome:
    """Any match may satisfy the comparison; all captures of one signal are those of one match. Matches with the same
    values come to the same: the first of them is asked."""
    chosen: tuple[bool | None, str, tuple[Match, ...]] | None = None
    for captures, matches in _distinct(node, signals, case):
        value, why = _held(node, captures, case)
        if chosen is None or value is True or (chosen[0] is False and value is None):
            chosen = value, why, matches
        if value is True:
            break
    if chosen is None:
        return Outcome(None)
    value, why, matches = chosen
    spans = some_of(case.table.span(m.row) for m in matches) + _fact_spans(node, case)
    return Outcome(value, spans, why)


def _distinct(node: Compare, signals: list[str], case: Case) -> Iterator[tuple[dict[str, Value], tuple[Match, ...]]]:
    """The captures that a comparison uses, each set of values once, with the first matches that show them."""
    wanted = {f"{c.signal}.{c.capture}" for c in (*captures_in(node.left), *captures_in(node.right))}
    known: set[tuple[tuple[str, type, Value], ...]] = set()
    for matches in islice(product(*(matches_of(case, s) for s in signals)), MAX_COMBINATIONS):
        captures = {k: v for k, v in _named(signals, matches) if k in wanted}
        # 1 and true are equal, and not the same to a comparison
        key = tuple((k, type(v), v) for k, v in captures.items())
        if key not in known:
            known.add(key)
            yield captures, matches


def _named(signals: list[str], matches: tuple[Match, ...]) -> Iterator[tuple[str, Value]]:
    for signal, match in zip(signals, matches, strict=True):
        for name, value in match.captures:
            yield f"{signal}.{name}", value


def _held(node: Compare, captures: dict[str, Value], case: Case) -> tuple[bool | None, str]:
    """The comparison over concrete values, and what was compared."""

    def fact(name: str) -> Value:
        return look_up(case, name).value

    left, right = value_of(node.left, captures, fact), value_of(node.right, captures, fact)
    for side, value in ((node.left, left), (node.right, right)):
        if value is None and (captures_in(side) or not isinstance(side, FactRef)):
            return None, "the line does not show this value"
    name = node.left.name if isinstance(node.left, FactRef) else ""
    release = name.startswith("version.") or (
        isinstance(node.right, FactRef) and node.right.name.startswith("version.")
    )
    if release:
        right, left = _written_or(node.right, right), _written_or(node.left, left)
    value = compare_values(node.op, left, right, switch=name.startswith("env."), release=release)
    if value is None and left is None:
        value = node.op == "!="
    if isinstance(node.left, CaptureRef) and _constant(node.right):
        return value, _capture_is(node.left, left, node, value)
    shown = f"{name or 'the value'} is {spelled(left)}"
    return value, shown if _constant(node.right) and name else f"{shown}, compared with {spelled(right)}"


def _capture_is(at: CaptureRef, left: Value, node: Compare, value: bool | None) -> str:
    """`code of scheduler-died is 1, not 0`: a captured value, and how it stands to the constant."""
    name, right = at.capture.replace("_", " "), _written(node.right)
    shown = f"{name} of {at.signal} is {_in_unit(left, node.right)}"
    if value is None:
        return f"{shown}, compared with {right}"
    if node.op in ("=", "!="):
        return shown if value is (node.op == "=") else f"{shown}, not {right}"
    return f"{shown}, {'' if value else 'not '}{_RELATIONS[node.op]} {right}"


def _in_unit(value: Value, written: Term) -> str:
    """A number in the unit in which the author wrote the constant (`31.9 GB`)."""
    number, _, unit = written.text.partition(" ") if isinstance(written, Quantity) else ("", "", "")
    if not unit or isinstance(value, bool) or not isinstance(value, (int, float)) or not isinstance(written, Quantity):
        return spelled(value)
    try:
        return f"{value / (written.value / float(number)):.4g} {unit}"
    except (ValueError, ZeroDivisionError):
        return spelled(value)


def _written_or(term: Term, value: Value) -> Value:
    return _written(term) if _constant(term) else value


def _constant(term: Term) -> bool:
    return hasattr(term, "text")


def _written(term: Term) -> str:
    """A constant as the author wrote it (`2.10` is no number here)."""
    return str(getattr(term, "text", ""))


def _is_version(term: Term) -> bool:
    return isinstance(term, FactRef) and term.name == "version.sglang"


def _version(op: str, version: str, case: Case) -> Outcome:
    """`version.sglang op version` over the interval of releases that the log allows."""
    interval = case.launch.version
    held = interval_satisfies(interval, "==" if op == "=" else op, version)
    spans = some_of(at for _, at in interval.grounds if at is not None)
    why = f"sglang is {describe(interval)}"
    return Outcome(held, spans, why, settle_fact("version.sglang") if held is None else "")


def describe(interval: VersionInterval) -> str:
    """An interval in words."""
    if interval.exact:
        return interval.exact
    low, high = interval.low, interval.high
    if low and high:
        return low if low == high else f"{low} to {high}"
    return f"{low} or later" if low else f"{high} or earlier" if high else "of unknown release"


def _unknown_fact(facts: tuple[FactRef, ...], case: Case) -> Outcome | None:
    for fact in facts:
        if not look_up(case, fact.name).known:
            return unknown_fact(fact.name)
    return None


def unknown_fact(name: str) -> Outcome:
    """The input does not tell this fact."""
    return Outcome(None, (), f"{name} is not stated in the input", settle_fact(name))


def _fact_spans(node: Compare, case: Case) -> tuple[Span, ...]:
    names = [f.name for f in (*facts_in(node.left), *facts_in(node.right))]
    return tuple(at for name in names if (at := look_up(case, name).where) is not None)


def member(node: Member, case: Case) -> Outcome:
    """Whether the fact (or a capture) has one of the values."""
    parts = tuple(compare(Compare("=", node.left, value), case) for value in node.values)
    value = kleene_or(p.value for p in parts)
    told = next((p for p in parts if p.value is value), Outcome(None))
    held = value if value is None else value is not node.negated
    return Outcome(held, told.witnesses, told.why, told.settle)


def search(node: Search, case: Case) -> Outcome:
    """RE2 search in the text of a fact or of a capture."""
    pattern = compiled(node.pattern)
    if isinstance(node.left, FactRef):
        found = look_up(case, node.left.name)
        if not found.known:
            return unknown_fact(node.left.name)
        text = _version_text(case) if _is_version(node.left) else spelled(found.value)
        hit = pattern.search(text) is not None and found.value is not None
        return Outcome(hit, _spans(found), f"{node.left.name} is {text[:200]}")
    names = captures_in(node.left)
    if not names:
        return Outcome(None, (), "only facts and captures can be searched", "forensics kb lint")
    matches = matches_of(case, names[0].signal)
    if not matches:
        return not_seen(case, names[0].signal)
    for match in matches:
        text = spelled(dict(match.captures).get(names[0].capture))
        if pattern.search(text) is not None:
            return Outcome(True, (case.table.span(match.row),), f"{names[0].capture} is {text[:200]}")
    spans = some_of(case.table.span(m.row) for m in matches)
    return Outcome(False, spans, f"no {names[0].signal} has such a {names[0].capture}")


def _version_text(case: Case) -> str:
    return case.launch.version.exact or ""


def truth_of(node: Truth, case: Case) -> Outcome:
    """Whether a fact is on, or set."""
    found = look_up(case, node.name)
    if not found.known:
        return unknown_fact(node.name)
    switch = truth(found.value) if not isinstance(found.value, (int, float)) or isinstance(found.value, bool) else None
    value = (
        switch if switch is not None else bool(found.value) and spelled(found.value).lower() not in ("none", "null", "")
    )
    return Outcome(value, _spans(found), f"{node.name} is {spelled(found.value)}")


def known(node: Known, case: Case) -> Outcome:
    """Whether the input states the fact."""
    found = look_up(case, node.name)
    if found.known:
        return Outcome(True, _spans(found), f"{node.name} is {spelled(found.value)}")
    return Outcome(False, (), f"{node.name} is not stated in the input")


def _spans(found: Lookup) -> tuple[Span, ...]:
    return (found.where,) if found.where is not None else ()
