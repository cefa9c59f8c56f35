"""A typed fix as lines that a person can copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from forensics.output.clean import clean
from forensics.schema.report import FixInfo

OR = "or this"


def as_alternative(line: str, note: str) -> str:
    """The line of a step by itself, where its note is not shown: `or --flag value` for an alternative."""
    if not note.startswith(OR):
        return line
    return f"or without {line[2:]}" if line.startswith("- ") else f"or {line[2:]}"


def bare_lines(steps: Iterable[FixInfo]) -> list[str]:
    """The steps as lines that need no notes: alternatives begin with `or`."""
    return [as_alternative(line, note) for line, note in fix_lines(steps)]


def fix_lines(steps: Iterable[FixInfo]) -> Iterator[tuple[str, str]]:
    """(line, note) per step: `+`/`-` lines change the command or its environment, others are for people.

    Changes are alternatives, best first: the notes of the later ones begin with `or`. A step that goes with the one
    above it is no alternative.
    """
    seen = False
    for step in steps:
        changes = step.kind in ("flag", "env", "package")
        parts = [_range(step), step.note.removeprefix(OR)]
        if step.with_above:
            parts.insert(0, "with the line above")
        elif changes and seen:
            parts.insert(0, OR)
        seen = seen or changes
        yield fix_line(step), "; ".join(filter(None, parts))


def fix_line(step: FixInfo) -> str:
    """One step as one line."""
    value = clean(step.value) if step.value is not None else ""
    name = clean(step.name)
    if step.kind == "flag":
        return f"- {name}" if step.op == "remove" else f"+ {name} {quote(value)}" if value else f"+ {name}"
    if step.kind == "env":
        return f"- env {name}" if step.op == "remove" else f"+ env {name}={quote(value) if value else '<value>'}"
    if step.kind == "package":
        sign = {"at-least": ">=", "exact": "==", "below": "<"}.get(step.op, ">=")
        return f"+ pip install '{name}{sign}{clean(step.version)}'"
    return f"· {clean(step.do or step.note)}"


def _range(step: FixInfo) -> str:
    return f"sglang {clean(step.versions)}" if step.versions else ""
