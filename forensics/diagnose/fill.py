"""A fix whose value the reader must choose (`<lower>`), with what the failing launch says about it."""

from __future__ import annotations

import re
from dataclasses import replace

from forensics.diagnose.tried import step_name, step_text
from forensics.rulebook.case import Case
from forensics.schema.facts import Value
from forensics.schema.finding import FixStep

_DIVIDES = re.compile(r"\b(\d{1,9}) is not divisible by (\d{1,6})\b")
_MEM_STEP, _MEM_HIGH, _MEM_LOW = 0.08, 0.92, 0.3
"""Fractions of GPU memory: a change that matters, and the range in which a server still starts."""


def filled(step: FixStep, case: Case) -> FixStep:
    """The step as a sentence that names the present value, and the one that the failing numbers suggest."""
    fact = case.launch.facts.get(f"{'args' if step.kind == 'flag' else 'env'}.{step_name(step)}")
    here = fact.value if fact is not None else None
    value = _divisor(case, here) or _fraction(step, here)
    if value is not None:
        wanted = (step.value or "").strip("<>")
        return replace(step, kind="other", do=f"{step.name} {value} (now {here}; wanted: {wanted})")
    now = "" if here in (None, "", False) else f" (now {here})"
    return replace(step, kind="other", do=step_text(step) + now)


def _divisor(case: Case, here: Value) -> int | None:
    """The largest power of two, else the largest number, below the present value that divides what it does not."""
    failure = case.launch.failure(case.launch.first_failure)
    found = _DIVIDES.search(failure.text) if failure is not None else None
    if found is None or str(here) != found[2] or int(found[2]) < 2:
        return None
    total, parts = int(found[1]), int(found[2])
    divisors = [n for n in range(parts - 1, 0, -1) if total % n == 0]
    powers = [n for n in divisors if n & (n - 1) == 0 and n > 1]
    return powers[0] if powers else divisors[0]


def _fraction(step: FixStep, here: Value) -> str | None:
    if step.name != "--mem-fraction-static" or not isinstance(here, (int, float)) or not 0 < here < 1:
        return None
    if "higher" in (step.value or "") or "larger" in (step.value or ""):
        return f"{min(here + _MEM_STEP, _MEM_HIGH):.2f}" if here < _MEM_HIGH else None
    return f"{max(here - _MEM_STEP, _MEM_LOW):.2f}" if here > _MEM_LOW else None
