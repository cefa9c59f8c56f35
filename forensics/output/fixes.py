"""A typed fix as lines that a person can copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from forensics.output.clean import clean
from forensics.schema.report import FixInfo


def fix_lines(steps: Iterable[FixInfo]) -> Iterator[tuple[str, str]]:
    """(line, note) per step: `+`/`-` lines change the command or its environment, others are for people."""
    for step in steps:
        together = "together with the step above" if step.with_above else ""
        yield fix_line(step), "; ".join(filter(None, (together, _range(step), step.note)))


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
