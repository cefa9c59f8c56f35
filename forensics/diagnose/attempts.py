"""The launches of the input as a table of experiments: what changed, how far it got, what it says about each cause."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from forensics.diagnose.convert import plain, progress_text
from forensics.diagnose.grounds import AGAINST
from forensics.diagnose.hypotheses import Diagnosis
from forensics.diagnose.places import Places
from forensics.diagnose.tried import GOOD_HAS_IT, concerns, first_failure, other_release, reference
from forensics.diagnose.variables import Trials, Varied
from forensics.diagnose.verdict import RULED_OUT
from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.schema.launch import Launch
from forensics.schema.report import AttemptInfo, Change
from forensics.timeline.attempts import same_failure
from forensics.timeline.catalog import catalog

_FLAG = re.compile(r"(?<=\s)--[a-z][\w-]{1,80}")
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
    if against and other_release(against.launch, launch):
        changed = _chosen(changed, against.launch, launch)
    same = next((c for c in cases[:position] if same_failure(c.launch, launch)), None)
    failure = first_failure(case)
    row = failure.row if failure else launch.ended_row
    return AttemptInfo(
        launch=launch.id,
        path=places.table.sources[launch.sources[0]].name if launch.sources else "",
        lines=launch.lines,
        against=against.launch.id if against else None,
        changed=[*_release(against.launch, launch), *(_change(v, places) for v in changed[:MAX_CHANGES])]
        if against
        else [],
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


def _release(before: Launch, after: Launch) -> list[Change]:
    """Another release is a change of its own, and the reason for many a changed default."""
    if not other_release(before, after):
        return []
    return [Change(kind="other", name="version.sglang", before=_named(before), after=_named(after))]


def _named(launch: Launch) -> str:
    """The release, or what is known of it."""
    found = launch.version
    return found.exact or f"{found.low or 'older'} to {found.high or 'newest'}"


def _chosen(changed: Sequence[Varied], before: Launch, after: Launch) -> tuple[Varied, ...]:
    """What a person changed: releases have other defaults, and where both launches print their command it tells."""
    facts = [launch.facts.get("launch.command") for launch in (before, after)]
    commands = [str(fact.value) for fact in facts if fact is not None and fact.value]
    if len(commands) < len(facts):
        return tuple(changed)
    typed = {catalog().dest(flag) for command in commands for flag in _FLAG.findall(command)}
    return tuple(v for v in changed if v.kind == "env" or v.name in typed)
