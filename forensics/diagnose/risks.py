"""Warnings that are known to precede failures, in a launch that shows none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from forensics.diagnose.candidates import Weighed
from forensics.diagnose.grounds import Ledger, signals_in
from forensics.diagnose.places import Places
from forensics.diagnose.tried import step_name
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import decided, trees
from forensics.schema.finding import Finding
from forensics.schema.report import RiskInfo
from forensics.timeline.stages import hot_lines

MAX_RISKS = 12
MAX_PLACES = 4
LEAST_BATCHES = 10
"""Decode batches below which their numbers say nothing about speed."""


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
    found += [((0, risk.finding), risk) for risk in _slow(findings, case, places)]
    return [risk for _, risk in sorted(found, key=lambda pair: pair[0])][:MAX_RISKS]


def _slow(findings: Iterable[Finding], case: Case, places: Places) -> Iterator[RiskInfo]:
    """Findings about speed whose batch lines are there, would the user call it slow. What a flag of the launch itself
    switched off is no surprise, and no risk."""
    if case.symptom is not None or not _served(case):
        return
    asked = replace(case, symptom="slow")
    for finding in findings:
        must = [c for c in finding.grounds if c.strength == "must"]
        told = [c.text for c in must if "series " in c.text]
        if finding.status == "refuted" or "slow" not in finding.symptoms or not told or _chosen(finding, case):
            continue
        ledger = Ledger(finding, asked, decided(trees(must), asked))
        if ledger.holds is True and ledger.fits is not False and not ledger.held("excludes"):
            spans = [span for g in ledger.must if "series " in g.condition for span in g.where]
            yield RiskInfo(finding=finding.id, title=finding.title, where=[places.span(s) for s in spans[:MAX_PLACES]])


def _served(case: Case) -> bool:
    series = case.table.series.get("decode")
    return series is not None and len(series.row[hot_lines(series, case.table, case.launch.rows)]) >= LEAST_BATCHES


def _chosen(finding: Finding, case: Case) -> bool:
    step = next((s for s in finding.fix if s.kind == "flag"), None)
    fact = case.launch.facts.get(f"args.{step_name(step)}") if step is not None and step.op == "remove" else None
    return fact is not None and fact.value is True


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
