"""From cases and knowledge to the launches, attempts and focus of a report."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.diagnose.attempts import attempts
from forensics.diagnose.batches import batch_series
from forensics.diagnose.candidates import Weighed
from forensics.diagnose.convert import launch_info, masked_step
from forensics.diagnose.hypotheses import UNASKED, Diagnosis, diagnose_launch
from forensics.diagnose.lanes import timeline
from forensics.diagnose.past import Past
from forensics.diagnose.places import Places
from forensics.diagnose.present import comparison_info, hypothesis_infos, with_fixes
from forensics.diagnose.risks import risks
from forensics.diagnose.surroundings import excerpts
from forensics.diagnose.verdict import ESTABLISHED
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.rulebook.case import Case
from forensics.schema.options import Options
from forensics.schema.report import AttemptInfo, HypothesisInfo, LaunchInfo
from forensics.timeline.remarks import WAITED

MAX_DIAGNOSED = 100
"""Launches whose causes are looked for: the latest ones, and the one in focus."""


@frozen
class Diagnosed:
    """What the diagnosis adds to a report."""

    launches: tuple[LaunchInfo, ...]
    attempts: tuple[AttemptInfo, ...]
    focus: str | None
    coarse: bool = False
    """Too many settings differ between the launches to compare them all one by one."""


def diagnose(
    cases: Sequence[Case],
    knowledge: Knowledge,
    options: Options,
    places: Places,
    controls: Sequence[Case] = (),
    past: Past | None = None,
) -> Diagnosed:
    """Diagnose every launch of the input. `controls`: further launches (history, baseline) that count as attempts
    and comparisons but are not reported themselves."""
    weighed = Weighed()
    everyone = (*cases, *controls)
    focus = choose_focus(cases, options)
    full = {c.launch.id for c in cases[-MAX_DIAGNOSED:]} | {focus}
    found = {
        c.launch.id: diagnose_launch(c, everyone, knowledge, weighed, past) if c.launch.id in full else UNASKED
        for c in cases
    }
    infos = tuple(
        _info(c, found[c.launch.id], knowledge, weighed, places, c.launch.id == focus)
        if c.launch.id in full
        else _brief(c, places)
        for c in cases
    )
    rows = attempts(cases, found, places, weighed.trials)
    return Diagnosed(infos, rows, focus, weighed.trials.coarse)


def choose_focus(cases: Sequence[Case], options: Options) -> str | None:
    """The launch of the headline: the one asked for, else the last failed one, else the last."""
    if not cases:
        return None
    if options.launch.isdigit():
        wanted = f"L{int(options.launch)}"
        return wanted if any(c.launch.id == wanted for c in cases) else None
    failed = [c for c in cases if c.launch.first_failure is not None]
    if not failed:
        failed = [c for c in cases if c.launch.ended == "hung"]
    return (failed or list(cases))[-1].launch.id


def _brief(case: Case, places: Places) -> LaunchInfo:
    """A launch far back in a long series: what happened, without its causes."""
    info = launch_info(case.launch, places)
    note = f"causes are looked for in the last {MAX_DIAGNOSED} launches; ask for this one with --launch"
    return info.model_copy(update={"notes": [*info.notes, note]})


def _notes(notes: Sequence[str], shown: Sequence[HypothesisInfo]) -> list[str]:
    """Where a cause is established, a look elsewhere for it is no open question."""
    settled = any(h.verdict == ESTABLISHED for h in shown)
    return [n for n in notes if not (settled and n.startswith(WAITED))]


def _info(
    case: Case, found: Diagnosis, knowledge: Knowledge, weighed: Weighed, places: Places, focus: bool
) -> LaunchInfo:
    info = launch_info(case.launch, places)
    shown = hypothesis_infos(case, found, places)
    first = info.first_failure.where if info.first_failure else None
    lanes = timeline(case.table, case.launch)
    quiet = not found.judged and not found.engine
    return info.model_copy(
        update={
            "hypotheses": shown,
            "risks": with_fixes(risks(knowledge.findings, case, weighed, places), knowledge.findings, case, places)
            if quiet and not found.asked
            else [],
            "comparison": comparison_info(found.comparison, places),
            "next": [masked_step(step, places) for step in found.steps],
            "nearest": list(found.nearest),
            "unexplained": found.unexplained,
            "notes": _notes(info.notes, shown),
            "timeline": lanes,
            "series": batch_series(case.table, case.launch, lanes.begin) if lanes and focus else [],
            "excerpts": excerpts(case.table.sources, first, shown, places.safe) if focus else [],
        }
    )
