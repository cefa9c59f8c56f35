"""Warnings that are known to precede failures, in a launch that shows none."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.diagnose.candidates import Weighed
from forensics.diagnose.grounds import signals_in
from forensics.diagnose.places import Places
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding
from forensics.schema.report import RiskInfo

MAX_RISKS = 12
MAX_PLACES = 4


def risks(findings: Iterable[Finding], case: Case, weighed: Weighed, places: Places) -> list[RiskInfo]:
    """Findings whose warning was seen where their settings fit; best supported first."""
    found = []
    for finding in findings:
        rows = _warned(finding, case)
        if finding.status == "refuted" or not rows:
            continue
        candidate = weighed.of(finding, case)
        if candidate.applies is not True or _excluded_by_settings(candidate.must, candidate.ledger.must):
            continue
        support = candidate.count("must") + candidate.count("strong") + candidate.count("decisive")
        where = [places.row(row) for row in rows[:MAX_PLACES]]
        found.append(((-support, finding.id), RiskInfo(finding=finding.id, title=finding.title, where=where)))
    return [risk for _, risk in sorted(found, key=lambda pair: pair[0])][:MAX_RISKS]


def _warned(finding: Finding, case: Case) -> list[int]:
    """Rows of the finding's own warnings (and of its decisive signals) in this launch."""
    named = signals_in([c for c in finding.grounds if c.strength in ("must", "decisive", "strong")], case.rules)
    rows: list[int] = []
    for name in named:
        signal = case.signals.get(name)
        if signal is not None and case.rules[name].role in ("warning", "root"):
            rows += [m.row for m in signal.matches]
    return sorted(set(rows))


def _excluded_by_settings(must: bool | None, grounds: Iterable[object]) -> bool:
    """A must that fails on settings alone says that this launch cannot have the fault."""
    return must is False and any(
        getattr(g, "value", None) is False and not getattr(g, "observed", True) for g in grounds
    )
