"""Why a finding holds or does not, on one launch: every condition with held, failed or unknown, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forensics.diagnose.candidates import Candidate, Weighed, is_hypothesis
from forensics.diagnose.hypotheses import diagnose_launch
from forensics.diagnose.places import Places
from forensics.diagnose.verdict import RULED_OUT
from forensics.errors import UsageError
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import Outcome, evaluate
from forensics.schema.finding import Condition, Finding
from forensics.schema.report import Where

HELD, FAILED, UNKNOWN = "held", "failed", "unknown"


@frozen
class Step:
    """One condition or part of one. `depth` 0 is a condition as written; parts are deeper. `state`: held, failed,
    unknown."""

    depth: int
    strength: str
    text: str
    state: str
    why: str
    settle: str
    where: tuple[Where, ...]


@frozen
class Explanation:
    """A finding on a launch: `verdict` (or "no hypothesis"), the reason in one sentence, all steps, and what the
    finding would explain."""

    finding: str
    launch: str
    verdict: str
    why: str
    steps: tuple[Step, ...]
    explains: tuple[str, ...]


def explain_finding(
    name: str, case: Case, everyone: Sequence[Case], knowledge: Knowledge, places: Places
) -> Explanation:
    """Explain one finding on one launch. UsageError where the knowledge has no such finding."""
    finding = next((f for f in knowledge.findings if f.id == name), None)
    if finding is None:
        from rapidfuzz import process

        near = [n for n, *_ in process.extract(name, [f.id for f in knowledge.findings], limit=3)]
        raise UsageError(f"no finding has the id {name}", hint=f"nearest: {', '.join(near)}" if near else "")
    weighed = Weighed()
    diagnosis = diagnose_launch(case, everyone, knowledge, weighed)
    found = weighed.of(finding, case)
    judged = next((j for j in diagnosis.judged if j.candidate.finding.id == name), None)
    verdict = judged.verdict if judged else "no hypothesis"
    why = judged.why if judged else _why_not(found, case)
    return Explanation(name, case.launch.id, verdict, why, tuple(_steps(finding, case, places)), found.explains)


def _why_not(found: Candidate, case: Case) -> str:
    if found.applies is False:
        failed = next(g for g in found.ledger.applies if g.value is False)
        return f"this launch is not of the kind that can have it: {failed.why or failed.condition}"
    if found.must is False:
        failed = next(g for g in found.ledger.must if g.value is False)
        return f"it requires what is not there: {failed.why or failed.condition}"
    if case.launch.first_failure is None and case.symptom is None:
        return "the log shows no failure and no symptom is stated, so there is nothing to explain"
    if not found.explains:
        return "no failure of this launch shows the signals that it would explain"
    if not is_hypothesis(found):
        return "nothing that the log shows speaks for it"
    return "better supported hypotheses fill the list"


def _steps(finding: Finding, case: Case, places: Places) -> Iterable[Step]:
    for condition in (*finding.applies, *finding.grounds):
        yield from _walk(evaluate(condition, case), condition, 0, places)


def _walk(outcome: Outcome, condition: Condition, depth: int, places: Places) -> Iterable[Step]:
    yield Step(
        depth=depth,
        strength=condition.strength or "applies",
        text=condition.text if depth == 0 else outcome.text,
        state={True: HELD, False: FAILED, None: UNKNOWN}[outcome.value],
        why=places.safe(outcome.why),
        settle=outcome.settle,
        where=tuple(places.spans(outcome.witnesses)),
    )
    for part in outcome.parts:
        yield from _walk(part, condition, depth + 1, places)


__all__ = ["RULED_OUT", "Explanation", "Step", "explain_finding"]
