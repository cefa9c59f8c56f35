"""The hypotheses of one launch: candidates weighed, excluded, compared, judged and ordered."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from forensics.diagnose import announced, exclusion, general, next_step, rank, similar, slow, still
from forensics.diagnose.candidates import (
    ASSUMED,
    DIRECT,
    SYMPTOM,
    Candidate,
    Weighed,
    beyond_failure,
    is_hypothesis,
    is_pointer,
    stated_symptom,
)
from forensics.diagnose.controls import Comparison, compare, suspicious
from forensics.diagnose.evidence import Around, evidence, excluded_aside, one_claim
from forensics.diagnose.general import General
from forensics.diagnose.grounds import FOR, Ground
from forensics.diagnose.past import Past
from forensics.diagnose.reworded import by_wording
from forensics.diagnose.titles import NO_MESSAGE, message_of
from forensics.diagnose.tried import GOOD_HAS_IT, Pair, failing_alike, pairs
from forensics.diagnose.verdict import ESTABLISHED, LIKELY, POSSIBLE, RULED_OUT, Evidence, Judged, judge
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding
from forensics.schema.launch import Failure
from forensics.schema.report import NextStep

MAX_LIVE = 8
MAX_RULED_OUT = 8
MAX_REWORDED = 2
SERVED = ("prefill", "decode", "idle")
STARTUP_KINDS = ("config", "load")
"""Categories of causes that show before a server is up."""


@frozen
class Diagnosis:
    """What is known about one launch. `judged` is ordered, ruled-out ones last. `engine` is the general reading where
    no finding explains the first failure, or `blind`: nothing is told but that ranks waited. `shown_by` a
    single-variable comparison that no finding claims. `asked`: there is a failure or a stated symptom to explain."""

    asked: bool
    judged: tuple[Judged, ...]
    engine: General | None
    blind: bool
    pairs: tuple[Pair, ...]
    unclaimed: Pair | None
    comparison: Comparison | None
    unnamed: tuple[str, ...]
    nearest: tuple[str, ...]
    unexplained: bool
    steps: list[NextStep]


UNASKED = Diagnosis(False, (), None, False, (), None, None, (), (), False, [])
"""The diagnosis of a launch with nothing to explain."""


def diagnose_launch(
    case: Case, everyone: Sequence[Case], knowledge: Knowledge, weighed: Weighed, past: Past | None = None
) -> Diagnosis:
    """Diagnose one launch in the light of all launches of the input (and of a history, if one is named)."""
    failure = case.launch.failure(case.launch.first_failure)
    asked = failure is not None or stated_symptom(case) is not None
    if not asked:
        end = announced.read(case)
        if end is None:
            return UNASKED
        return replace(UNASKED, asked=True, engine=end, steps=next_step.next_steps(case, (), (), None, end))
    alike = failing_alike(case, everyone, weighed.trials)
    early = failure is not None and failure.stage == "config"
    comparison = None if early else compare(case, alike, knowledge.deployments)
    known = pairs(case, alike, everyone, weighed.trials)
    around = Around(case, tuple(everyone), alike, known, comparison, weighed, past or Past())
    findings = [f for f in knowledge.findings if f.status != "refuted"]
    live, dead = _judged(findings, around)
    explained = any(j.candidate.role in (DIRECT, ASSUMED, SYMPTOM) or j.verdict == LIKELY for j in live)
    proven = bool(live) and live[0].verdict == ESTABLISHED and live[0].candidate.role in (DIRECT, ASSUMED)
    reading = None if proven else general.read(case) or _quiet(case)  # nobody asks for it beside a proven cause
    shown = not explained or (failure is not None and live[0].candidate.role == SYMPTOM)
    shown = shown or failure is None
    blind = reading is not None and reading.waited and all(only_waits(j) for j in live)
    shown = shown or blind
    claimed = any(j.evidence.comparison for j in live) or _told(live)
    unclaimed = None if claimed else next(iter(around.pairs), None)
    said = failure is not None and message_of(failure.text) != NO_MESSAGE  # a trace cut off says nothing to compare
    near = _nearest(failure, case, findings, weighed) if failure and said and not explained else []
    if failure:
        told = explained or (reading is not None and reading.settled)
        live = (*live, *_resembling([] if told else near, failure, findings, around))
        live = (*live, *_reworded(failure, findings, around, {j.candidate.finding.id for j in live}, told))
    return Diagnosis(
        asked=True,
        judged=(*live, *dead),
        engine=reading if shown else None,
        blind=blind,
        pairs=around.pairs,
        unclaimed=unclaimed,
        comparison=comparison,
        unnamed=_unnamed(comparison, case, live),
        nearest=tuple(name for name, _ in near),
        unexplained=failure is not None and not explained and unclaimed is None,
        steps=next_step.next_steps(case, live, (*alike, *_good(everyone)), comparison, reading, blind),
    )


def _quiet(case: Case) -> General | None:
    """The reading of a launch that shows no failure, by the symptom."""
    reader = {"hang": still.read, "slow": slow.read}.get(stated_symptom(case) or "")
    return reader(case) if reader is not None else None


def _nearest(
    failure: Failure, case: Case, findings: Sequence[Finding], weighed: Weighed
) -> Sequence[tuple[str, float]]:
    """Findings whose logs look like the failure; launches often fail with the same words."""
    key = failure.text, _raised(case, failure)
    found = weighed.near.get(key)
    if found is None:
        found = weighed.near[key] = similar.nearest(failure.text, findings, key[1])
    return found


def only_waits(judged: Judged) -> bool:
    """Whether a hypothesis rests on what the log does not tell, or on nothing but the line of a rank that waited while
    something speaks against it."""
    found = judged.candidate
    doubted = not beyond_failure(found) and bool(found.ledger.held("against"))
    return judged.verdict == POSSIBLE and (found.must is None or doubted)


def _raised(case: Case, failure: Failure) -> similar.Raised | None:
    """Where the first failure was raised, if it is an exception."""
    block = case.blocks[failure.blocks[0]] if failure.blocks else None
    if block is None:
        return None
    frames = next((r.frames for r in block.raised if r.frames), block.frames)
    return similar.raised_at(failure.text, frames)


def _told(live: Sequence[Judged]) -> bool:
    """Whether the log's own words say more about the first failure than a comparison of launches that no finding
    claims: an established cause, or a likely one that the good launch does not clear."""
    for judged in live[:1]:
        cleared = any(g.condition == GOOD_HAS_IT for g in judged.evidence.extra)
        if judged.candidate.role == DIRECT and judged.verdict in (ESTABLISHED, LIKELY):
            return judged.verdict == ESTABLISHED or not cleared
    return False


def _judged(findings: Sequence[Finding], around: Around) -> tuple[tuple[Judged, ...], tuple[Judged, ...]]:
    """Hypotheses best first, and what is ruled out, most similar first."""
    live: list[tuple[Candidate, Evidence]] = []
    out: list[tuple[Candidate, Evidence]] = []
    elsewhere = {name for other in around.alike for name in around.weighed.named(findings, other)}
    for finding in findings:
        found = around.weighed.of(finding, around.case)
        if is_hypothesis(found):
            live.append((found, evidence(found, around)))
            continue
        ground = excluded_aside(found, around, elsewhere)
        if ground is not None:
            out.append((found, Evidence(excluded=ground)))
    judged = rank.ranked(judge(one_claim(live)))
    pointers = {j.candidate.finding.id for j in judged if is_pointer(j.candidate, around.case)}
    if pointers and any(_told_by_its_sign(j) and j.candidate.finding.id not in pointers for j in judged):
        judged = rank.ranked(judge(one_claim([(c, e) for c, e in live if c.finding.id not in pointers])))
    standing = tuple([j for j in judged if j.verdict != RULED_OUT][:MAX_LIVE])
    dead = [*(j for j in judged if j.verdict == RULED_OUT), *judge(out)]
    return standing, tuple(_most_similar(dead, standing))


def _told_by_its_sign(judged: Judged) -> bool:
    found = judged.candidate
    return judged.verdict != RULED_OUT and found.role == DIRECT and found.must is True


def _resembling(
    near: Sequence[tuple[str, float]], failure: Failure, findings: Sequence[Finding], around: Around
) -> tuple[Judged, ...]:
    """Findings whose log has a line much like the failing one, where nothing explains it: releases reword messages.
    Possible at most, and only where no setting speaks against them."""
    named = {f.id: f for f in findings}
    found = []
    for name, score in near:
        candidate = around.weighed.of(named[name], around.case)
        if not similar.CLOSE <= score < similar.SAME or not _fits(candidate, failure):
            continue
        why = "the failing line resembles a line of its log, in words or by the function that raised it; its own "
        why += "signs were not seen"
        place = (around.case.table.span(failure.row),)
        ground = Ground(FOR, "weak", "the failing line resembles its log", True, why, where=place, observed=True)
        shaped = replace(candidate, explains=(failure.id,), role=ASSUMED, row=failure.row)
        found.append(Judged(shaped, POSSIBLE, why, Evidence(extra=(ground,))))
    return tuple(found)


def _fits(found: Candidate, failure: Failure) -> bool:
    """Whether nothing but the missing words speaks against a finding: no setting, nothing that excludes it, and a time
    at which its kind happens."""
    late = failure.stage in SERVED and found.finding.category in STARTUP_KINDS
    settings = (*found.ledger.must, *found.ledger.applies)
    against = any(g.value is False and not g.observed for g in settings)
    return not late and not against and found.applies is not False and not found.ledger.held("excludes")


def _reworded(
    failure: Failure, findings: Sequence[Finding], around: Around, named: Container[str], told: bool
) -> tuple[Judged, ...]:
    """Findings one of whose wordings the failing line has, but for a word or two. `told`: something explains it, or its
    own words say what it is."""
    if told:
        return ()
    known = {f.id: f for f in findings if f.id not in named}
    found: list[Judged] = []
    for name, rule in by_wording(failure.text, known.values(), around.case.rules, around.case.signals)[:MAX_REWORDED]:
        candidate = around.weighed.of(known[name], around.case)
        if not _fits(candidate, failure):
            continue
        title = around.case.rules[rule].title
        why = f"the failing line has most words of a sign of it (“{title}”); this release may put it in other words"
        place = (around.case.table.span(failure.row),)
        ground = Ground(FOR, "weak", f"words of {rule}", True, why, where=place, observed=True)
        shaped = replace(candidate, explains=(failure.id,), role=ASSUMED, row=failure.row)
        found.append(Judged(shaped, POSSIBLE, why, Evidence(extra=(ground,))))
    return tuple(found)


def _most_similar(dead: Sequence[Judged], leaders: Sequence[Judged]) -> list[Judged]:
    heads = [j.candidate for j in leaders[:4]]
    ordered = sorted(
        dead,
        key=lambda j: ([-x for x in exclusion.similarity(j.candidate, heads)], j.candidate.finding.id),
    )
    return ordered[:MAX_RULED_OUT]


def _good(everyone: Sequence[Case]) -> list[Case]:
    """Launches of the input that show no failure: what they had was tried as well."""
    return [c for c in everyone if c.launch.first_failure is None and c.launch.reached == "serving"]


def _unnamed(comparison: Comparison | None, case: Case, judged: Sequence[Judged]) -> tuple[str, ...]:
    """Differences to the control that can matter here and that no hypothesis speaks of."""
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
        for d in suspicious(comparison, case)
        if not any(d.name in t or d.name.split(".", 1)[1] == t for t in texts)
    )
