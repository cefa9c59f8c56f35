"""A fix whose value the reader must choose (`<lower>`), with what the failing launch says about it."""

from __future__ import annotations

import re
from dataclasses import replace

from forensics.diagnose.tried import step_name
from forensics.late import Late
from forensics.rulebook.case import Case
from forensics.schema.facts import Value
from forensics.schema.finding import FixStep
from forensics.timeline.attempts import same_failure
from forensics.timeline.catalog import catalog

_DIVIDES = re.compile(r"\b(\d{1,9})\)? (?:is|are) not divisible by (?:\w{1,30} ?= ?|\w{1,30} \(?)?(\d{1,6})\b")
_CHOICE = Late(r"invalid choice: '?(\w[\w.+-]{0,79})'? \(choose from (.{1,4000})", re.ASCII)
_LISTED = Late(r"(?<![\w.+-])\w[\w.+-]{0,79}", re.ASCII)
"""A value in that list: never one that begins as an option does."""
_NEAR = 70
"""rapidfuzz ratio from which a listed value may be the one that was meant."""
_OPEN = re.compile(r"<[^<>]*>")
_MEM_STEP, _MEM_HIGH, _MEM_LOW = 0.08, 0.92, 0.3
"""Fractions of GPU memory: a change that matters, and the range in which a server still starts."""


def leaves_open(value: str | None) -> bool:
    """Whether a value is, or holds, what the reader must choose: `<lower>`, `<host>:<another port>`."""
    return _OPEN.search(value or "") is not None


def filled(step: FixStep, case: Case) -> tuple[str, FixStep | None]:
    """What to choose, in words, with the present value and the one that the failing numbers suggest; and the step with
    that value, None where nothing suggests one."""
    fact = case.launch.facts.get(f"{'args' if step.kind == 'flag' else 'env'}.{step_name(step)}")
    here = fact.value if fact is not None else None
    failure = case.launch.failure(case.launch.first_failure)
    tp = case.launch.facts.get("args.tp_size")
    start = _tried_furthest(step, case, here)
    value = suggested(step.name, step.value or "", start, failure.text if failure is not None else "")
    value = value or _part_of(step.value or "", here, tp.value if tp is not None else None)
    told = [f"now {here}"] if here not in (None, "", False) else []
    told += [f"try {value}"] if value is not None else []
    aside = f" ({'; '.join(told)})" if told else ""
    wanted = re.sub(r"[<>]", "", step.value or "")
    return f"choose {step.name}: {wanted}{aside}", None if value is None else replace(step, value=value)


def _tried_furthest(step: FixStep, case: Case, here: Value) -> Value:
    """The present value of a number, or the one that an earlier launch went furthest with and failed in the same way:
    what is suggested must lie beyond both."""
    if not isinstance(here, (int, float)) or isinstance(here, bool):
        return here
    name = f"args.{step_name(step)}"
    facts = [c.launch.facts.get(name) for c in case.earlier if same_failure(c.launch, case.launch)]
    tried = [f.value for f in facts if f is not None and isinstance(f.value, (int, float))]
    up = "higher" in (step.value or "") or "larger" in (step.value or "")
    return max([here, *tried]) if up else min([here, *tried])


def suggested(name: str, wanted: str, here: Value, failure: str) -> str | None:
    """The value that the numbers of a failure's text, or the present value, suggest for a flag; None where none do.
    `wanted` is the open value (`<lower>`)."""
    return _divisor(failure, here) or _fraction(name, wanted, here) or _nearest(name, wanted, failure)


def _divisor(failure: str, here: Value) -> str | None:
    """The largest power of two, else the largest number, below the present value that divides what it does not."""
    found = _DIVIDES.search(failure)
    if found is None or str(here) != found[2] or int(found[2]) < 2:
        return None
    total, parts = int(found[1]), int(found[2])
    divisors = [n for n in range(parts - 1, 0, -1) if total % n == 0]
    powers = [n for n in divisors if n & (n - 1) == 0 and n > 1]
    return str(powers[0] if powers else divisors[0])


def _part_of(wanted: str, here: Value, tp: Value) -> str | None:
    """The largest size below the present one that divides the tensor-parallel size."""
    if "divisor of the TP size" not in wanted or not isinstance(here, int) or not isinstance(tp, int) or tp < 1:
        return None
    return next((str(n) for n in range(min(here - 1, tp), 0, -1) if tp % n == 0), None)


def _nearest(name: str, wanted: str, failure: str) -> str | None:
    """The listed value that the refused one is a misspelling of."""
    found = _CHOICE.search(failure) if "the message lists" in wanted else None
    if found is None or not catalog().listed(name):
        return None
    from rapidfuzz import fuzz, process  # asked for refused values only

    listed = _LISTED.findall(found[2])
    best = process.extractOne(found[1], listed, scorer=fuzz.ratio, score_cutoff=_NEAR)
    return best[0] if best else None


def _fraction(name: str, wanted: str, here: Value) -> str | None:
    if name != "--mem-fraction-static" or not isinstance(here, (int, float)) or not 0 < here < 1:
        return None
    if "higher" in wanted or "larger" in wanted:
        return f"{min(here + _MEM_STEP, _MEM_HIGH):.2f}" if here < _MEM_HIGH else None
    return f"{max(here - _MEM_STEP, _MEM_LOW):.2f}" if here > _MEM_LOW else None
