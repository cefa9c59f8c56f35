"""The hypotheses of one launch: candidates weighed, excluded, compared, judged and ordered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from forensics.diagnose import exclusion, general, next_step, rank, similar
from forensics.diagnose.candidates import ASSUMED, DIRECT, SYMPTOM, Candidate, Weighed, is_hypothesis, stated_symptom
from forensics.diagnose.controls import Comparison, compare
from forensics.diagnose.general import General
from forensics.diagnose.grounds import AGAINST, Ground
from forensics.diagnose.tried import (
    Pair,
    comparison_ground,
    concerns,
    failing_alike,
    pairs,
    refuted_by,
    still_there,
    weakened_by,
)
from forensics.diagnose.verdict import LIKELY, RULED_OUT, Evidence, Judged, judge, support
from forensics.knowledge.store import Knowledge
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding
from forensics.schema.report import NextStep

MAX_LIVE = 8
MAX_RULED_OUT = 8


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known about one launch. `judged` is ordered, ruled-out ones last. `engine` is the general reading where
    no finding explains the first failure; `shown_by` a single-variable comparison that no finding claims.
    `asked`: there is a failure or a stated symptom to explain."""

    asked: bool
    judged: tuple[Judged, ...]
    engine: General | None
    pairs: tuple[Pair, ...]
    unclaimed: Pair | None
    comparison: Comparison | None
    unnamed: tuple[str, ...]
    nearest: tuple[str, ...]
    unexplained: bool
    steps: list[NextStep]


def diagnose_launch(case: Case, everyone: Sequence[Case], knowledge: Knowledge, weighed: Weighed) -> Diagnosis:
    """Diagnose one launch in the light of all launches of the input."""
    failure = case.launch.failure(case.launch.first_failure)
    asked = failure is not None or stated_symptom(case) is not None
    if not asked:
        return Diagnosis(False, (), None, (), None, None, (), (), False, [])
    findings = [f for f in knowledge.findings if f.status != "refuted"]
    known = pairs(case, everyone)
    alike = failing_alike(case, everyone)
    comparison = compare(case, alike, knowledge.deployments)
    live, out = _sorted_out(findings, case, everyone, alike, known, comparison, knowledge, weighed)
    judged = rank.ranked(judge(live))
    dead = [j for j in judged if j.verdict == RULED_OUT]
    judged = tuple([j for j in judged if j.verdict != RULED_OUT][:MAX_LIVE])
    explained = any(j.candidate.role in (DIRECT, ASSUMED, SYMPTOM) or j.verdict == LIKELY for j in judged)
    reading = None if explained and (failure is None or judged[0].candidate.role != SYMPTOM) else general.read(case)
    dead += judge([(c, Evidence(excluded=g)) for c, g in out])
    dead = _most_similar(dead, judged)
    unclaimed = next((p for p in known if not any(j.evidence.comparison for j in judged)), None)
    steps = next_step.next_steps(case, judged, alike, comparison, reading)
    near = similar.nearest(failure.text, findings) if failure and not explained else []
    unexplained = failure is not None and not explained and unclaimed is None
    return Diagnosis(
        asked, (*judged, *dead), reading, known, unclaimed, comparison,
        _unnamed(comparison, judged), tuple(near), unexplained, steps,
    )  # fmt: skip


def _sorted_out(
    findings: Sequence[Finding], case: Case, everyone: Sequence[Case], alike: Sequence[Case], known: Sequence[Pair],
    comparison: Comparison | None, knowledge: Knowledge, weighed: Weighed,
) -> tuple[list[tuple[Candidate, Evidence]], list[tuple[Candidate, Ground]]]:  # fmt: skip
    """Candidates to be judged, and findings that are none but worth ruling out aloud."""
    live: list[tuple[Candidate, Evidence]] = []
    out: list[tuple[Candidate, Ground]] = []
    for finding in findings:
        found = weighed.of(finding, case)
        if is_hypothesis(found):
            live.append((found, _evidence(found, case, everyone, known, comparison, knowledge, weighed)))
            continue
        ground = exclusion.excluded(found, case)
        if ground is None and any(is_hypothesis(weighed.of(finding, c)) for c in alike):
            ground = refuted_by(finding, case, everyone, weighed)
        if ground is not None:
            out.append((found, ground))
    return _one_claim(live), out


def _one_claim(live: list[tuple[Candidate, Evidence]]) -> list[tuple[Candidate, Evidence]]:
    """One comparison shows one cause: the best supported of those that its variable belongs to. For the others it is
    a strong ground, no more."""
    claims = [c for c, e in live if e.comparison is not None]
    if len(claims) < 2:
        return live
    best = max(claims, key=lambda c: (c.must is True, c.role == DIRECT, support(c), c.finding.id))
    shared: list[tuple[Candidate, Evidence]] = []
    for found, evidence in live:
        if evidence.comparison is not None and found is not best:
            ground = replace(evidence.comparison, strength="strong")
            evidence = Evidence(extra=(ground,))
        shared.append((found, evidence))
    return shared


def _evidence(
    found: Candidate, case: Case, everyone: Sequence[Case], known: Sequence[Pair], comparison: Comparison | None,
    knowledge: Knowledge, weighed: Weighed,
) -> Evidence:  # fmt: skip
    shown = comparison_ground(found, known)
    if shown is not None:
        return Evidence(comparison=shown)
    excluded = exclusion.excluded(found, case) or refuted_by(found.finding, case, everyone, weighed)
    extra = list(weakened_by(found.finding, case, everyone))
    constant = still_there(found, known, weighed)
    if constant is not None:
        extra.append(constant)
    warned = _good_prints_it_too(found, case, everyone, comparison)
    if warned is not None:
        extra.append(warned)
    return Evidence(excluded=excluded, extra=tuple(extra))


def _good_prints_it_too(
    found: Candidate, case: Case, everyone: Sequence[Case], comparison: Comparison | None
) -> Ground | None:
    """A warning that a launch known to work prints as well proves nothing by itself."""
    if found.count("decisive"):
        return None
    named = _warnings(found, case)
    for other in everyone:
        good = other.launch.first_failure is None and other.launch.reached == "serving"
        both = [n for n in named if n in other.signals]
        if good and both and other.launch.id != case.launch.id:
            place = other.table.span(other.signals[both[0]].matches[0].row)
            why = f"{other.launch.id} works and prints it too ({both[0]})"
            return Ground(AGAINST, "against", f"{both[0]} in a good launch", True, why, where=(place,), observed=True)
    if comparison is not None:
        both = [n for n in named if n in comparison.deployment.warnings]
        if both:
            why = f"{comparison.deployment.id} works and prints it too ({both[0]})"
            return Ground(
                AGAINST, "against", f"{both[0]} in a good launch", True, why, where=(comparison.deployment.span,)
            )
    return None


def _warnings(found: Candidate, case: Case) -> list[str]:
    from forensics.diagnose.grounds import signals_in

    conditions = [c for c in found.finding.grounds if c.strength in ("must", "strong")]
    return [n for n in signals_in(conditions, case.rules) if n in case.signals and case.rules[n].role == "warning"]


def _most_similar(dead: Sequence[Judged], leaders: Sequence[Judged]) -> list[Judged]:
    heads = [j.candidate for j in leaders[:4]]
    ordered = sorted(
        dead,
        key=lambda j: ([-x for x in exclusion.similarity(j.candidate, heads)], j.candidate.finding.id),
    )
    return ordered[:MAX_RULED_OUT]


def _unnamed(comparison: Comparison | None, judged: Sequence[Judged]) -> tuple[str, ...]:
    """Differences to the control that no hypothesis speaks of."""
    if comparison is None:
        return ()
    texts = [
        text
        for j in judged
        for text in (
            *(c.text for c in (*j.candidate.finding.applies, *j.candidate.finding.grounds)),
            *(s.name.lstrip("-").replace("-", "_") for s in j.candidate.finding.fix),
        )
    ]
    return tuple(
        d.name
        for d in comparison.differences
        if not d.tested and not any(d.name in t or d.name.split(".", 1)[1] == t for t in texts)
    )


__all__ = ["Diagnosis", "concerns", "diagnose_launch"]
