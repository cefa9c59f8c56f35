"""Lint of conditions: names that exist, quantifiers that mean something, and whether they can hold at all."""

from __future__ import annotations

from pathlib import PurePath

from forensics.grammar.condition_text import format_condition
from forensics.grammar.condition_tree import Absent, Before, Count, Node, Place, Seen, Tried, names, walk
from forensics.grammar.conditions import parse_condition
from forensics.knowledge.contradiction import never_holds
from forensics.knowledge.library import Library
from forensics.knowledge.names import unknown_fact_hint
from forensics.rulebook.located import Located, Reader, nearest
from forensics.rulebook.problem import Edit
from forensics.rulebook.versions import Bound, parse_range

SERIES = frozenset(
    [
        "running",
        "queue",
        "tokens",
        "token_usage",
        "throughput",
        "accept_len",
        "accept_rate",
        "cached_tokens",
        "new_tokens",
        "new_seqs",
        "cuda_graph",
        "input_throughput",
        "swa_token_usage",
        "mamba_usage",
    ]
)


def lint_conditions(reader: Reader, at: Located | None, lib: Library, versions: str = "") -> list[Node]:
    """Check each condition of a list; gives those that parse."""
    items = at.items() if at is not None else ()
    return [node for item in items if (node := lint_condition(reader, item, lib, versions)) is not None]


def lint_condition(reader: Reader, item: Located, lib: Library, versions: str = "") -> Node | None:
    """Check one condition; None where it does not parse."""
    if not isinstance(item.value, str):
        return None
    try:
        node = parse_condition(item.value)
    except Exception:
        return None
    _names(reader, item, node, lib)
    _shape(reader, item, node, lib)
    reason = never_holds([node], parse_range(versions) or ())
    if reason:
        reader.fault("C205", f"the condition can never hold: {reason}", item, "correct it or take it out")
    return node


def lint_together(reader: Reader, at: Located | None, nodes: list[Node], versions: str) -> None:
    """Whether all `must` conditions can hold at once."""
    bounds: tuple[Bound, ...] = parse_range(versions) or ()
    alone = any(never_holds([n], bounds) for n in nodes)
    reason = "" if alone or at is None else never_holds(nodes, bounds)
    if reason and at is not None:
        reader.fault("C205", f"these conditions can never hold together: {reason}", at, "correct or split the finding")


def _names(reader: Reader, item: Located, node: Node, lib: Library) -> None:
    used = names(node)
    done: set[str] = set()
    for signal, place in used.signals:
        if signal not in lib.rules and signal not in done:
            done.add(signal)
            _unknown_signal(reader, item, signal, place, lib)
    for signal, capture, place in used.captures:
        rule = lib.rules.get(signal)
        if rule is not None and capture not in dict(rule.captures):
            have = ", ".join(name for name, _ in rule.captures) or "none"
            line, column = item.at(place[0])
            reader.add("C203", f"the rule `{signal}` captures no `{capture}`", line, column, f"its captures: {have}")
    for fact, place in used.facts:
        _unknown_fact(reader, item, fact, place, lib)
    for flag, place in used.flags:
        if flag.startswith("--") and lib.catalog.flag(flag) is None:
            line, column = item.at(place[0])
            near = nearest(flag, lib.catalog.flags)
            reader.add(
                "C207", f"no release knows the flag `{flag}`", line, column, f"did you mean `{near}`?" if near else ""
            )


def _unknown_fact(reader: Reader, item: Located, fact: str, place: Place, lib: Library) -> None:
    hint = unknown_fact_hint(fact, lib.catalog)
    if hint is None:
        return
    line, column = item.at(place[0])
    argument = fact.startswith("args.")
    # A dump also holds fields that no flag sets: only what looks like a slip is an error.
    severity = "warning" if argument and "did you mean" not in hint else "error"
    message = f"no release and no log states the fact `{fact}`"
    reader.add("C207" if argument else "C204", message, line, column, hint, severity=severity)


def _unknown_signal(reader: Reader, item: Located, signal: str, place: Place, lib: Library) -> None:
    near = nearest(signal, lib.rules)
    if any(e.span is not None and PurePath(e.span.path).stem == signal for e in lib.knowledge.problems):
        near = ""
    hint = f"did you mean `{near}`?" if near else f"write the rule, or mend it: rules/<family>/{signal}.yaml"
    text = str(item.value)
    offset = text.find(signal, place[0])
    line, column = item.at(max(offset, 0))
    edit = Edit(line, column, signal, near) if near and offset >= 0 and "\n" not in text else None
    reader.add("C202", f"no rule is named `{signal}`", line, column, hint, edit)


def _shape(reader: Reader, item: Located, node: Node, lib: Library) -> None:
    for part in walk(node):
        if isinstance(part, (Seen, Absent, Count)) and part.on is not None:
            rule = lib.rules.get(part.signal)
            if rule is not None and rule.scope == "process":
                line, column = item.at(part.place[0])
                hint = f"the lines of `{part.signal}` never carry a rank: take `on …` out"
                reader.add("C206", "a quantifier over ranks on a rankless signal", line, column, hint)
        if isinstance(part, Before) and part.first.signal == part.second.signal and part.on is None:
            reader.fault("C205", "a signal never stands before itself", item, "use `count … >= 2`")
        if isinstance(part, Tried) and part.value is None and not part.name.startswith("--"):
            reader.fault("C201", "`tried` needs a value for an environment variable", item, "write `tried NAME=value`")
        series = getattr(part, "series", None)
        if series is not None and series not in SERIES:
            near = nearest(series, SERIES, 60.0)
            known = ", ".join(sorted(SERIES))
            reader.fault(
                "C208", f"no batch metric is named `{series}`", item, f"did you mean `{near}`?" if near else known
            )


def canonical(text: str) -> str | None:
    """The canonical text of a condition, None where it does not parse."""
    try:
        return format_condition(parse_condition(text))
    except Exception:
        return None
