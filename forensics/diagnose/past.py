"""Outcomes of replays that the caller names with `--history`: fixes that were proved, and fixes that did not help.

A past outcome counts only for the same failure (its message, numbers masked) of the same model, or of the same GPU
where the model is not stated. Nothing is read unless a history is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forensics.diagnose.grounds import AGAINST, FOR, Ground
from forensics.diagnose.similar import shape
from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding
from forensics.schema.span import Span

if TYPE_CHECKING:
    from forensics.history import Verdict

PROVED, FAILED = ("fixed",), ("still-failing",)


@frozen
class Past:
    """The verdicts of one history file, oldest first."""

    path: str = ""
    verdicts: tuple[Verdict, ...] = ()


def read_past(path: Path | None) -> Past:
    """The history that the caller names. HistoryError where it cannot be read."""
    if path is None:
        return Past()
    from forensics.history import History

    history = History(path, create=False)
    try:
        return Past(str(path), history.verdicts())
    finally:
        history.close()


def proved(finding: Finding, case: Case, past: Past) -> Ground | None:
    """A strong ground: this finding's fix ended the same failure before."""
    found = _last(finding, case, past, PROVED)
    if found is None:
        return None
    place, verdict = found
    why = f"run {verdict.run}: {', '.join(verdict.changes)} ended the same failure{_of(verdict)}"
    return Ground(FOR, "strong", "fixed before", True, why, where=(Span(past.path, place),), observed=True)


def failed(finding: Finding, case: Case, past: Past) -> Ground | None:
    """A ground that rules the finding out: its fix was tried before and the same failure stayed."""
    found = _last(finding, case, past, PROVED + FAILED)
    if found is None or found[1].outcome not in FAILED:
        return None
    place, verdict = found
    why = f"run {verdict.run}: {', '.join(verdict.changes)} did not end the same failure{_of(verdict)}"
    return Ground(AGAINST, "excludes", "tried before", True, why, where=(Span(past.path, place),), observed=True)


def _last(finding: Finding, case: Case, past: Past, outcomes: Sequence[str]) -> tuple[int, Verdict] | None:
    matching = [
        (place, v)
        for place, v in enumerate(past.verdicts, 1)
        if v.outcome in outcomes and (v.finding == finding.id or _fix_of(finding, v)) and _same(v, case)
    ]
    return matching[-1] if matching else None


def _fix_of(finding: Finding, verdict: Verdict) -> bool:
    """Whether what was tried under no finding's name is one alternative of this finding's fix."""
    if verdict.finding or not verdict.changes:
        return False
    groups: list[set[str]] = []
    for step in finding.fix:
        if step.op not in ("set", "remove"):
            text = ""
        elif step.op == "remove":
            text = f"remove {step.name}"
        else:
            text = step.name if step.value in (None, "") else f"{step.name}={step.value}"
        if step.with_above and groups:
            groups[-1].add(text)
        else:
            groups.append({text})
    return set(verdict.changes) in groups


def _same(verdict: Verdict, case: Case) -> bool:
    failure = case.launch.failure(case.launch.first_failure)
    if failure is None or not verdict.failure or shape(verdict.failure)[:200] != shape(failure.text)[:200]:
        return False
    model, gpu = _fact(case, "model.name"), _fact(case, "gpu.name")
    if verdict.model and model:
        return verdict.model == model
    return bool(verdict.gpu) and verdict.gpu == gpu


def _fact(case: Case, name: str) -> str:
    fact = case.launch.facts.get(name)
    return str(fact.value) if fact and fact.value else ""


def _of(verdict: Verdict) -> str:
    parts = [p for p in (verdict.model, verdict.gpu, verdict.version and f"sglang {verdict.version}") if p]
    return f" ({', '.join(parts)})" if parts else ""
