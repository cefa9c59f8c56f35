"""What to try or collect next: the cheapest thing that best separates the hypotheses that are left.

An experiment changes one variable of the launch's own command. Nothing that the input shows as tried is offered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.diagnose.candidates import ASSUMED, DIRECT, SYMPTOM
from forensics.diagnose.controls import Comparison, suspicious
from forensics.diagnose.fallback import steps_for_unknown
from forensics.diagnose.fill import filled, leaves_open
from forensics.diagnose.general import General
from forensics.diagnose.grounds import UNKNOWN
from forensics.diagnose.relaunch import (
    Change,
    command_of,
    command_with,
    experiment,
    has,
    how,
    observed_already,
    text_of,
)
from forensics.diagnose.silent import hang_data, steps_for_symptom
from forensics.diagnose.steps_here import steps_for
from forensics.diagnose.tried import step_name, step_text
from forensics.diagnose.verdict import ESTABLISHED, LIKELY, RULED_OUT, Judged
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding, FixStep
from forensics.schema.report import NextStep
from forensics.timeline.catalog import check_changes

MAX_STEPS = 5
_WAITS = re.compile(r"(?i)time_?out|wait(?:ing)?_(?:secs|seconds|time)|-timeout\b")
"""Settings that make somebody wait longer."""
_CONDITION = re.compile(r"(?i)(?:only )?(?:if|where|when)\b")
"""Begins the note of a step that is meant for some launches of its finding only."""
_RELATION = {"at-least": ">=", "exact": "==", "below": "<"}
_COMMAND = re.compile(r"(?:python3?|nvidia-smi|forensics|grep|dmesg|py-spy|cat|pip|ls|free|docker|kubectl|env) ")


def next_steps(
    case: Case,
    judged: Sequence[Judged],
    alike: Sequence[Case],
    comparison: Comparison | None,
    general: General | None,
    blind: bool = False,
) -> list[NextStep]:
    """At most `MAX_STEPS` steps, best first. `general` is the general reading of the first failure, if there is one."""
    live = [j for j in judged if j.verdict != RULED_OUT and j.candidate.role in (DIRECT, ASSUMED, SYMPTOM)]
    proven = bool(live) and live[0].verdict == ESTABLISHED
    if proven:
        steps = _verify(case, live, alike)
    else:
        steps = _separating(case, live, alike, comparison, general, blind)
    if case.symptom == "hang" and (not proven or not steps):
        steps = [*steps[: MAX_STEPS - 2], *_collected(hang_data(case))]
    elif case.symptom and not live:
        steps += steps_for_symptom(case, (case, *alike))
    distinct = {(s.do, s.command): s for s in steps if not observed_already(case.launch, s)}
    return list(distinct.values())[:MAX_STEPS]


def _separating(
    case: Case,
    live: Sequence[Judged],
    alike: Sequence[Case],
    comparison: Comparison | None,
    general: General | None,
    blind: bool = False,
) -> list[NextStep]:
    """Experiments and data where no cause is established. What only waits longer comes last: it hides the sign."""
    tests, longer = _experiments(case, live, (case, *alike))
    steps = [*_collected(general.collect), *tests] if general is not None and blind else [*tests]
    if live and live[0].verdict == LIKELY and (first := steps_for(live[0].candidate.finding, case)):
        look = _look(case, live[0]) if first[0].kind == "host" else None  # looking costs less than a relaunch
        steps = [*([look] if look is not None else []), *steps]
    failure = case.launch.failure(case.launch.first_failure)
    if not live:
        steps += [NextStep(kind="experiment", do=do, command=command) for do, command in _direct(general)]
        if failure is not None and not steps and not (general and general.settled):
            steps += steps_for_unknown(case, failure, (case, *alike))
    steps += _data(live)
    if not live and comparison is not None and len(steps) < 2:
        steps += _differences(case, comparison)
    if general is not None and len(steps) < 3:
        steps += _collected(general.collect)
    if len(steps) < 2:
        steps += [step for j in live[:2] if (step := _look(case, j)) is not None]
    steps += longer
    if not steps and failure is not None:
        steps += _collect(case)
    return steps


def _collected(wanted: Sequence[tuple[str, str]]) -> list[NextStep]:
    return [NextStep(kind="datum", do=f"collect {what}", command=command) for what, command in wanted]


def _direct(general: General | None) -> tuple[tuple[str, str], ...]:
    return general.do if general is not None else ()


def _look(case: Case, judged: Judged) -> NextStep | None:
    """The first thing to do by hand for a hypothesis; None where all that it knows are switches."""
    finding = judged.candidate.finding
    steps = steps_for(finding, case)
    step = next((s for s in steps if s.kind in ("host", "other")), None)
    step = step or next((s for s in steps if s.kind == "package" or not _concrete(s)), None)
    if step is None:
        return None
    return _by_hand(case, (step,), judged, _passing(finding))


def _passing(finding: Finding) -> str:
    """What a relaunch shows when the fix holds."""
    return finding.verify[0] if finding.verify else "the same load passes the point of failure"


def _verify(case: Case, live: Sequence[Judged], others: Sequence[Case]) -> list[NextStep]:
    """An established cause needs no experiment to separate it, only the relaunch that proves the fix; where a launch of
    the input is that relaunch, its setting is what to keep. What a person does, or a value that the reader must choose,
    comes first where the page has it first, and a step for some launches only comes last, with its condition."""
    finding, shows = live[0].candidate.finding, _passing(live[0].candidate.finding)
    steps = steps_for(finding, case)
    changes = check_changes(steps, case.launch.version)
    choices: list[NextStep] = []
    aside: list[Change] = []
    for change in changes:
        if not all(_concrete(step) for step in change):
            by_hand = any(_open(step) for step in change) or not _runs(change[0])
            if not choices and by_hand and not _conditional(case, change):
                choices.append(_by_hand(case, change, live[0], shows))
            continue
        longer = _WAITS.search(change[0].name) and change[0].name != steps[0].name
        if has(case, change) or longer:  # a longer time-out is the cure only where the page puts it first
            continue
        tried = [c for c in others if has(c, change)]
        works = [c for c in tried if c.launch.first_failure is None]
        if works:
            return [_keep(works[0], change, live[0])]
        if not tried and _conditional(case, change):
            aside.append(change)
        elif not tried:
            return [*choices, experiment(case, change, live[:1], f"the fix holds when the relaunch shows: {shows}")]
    return choices or [_aside(case, change, live[0], shows) for change in aside[:1]]


def _aside(case: Case, change: Change, judged: Judged, shows: str) -> NextStep:
    """All that is left is a step for some launches: the reader must see for which."""
    step = experiment(case, change, [judged], f"the fix holds when the relaunch shows: {shows}")
    return step.model_copy(update={"do": f"{change[0].note.split(':')[0].split(';')[0]}: {step.do}"})


def _open(step: FixStep) -> bool:
    return step.kind in ("flag", "env") and step.op != "remove" and leaves_open(step.value)


def _conditional(case: Case, change: Change) -> bool:
    """Whether a change is for some launches only, and the log does not show that this is one: what is to be taken out
    must be there."""
    leader = change[0]
    if leader.when is None and not _CONDITION.match(leader.note):
        return False
    fact = case.launch.facts.get(f"{'args' if leader.kind == 'flag' else 'env'}.{step_name(leader)}")
    return not (leader.op == "remove" and fact is not None and fact.value not in (None, "", False))


def _runs(step: FixStep) -> bool:
    """Whether a step is a change that can be run as it stands, or one that does not apply here."""
    return _concrete(step) or step.do.startswith("not applicable")


def _keep(good: Case, change: Change, judged: Judged) -> NextStep:
    """What proves the fix is in the input already."""
    return NextStep(
        kind="datum",
        do=f"keep {text_of(change)}: {good.launch.id} has it and works",
        command=command_of(good.launch),
        separates=[judged.candidate.finding.id],
        settles=f"{good.launch.id} is the relaunch that proves it",
    )


def _by_hand(case: Case, change: Change, judged: Judged, shows: str) -> NextStep:
    """A fix that a person carries out: packages, the host, a sentence, or a value that must be chosen first."""
    step = next((s for s in change if _open(s)), change[0])
    wanted = [f"{s.name} {_RELATION[s.op]}{s.version}" for s in change if s.kind == "package"]
    command = " ".join(["pip install", *(f"'{w.replace(' ', '')}'" for w in wanted)]) if wanted else ""
    do = f"install {' and '.join(wanted)} and relaunch" if wanted else step.do.removeprefix("or ") or step_text(step)
    if _open(step):
        words, suggestion = filled(step, case)
        others = how([s for s in change if s is not step and s.kind in ("flag", "env")])
        do, stated = f"{words}, then relaunch {others}".rstrip(), command_of(case.launch)
        command = command_with(stated, suggestion) if suggestion and stated else ""
    settles = f"the fix holds when the relaunch shows: {shows}"
    return NextStep(kind="experiment", do=do, command=command, separates=[judged.candidate.finding.id], settles=settles)


def _experiments(case: Case, live: Sequence[Judged], group: Sequence[Case]) -> tuple[list[NextStep], list[NextStep]]:
    """Relaunches that test the hypotheses, and apart those that only raise a time-out."""
    found: list[tuple[tuple[int, int], NextStep]] = []
    longer: list[NextStep] = []
    varied: set[str] = set()
    for place, judged in enumerate(live):
        for change in _offered(case, judged.candidate.finding):
            if _conditional(case, change) or any(has(c, change) for c in group):
                continue
            if step_name(change[0]) in varied:
                break
            varied.add(step_name(change[0]))
            shared = sum(1 for j in live if j is not judged and _touched(j, change[0]))
            settles = f"passes: {judged.candidate.finding.id}; same failure: it is ruled out"
            step = experiment(case, change, [judged], settles)
            if _WAITS.search(change[0].name):
                longer.append(step)
                continue
            found.append(((place, shared), step))
            break
    return [step for _, step in sorted(found, key=lambda pair: pair[0])][:3], longer[:1]


def _offered(case: Case, finding: Finding) -> list[Change]:
    """Changes of flags and variables, as the releases that this launch can be spell them; no placeholders."""
    return [
        c for c in check_changes(steps_for(finding, case), case.launch.version) if all(_concrete(step) for step in c)
    ]


def _concrete(step: FixStep) -> bool:
    return step.kind in ("flag", "env") and not _open(step)


def _touched(judged: Judged, step: FixStep) -> bool:
    return any(s.kind == step.kind and step_name(s) == step_name(step) for s in judged.candidate.finding.fix)


def _data(live: Sequence[Judged]) -> list[NextStep]:
    """Unknown conditions of the leading hypotheses, with what would settle them; the ones that several need first."""
    wanted: dict[str, tuple[list[str], str]] = {}
    for judged in live[:4]:
        for ground in judged.grounds:
            if (
                ground.side == UNKNOWN
                and ground.settle
                and ground.strength in ("must", "decisive", "strong", "applies")
            ):
                wanted.setdefault(ground.settle, ([], ground.condition))[0].append(judged.candidate.finding.id)
    ordered = sorted(wanted.items(), key=lambda pair: -len(set(pair[1][0])))
    return [
        NextStep(
            kind="datum",
            do=f"find out: {condition}" if _COMMAND.match(settle) else settle,
            command=settle if _COMMAND.match(settle) else "",
            separates=sorted(set(ids)),
            settles=condition,
        )
        for settle, (ids, condition) in ordered[:3]
    ]


def _differences(case: Case, comparison: Comparison) -> list[NextStep]:
    """No cause is left: take back one untested difference to the launch that works."""
    for difference in suspicious(comparison, case):
        if not difference.name.startswith("args."):
            continue
        name = "--" + difference.name.removeprefix("args.").replace("_", "-")
        unset = difference.control in (None, "", "auto", False)
        value = None if difference.control is True or unset else str(difference.control)
        step = FixStep("flag", "remove" if unset else "set", name, value)
        return [experiment(case, (step,), [], f"whether {name} matters; {comparison.deployment.id} works without it")]
    return []


def _collect(case: Case) -> list[NextStep]:
    missing = ", ".join(str(r) for r in case.launch.missing[:8])
    steps = []
    if missing:
        steps.append(NextStep(kind="datum", do=f"collect the log of the ranks that never reported: {missing}"))
    if case.launch.truncated_head:
        steps.append(NextStep(kind="datum", do="collect the log from the launch command on; its head is cut off"))
    if not any(n.startswith("gpu.") for n in case.launch.facts):
        steps.append(NextStep(kind="datum", do="say what the host is", command="python3 -m sglang.check_env"))
    return steps
