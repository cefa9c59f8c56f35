"""A fix as a changed launch command, word by word: what is to be copied, and what it changes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from difflib import SequenceMatcher

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.output.clean import clean
from forensics.schema.report import HypothesisInfo, LaunchInfo, Where

_WORDS = re.compile(r"\s+|\S+")
LONGEST = 4000
"""Characters of a command that is still worth showing twice."""


@frozen
class CommandDiff:
    """`before` is the launch command as the log states it at `where`, `after` the same with one alternative of the fix.
    `pieces` are (`=`, `-` or `+`, text): `=` and `-` join to `before`, `=` and `+` to `after`. `words` say the change.
    """

    before: str
    after: str
    pieces: tuple[tuple[str, str], ...]
    words: str
    where: Where | None = None


def command_diff(hypothesis: HypothesisInfo, launch: LaunchInfo) -> CommandDiff | None:
    """The edit that `forensics replay` would make first; None where there is none to show."""
    return next(command_diffs(hypothesis, launch), None)


def command_diffs(hypothesis: HypothesisInfo, launch: LaunchInfo) -> Iterator[CommandDiff]:
    """The edits of the alternatives of a fix, best first: none where the log states no command, the fix is not one of
    flags or variables, or the command cannot be edited safely (shell syntax, masked words)."""
    stated = launch.facts.get("launch.command")
    if stated is None or not isinstance(stated.value, str) or len(stated.value) > LONGEST:
        return
    if not any(step.kind in ("flag", "env") for step in hypothesis.fix):
        return
    from forensics.replay.base import base_command
    from forensics.replay.plan import make_plan
    from forensics.replay.steps import alternatives

    for changes in alternatives(hypothesis, launch):
        try:
            plan = make_plan(base_command(launch), changes)
            shlex.split(plan.after)
        except (ReplayError, ValueError):
            continue
        before, after = clean(plan.before), clean(plan.after)
        words = " and ".join(str(change) for change in plan.changes)
        yield CommandDiff(before, after, tuple(_pieces(before, after)), clean(words), stated.where)


def _pieces(before: str, after: str) -> Iterator[tuple[str, str]]:
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    for _, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if old[a:b] == new[c:d]:
            yield "=", "".join(old[a:b])
            continue
        for sign, part in (("-", old[a:b]), ("+", new[c:d])):
            if part:
                yield sign, "".join(part)


def same_command(one: str, other: str) -> bool:
    """Whether two commands say the same: equal words, however quoted and in whatever order, with or without `env`."""
    try:
        words = [sorted(w for w in shlex.split(text) if w != "env") for text in (one, other)]
    except ValueError:
        return one == other
    return words[0] == words[1]
