"""Another launch as an experiment: one change to the launch's own command, as text that can be copied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from forensics.diagnose.tried import has_step, step_text
from forensics.diagnose.verdict import Judged
from forensics.rulebook.case import Case
from forensics.schema.finding import FixStep
from forensics.schema.report import NextStep
from forensics.timeline.catalog import catalog

Change = tuple[FixStep, ...]
"""Steps of a fix that are one change."""
_PYTHON = re.compile(r"(?:^|/)python[\d.]*$")
_ROUTER_LISTS = frozenset({"--worker-urls"})
"""Flags of the router that take any number of values."""


def experiment(case: Case, change: Change, judged: Sequence[Judged], settles: str) -> NextStep:
    """The relaunch with one change. `judged`: the hypotheses that it separates; `settles`: what its outcome says. Its
    command is empty where the log states none: the change alone is in the sentence already."""
    fact = case.launch.facts.get("launch.command")
    command = str(fact.value) if fact and fact.value else ""
    for step in change:
        command = command_with(command, step) if command else ""
    how = text_of(change) if change[0].op == "remove" else f"with {text_of(change)}"
    return NextStep(
        kind="experiment",
        do=f"relaunch {how} and nothing else changed",
        command=command,
        separates=[j.candidate.finding.id for j in judged],
        settles=settles,
    )


def has(case: Case, change: Change) -> bool:
    """Whether a launch has a change already."""
    return all(has_step(case.launch, step) for step in change)


def text_of(change: Change) -> str:
    """A change in words."""
    return " and ".join(step_text(step) for step in change)


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
    several = step.name in _ROUTER_LISTS or catalog().takes_several(step.name)
    for position, word in enumerate(words):
        if skip:
            skip = several and not re.match(r"-|[|&;>]|\d>", "".join(words[position + 1 : position + 2]))
            continue
        name = word.split("=", 1)[0].replace("_", "-")
        if word.startswith("--") and name == step.name.replace("_", "-"):
            following = words[position + 1] if position + 1 < len(words) else "--"
            skip = "=" not in word and not following.startswith("--")
            continue
        kept.append(word)
    if step.op == "remove":
        return kept
    values = (step.value or "").split() if several and not (step.value or "").startswith("{") else [step.value or ""]
    return [*kept, step.name, *filter(None, values)]


def _joined(words: Sequence[str]) -> str:
    return " ".join(w if re.fullmatch(r"[A-Za-z_]\w*=\S*", w) else shlex.quote(w) for w in words)
