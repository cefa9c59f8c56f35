"""What to try or collect next: the cheapest thing that best separates the hypotheses that are left.

An experiment changes one variable of the launch's own command. Nothing that the input shows as tried is offered.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from forensics.diagnose.candidates import ASSUMED, DIRECT, SYMPTOM
from forensics.diagnose.controls import Comparison, suspicious
from forensics.diagnose.general import General
from forensics.diagnose.grounds import UNKNOWN
from forensics.diagnose.tried import has_step, step_name, step_text
from forensics.diagnose.verdict import ESTABLISHED, RULED_OUT, Judged
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding, FixStep
from forensics.schema.report import NextStep
from forensics.timeline.catalog import check_changes

Change = tuple[FixStep, ...]
"""Steps of a fix that are one change."""
MAX_STEPS = 5
HANG = (
    ("the Python and native stacks of every scheduler while it hangs", "py-spy dump --native --pid PID"),
    ("use of every GPU while it hangs", "nvidia-smi"),
    ("the last batch line of every rank: running requests, queue and token usage before it stood still", ""),
)
"""What to collect of a standstill that nothing explains."""
_COMMAND = re.compile(r"(?:python3?|nvidia-smi|forensics|grep|dmesg|py-spy|cat|pip|ls|free|docker|kubectl|env) ")
_PYTHON = re.compile(r"(?:^|/)python[\d.]*$")


def next_steps(
    case: Case,
    judged: Sequence[Judged],
    alike: Sequence[Case],
    comparison: Comparison | None,
    general: General | None,
) -> list[NextStep]:
    """At most `MAX_STEPS` steps, best first. `general` is the general reading of the first failure, if there is one."""
    live = [j for j in judged if j.verdict != RULED_OUT and j.candidate.role in (DIRECT, ASSUMED, SYMPTOM)]
    proven = bool(live) and live[0].verdict == ESTABLISHED
    steps = _verify(case, live, alike) if proven else _experiments(case, live, (case, *alike))
    if not proven:
        if not live:
            steps += [NextStep(kind="experiment", do=do, command=command) for do, command in _direct(general)]
        steps += _data(live)
        if not live and comparison is not None:
            steps += _differences(case, comparison)
        if general is not None and len(steps) < 3:
            steps += [
                NextStep(kind="datum", do=f"collect {what}", command=command) for what, command in general.collect
            ]
        if len(steps) < 2:
            steps += [_look(j) for j in live[:2] if j.candidate.finding.fix]
        if not live and case.symptom == "hang":
            steps += [NextStep(kind="datum", do=f"collect {what}", command=command) for what, command in HANG]
        if not steps and case.launch.first_failure is not None:
            steps += _collect(case)
    distinct = {(s.do, s.command): s for s in steps}
    return list(distinct.values())[:MAX_STEPS]


def _direct(general: General | None) -> tuple[tuple[str, str], ...]:
    return general.do if general is not None else ()


def _look(judged: Judged) -> NextStep:
    """The first thing to do for a hypothesis that no flag can test."""
    finding = judged.candidate.finding
    step = next((s for s in finding.fix if s.kind in ("host", "other")), finding.fix[0])
    return _by_hand(step, judged, finding.verify[0] if finding.verify else "the same load passes the point of failure")


def command_with(command: str, step: FixStep) -> str:
    """The launch command with one flag or environment variable changed; "" where it cannot be edited safely."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    if not any("sglang" in w for w in words):
        return ""
    if step.kind == "env":
        at = next((i for i, w in enumerate(words) if _PYTHON.search(w) or w == "sglang"), 0)
        if step.op == "remove":
            return shlex.join(w for w in words if not w.startswith(f"{step.name}="))
        words = [w for w in words[:at] if not w.startswith(f"{step.name}=")] + words[at:]
        at = next((i for i, w in enumerate(words) if _PYTHON.search(w) or w == "sglang"), 0)
        return _joined([*words[:at], f"{step.name}={step.value or ''}", *words[at:]])
    return _joined(_with_flag(words, step))


def _with_flag(words: list[str], step: FixStep) -> list[str]:
    kept: list[str] = []
    skip = False
    for position, word in enumerate(words):
        if skip:
            skip = False
            continue
        name = word.split("=", 1)[0].replace("_", "-")
        if word.startswith("--") and name == step.name.replace("_", "-"):
            following = words[position + 1] if position + 1 < len(words) else "--"
            skip = "=" not in word and not following.startswith("--")
            continue
        kept.append(word)
    if step.op == "remove":
        return kept
    return [*kept, step.name, *([step.value] if step.value else [])]


def _joined(words: Sequence[str]) -> str:
    return " ".join(w if re.fullmatch(r"[A-Za-z_]\w*=\S*", w) else shlex.quote(w) for w in words)


def _verify(case: Case, live: Sequence[Judged], others: Sequence[Case]) -> list[NextStep]:
    """An established cause needs no experiment to separate it, only the relaunch that proves the fix; where a launch of
    the input is that relaunch, its setting is what to keep."""
    finding = live[0].candidate.finding
    shows = finding.verify[0] if finding.verify else "the same load passes the point of failure"
    for change in _offered(case, finding):
        if _has(case, change):
            continue
        tried = [c for c in others if _has(c, change)]
        works = [c for c in tried if c.launch.first_failure is None]
        if works:
            return [_keep(works[0], change, live[0])]
        if not tried:
            return [_experiment(case, change, live[:1], f"the fix holds when the relaunch shows: {shows}")]
    leading = [change[0] for change in check_changes(finding.fix, case.launch.version)]
    by_hand = [s for s in leading if s.kind in ("package", "host", "other") and not s.do.startswith("not applicable")]
    return [_by_hand(step, live[0], shows) for step in by_hand[:1]]


def _keep(good: Case, change: Change, judged: Judged) -> NextStep:
    """What proves the fix is in the input already."""
    fact = good.launch.facts.get("launch.command")
    return NextStep(
        kind="datum",
        do=f"keep {_text(change)}: {good.launch.id} has it and works",
        command=str(fact.value) if fact and fact.value else "",
        separates=[judged.candidate.finding.id],
        settles=f"{good.launch.id} is the relaunch that proves it",
    )


def _has(case: Case, change: Change) -> bool:
    return all(has_step(case.launch, step) for step in change)


def _text(change: Change) -> str:
    return " and ".join(step_text(step) for step in change)


def _by_hand(step: FixStep, judged: Judged, shows: str) -> NextStep:
    """A fix that a person carries out: a package, the host, or a sentence."""
    relation = {"at-least": ">=", "exact": "==", "below": "<"}.get(step.op, "")
    package = f"pip install '{step.name}{relation}{step.version}'" if step.kind == "package" else ""
    do = f"install {step.name} {relation}{step.version} and relaunch" if package else step.do or step_text(step)
    settles = f"the fix holds when the relaunch shows: {shows}"
    return NextStep(kind="experiment", do=do, command=package, separates=[judged.candidate.finding.id], settles=settles)


def _experiments(case: Case, live: Sequence[Judged], group: Sequence[Case]) -> list[NextStep]:
    found: list[tuple[tuple[int, int], NextStep]] = []
    varied: set[str] = set()
    for place, judged in enumerate(live):
        for change in _offered(case, judged.candidate.finding):
            if any(_has(c, change) for c in group):
                continue
            if step_name(change[0]) in varied:
                break
            varied.add(step_name(change[0]))
            shared = sum(1 for j in live if j is not judged and _touched(j, change[0]))
            settles = f"passes: {judged.candidate.finding.id}; same failure: it is ruled out"
            found.append(((place, shared), _experiment(case, change, [judged], settles)))
            break
    return [step for _, step in sorted(found, key=lambda pair: pair[0])][:3]


def _experiment(case: Case, change: Change, judged: Sequence[Judged], settles: str) -> NextStep:
    fact = case.launch.facts.get("launch.command")
    command = str(fact.value) if fact and fact.value else ""
    for step in change:
        command = command_with(command, step) if command else ""
    how = _text(change) if change[0].op == "remove" else f"with {_text(change)}"
    return NextStep(
        kind="experiment",
        do=f"relaunch {how} and nothing else changed",
        command=command or " ".join(step_text(step) for step in change),
        separates=[j.candidate.finding.id for j in judged],
        settles=settles,
    )


def _offered(case: Case, finding: Finding) -> list[Change]:
    """Changes of flags and variables, as the releases that this launch can be spell them; no placeholders."""
    return [c for c in check_changes(finding.fix, case.launch.version) if all(_concrete(step) for step in c)]


def _concrete(step: FixStep) -> bool:
    return step.kind in ("flag", "env") and (step.op == "remove" or "<" not in (step.value or ""))


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
        return [_experiment(case, (step,), [], f"whether {name} matters; {comparison.deployment.id} works without it")]
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
