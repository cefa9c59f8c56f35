"""The launches of the input as a table of experiments: what changed, how far it got, what it says about each cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forensics.diagnose.convert import plain, progress_text
from forensics.diagnose.hypotheses import Diagnosis
from forensics.diagnose.places import Places
from forensics.diagnose.tried import Pair, concerns, first_failure, reference
from forensics.diagnose.variables import Varied, varied
from forensics.diagnose.verdict import RULED_OUT
from forensics.rulebook.case import Case
from forensics.schema.report import AttemptInfo, Change
from forensics.timeline.attempts import same_failure

MAX_CHANGES = 20


def attempts(cases: Sequence[Case], found: Mapping[str, Diagnosis], places: Places) -> tuple[AttemptInfo, ...]:
    """One row a launch, in the order of the input; nothing for a single launch."""
    if len(cases) < 2:
        return ()
    return tuple(_row(n, case, cases, found, places) for n, case in enumerate(cases))


def _row(
    position: int, case: Case, cases: Sequence[Case], found: Mapping[str, Diagnosis], places: Places
) -> AttemptInfo:
    launch = case.launch
    against = reference(cases[:position], case) if position else None
    changed = varied(against.launch, launch) if against else ()
    same = next((c for c in cases[:position] if same_failure(c.launch, launch)), None)
    failure = first_failure(case)
    row = failure.row if failure else launch.ended_row
    return AttemptInfo(
        launch=launch.id,
        path=places.table.sources[launch.sources[0]].name if launch.sources else "",
        lines=launch.lines,
        against=against.launch.id if against else None,
        changed=[_change(v, places) for v in changed[:MAX_CHANGES]],
        reached=launch.reached,
        ended=launch.ended,
        outcome=places.safe(outcome(case)),
        same_failure_as=same.launch.id if same else None,
        refutes=_refutes(case, cases, found),
        supports=_supports(case, found),
        where=places.row(row) if row is not None else None,
    )


def outcome(case: Case) -> str:
    """How a launch ended, in one sentence."""
    launch = case.launch
    failure = first_failure(case)
    if failure is not None:
        return f"failed during {failure.stage}: {failure.text}"
    if launch.reached == "serving" and launch.ended not in ("hung", "killed", "crashed"):
        return "serves without a failure"
    progress = progress_text(launch)
    if launch.ended in ("log-ends", "running"):
        return f"no outcome: the log ends at {progress or launch.reached}"
    return f"{launch.ended} at {progress or launch.reached}"


def _refutes(case: Case, cases: Sequence[Case], found: Mapping[str, Diagnosis]) -> dict[str, str]:
    """Findings that this launch speaks against, with the reason."""
    refuted: dict[str, str] = {}
    for other in cases:
        for judged in found[other.launch.id].judged:
            for ground in judged.grounds:
                if ground.side == "against" and ground.condition.startswith("tried") and _names(ground.why, case):
                    refuted.setdefault(judged.candidate.finding.id, ground.why)
        for pair in found[other.launch.id].pairs:
            if pair.good.launch.id == case.launch.id:
                refuted.update(_cleared(pair, found[other.launch.id], refuted))
    return dict(sorted(refuted.items()))


def _cleared(pair: Pair, diagnosis: Diagnosis, known: Mapping[str, str]) -> dict[str, str]:
    return {
        j.candidate.finding.id: g.why
        for j in diagnosis.judged
        for g in j.grounds
        if g.condition == "the good launch has it too" and j.candidate.finding.id not in known
        and pair.good.launch.id in g.why
    }  # fmt: skip


def _supports(case: Case, found: Mapping[str, Diagnosis]) -> dict[str, str]:
    """Findings that this launch speaks for: it is the good half of a pair, or fails alike with their settings kept."""
    supported: dict[str, str] = {}
    for diagnosis in found.values():
        for pair in diagnosis.pairs:
            if pair.good.launch.id != case.launch.id:
                continue
            for judged in diagnosis.judged:
                shown, finding = judged.evidence.comparison, judged.candidate.finding
                if judged.verdict != RULED_OUT and shown is not None and concerns(finding, pair.variable):
                    supported[finding.id] = shown.why
    return dict(sorted(supported.items()))


def _names(why: str, case: Case) -> bool:
    return why.startswith(f"{case.launch.id} ")


def _change(variable: Varied, places: Places) -> Change:
    return Change(
        kind="flag" if variable.kind == "flag" else "env",
        name=variable.name,
        before=plain(variable.before, places),
        after=plain(variable.after, places),
    )
