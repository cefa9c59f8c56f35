"""The launches of the input as a table of experiments: what changed, how far it got, what it says about each cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forensics.diagnose.convert import plain, progress_text
from forensics.diagnose.grounds import AGAINST
from forensics.diagnose.hypotheses import Diagnosis
from forensics.diagnose.places import Places
from forensics.diagnose.tried import GOOD_HAS_IT, concerns, first_failure, reference
from forensics.diagnose.variables import Trials, Varied
from forensics.diagnose.verdict import RULED_OUT
from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.schema.report import AttemptInfo, Change
from forensics.timeline.attempts import same_failure

MAX_CHANGES = 20
MAX_COMPARED = 24


@frozen
class Said:
    """Reasons by launch and finding."""

    refutes: dict[str, dict[str, str]]
    supports: dict[str, dict[str, str]]


def attempts(
    cases: Sequence[Case], found: Mapping[str, Diagnosis], places: Places, trials: Trials
) -> tuple[AttemptInfo, ...]:
    """One row a launch, in the order of the input; nothing for a single launch."""
    if len(cases) < 2:
        return ()
    said = _said(found)
    return tuple(_row(n, case, cases, said, places, trials) for n, case in enumerate(cases))


def _row(position: int, case: Case, cases: Sequence[Case], said: Said, places: Places, trials: Trials) -> AttemptInfo:
    launch = case.launch
    against = reference(_distinct(cases[:position], trials), case, trials) if position else None
    changed = trials.varied(against.launch, launch) if against else ()
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
        refutes=dict(sorted(said.refutes.get(launch.id, {}).items())),
        supports=dict(sorted(said.supports.get(launch.id, {}).items())),
        where=places.row(row) if row is not None else None,
    )


def _distinct(cases: Sequence[Case], trials: Trials) -> list[Case]:
    """The first launch with each setting; the first and the latest of them where there are many."""
    first: dict[int, Case] = {}
    for case in cases:
        first.setdefault(trials.settings(case.launch), case)
    kept = list(first.values())
    return kept if len(kept) <= MAX_COMPARED else [kept[0], *kept[1 - MAX_COMPARED :]]


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


def _said(found: Mapping[str, Diagnosis]) -> Said:
    """What the diagnoses of all launches say about each launch as an experiment."""
    said = Said({}, {})
    for diagnosis in found.values():
        good = {p.good.launch.id: p for p in diagnosis.pairs}
        for judged in diagnosis.judged:
            name = judged.candidate.finding.id
            for ground in judged.grounds:
                launch = ground.why.split(" ", 1)[0]
                cleared = ground.condition == GOOD_HAS_IT and launch in good
                if ground.side == AGAINST and (ground.condition.startswith("tried") or cleared):
                    said.refutes.setdefault(launch, {}).setdefault(name, ground.why)
            shown = judged.evidence.comparison
            if judged.verdict == RULED_OUT or shown is None:
                continue
            for launch, pair in good.items():
                if concerns(judged.candidate.finding, pair.variable):
                    said.supports.setdefault(launch, {})[name] = shown.why
    return said


def _change(variable: Varied, places: Places) -> Change:
    return Change(
        kind="flag" if variable.kind == "flag" else "env",
        name=variable.name,
        before=plain(variable.before, places),
        after=plain(variable.after, places),
    )
