"""What healthy logs say: one line of every shape, shipped with the program, so that lint can ask it anywhere.

`tools/build_pack.py` makes the file from samples/healthy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources

from forensics.frozen import frozen
from forensics.rulebook.program import Program, Ready, takes_kind
from forensics.schema.signal import Rule

FILE = "healthy_lines.json"


@frozen
class HealthyLine:
    """A message (header taken off) of a healthy log, its kind, and the log that held it first."""

    kind: str
    text: str
    log: str


@cache
def healthy_lines() -> tuple[HealthyLine, ...]:
    """All lines of the shipped corpus."""
    found = json.loads((resources.files("forensics.data") / FILE).read_text(encoding="utf-8"))
    return tuple(HealthyLine(kind, text, found["logs"][log]) for kind, text, log in found["lines"])


def healthy_hits(program: Program, lines: Iterable[HealthyLine] | None = None) -> dict[str, HealthyLine]:
    """For each rule that a healthy log satisfies, the first such line. Frames, exceptions and stages are not asked:
    healthy logs hold no tracebacks that a rule could mean."""
    found: dict[str, HealthyLine] = {}
    for line in healthy_lines() if lines is None else lines:
        for index in program.candidates(line.text):
            ready = program.ready[index]
            if ready.rule.id not in found and _satisfied(ready, line):
                found[ready.rule.id] = line
    return found


def must_be_silent(rule: Rule) -> bool:
    """Whether a healthy log must not satisfy the rule: it states a fault and asks for no surroundings."""
    surroundings = rule.frames or rule.innermost or rule.exception or rule.stages or rule.min_same > 1 or rule.differs
    return rule.role in ("root", "cascade") and not surroundings


def _satisfied(ready: Ready, line: HealthyLine) -> bool:
    if not takes_kind(ready.rule, line.kind):
        return False
    if not any(p.search(line.text) is not None for p in ready.patterns):
        return False
    return not any(p.search(line.text) is not None for p in ready.absent)
