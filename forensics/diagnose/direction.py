"""Whether an attempt moved a number the way a fix wants it: the other way it tests nothing."""

from __future__ import annotations

import re

from forensics.diagnose.variables import Varied, spellings
from forensics.schema.facts import Value
from forensics.schema.finding import Finding, FixStep
from forensics.timeline.catalog import catalog

_UP = re.compile(r"<(?:higher|larger|more|longer|bigger)\b")
_DOWN = re.compile(r"<(?:lower|smaller|fewer|less|shorter)\b")


def away(finding: Finding, variable: Varied) -> bool:
    """Whether a numeric setting was moved away from where all of a finding's steps for it want it."""
    before, after = _number(variable.before), _number(variable.after)
    if variable.kind != "flag" or before is None or after is None or before == after:
        return False
    names = spellings(variable.name)
    wanted = [_wanted(s, before) for s in finding.fix if s.kind == "flag" and catalog().dest(s.name) in names]
    moved = 1 if after > before else -1
    return bool(wanted) and all(way == -moved for way in wanted)


def _wanted(step: FixStep, before: float) -> int:
    """1 where a step raises the number, -1 where it lowers it, 0 where it does not say."""
    value = step.value or ""
    if step.op == "remove":
        return 0
    if _UP.search(value) or _DOWN.search(value):
        return 1 if _UP.search(value) else -1
    number = _number(value)
    return 0 if number is None or number == before else 1 if number > before else -1


def _number(value: Value) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value) if isinstance(value, (int, float, str)) else None
    except ValueError:
        return None
