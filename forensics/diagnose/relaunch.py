"""Another launch as an experiment: one change to the launch's own command, as text that can be copied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from forensics.diagnose.tried import has_step, step_text
from forensics.diagnose.verdict import Judged
from forensics.errors import ReplayError
from forensics.rulebook.case import Case
from forensics.schema.finding import FixStep
from forensics.schema.launch import Launch
from forensics.schema.report import NextStep

_VARIABLE = re.compile(r"([A-Z][A-Z0-9_]{2,60})=(\w{1,20}) (?:before|in front)")
"""What some steps say instead of a command: the same one with a variable."""
Change = tuple[FixStep, ...]
"""Steps of a fix that are one change."""


def experiment(case: Case, change: Change, judged: Sequence[Judged], settles: str) -> NextStep:
    """The relaunch with one change. `judged`: the hypotheses that it separates; `settles`: what its outcome says. Its
    command is empty where the log states none: the change alone is in the sentence already."""
    command = command_of(case.launch)
    for step in change:
        command = command_with(command, step) if command else ""
    return NextStep(
        kind="experiment",
        do=f"relaunch {how(change)} and nothing else changed",
        command=command,
        separates=[j.candidate.finding.id for j in judged],
        settles=settles,
    )


def command_of(launch: Launch) -> str:
    """The launch command as it was typed, with the variables that stood before it; "" where the log states none. What
    was exported earlier is set in the reader's shell, too."""
    fact = launch.facts.get("launch.command")
    if fact is None or not fact.value:
        return ""
    at = fact.where
    before = sorted(
        (f.where.column, f"{name.removeprefix('env.')}={shlex.quote(str(f.value))}")
        for name, f in launch.facts.items()
        if name.startswith("env.") and f.where and at and (f.where.path, f.where.line) == (at.path, at.line)
    )
    return " ".join([*(text for column, text in before if at and column < at.column), str(fact.value)])


def observed_already(launch: Launch, step: NextStep) -> bool:
    """Whether a step only asks for a variable that the launch had: what it would print is in the log."""
    found = _VARIABLE.search(f"{step.do} {step.command}")
    fact = launch.facts.get(f"env.{found.group(1)}") if found and step.kind == "datum" else None
    return fact is not None and found is not None and str(fact.value).upper() == found.group(2).upper()


def has(case: Case, change: Change) -> bool:
    """Whether a launch has a change already."""
    return all(has_step(case.launch, step) for step in change)


def text_of(change: Change) -> str:
    """A change in words."""
    return " and ".join(step_text(step) for step in change)


def how(change: Sequence[FixStep]) -> str:
    """A change as the manner of a relaunch: `with --a 1 and --b`, `without --c and with --d`."""
    sets = [step_text(s) for s in change if s.op != "remove"]
    outs = [step_text(s) for s in change if s.op == "remove"]
    return " and ".join([*outs, *([f"with {' and '.join(sets)}"] if sets else [])])


def command_with(command: str, step: FixStep) -> str:
    """The launch command with one flag or environment variable changed, by the editor that replay uses, every other
    byte as it was; "" where it cannot be edited safely."""
    from forensics.replay.edits import Change as Edited
    from forensics.replay.edits import change_command

    value = step.value or (None if step.kind == "flag" else "")
    try:
        return change_command(command, [Edited(step.kind, step.op, step.name, value)])
    except ReplayError:
        return ""
