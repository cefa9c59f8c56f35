"""From a hypothesis' fix to changes: which steps replay can apply, together or as alternatives, and which it cannot."""

from __future__ import annotations

from forensics.diagnose.fill import leaves_open
from forensics.replay.edits import Change
from forensics.schema.report import FixInfo, HypothesisInfo, LaunchInfo
from forensics.timeline.catalog import catalog


def changes_of(hypothesis: HypothesisInfo, launch: LaunchInfo) -> tuple[list[Change], list[str]]:
    """The first runnable alternative of a hypothesis' fix as changes, and everything else as sentences.

    Each runnable flag or environment step of a finding is an alternative that cures by itself, best first, together
    with the steps that say `with_above`.
    """
    groups = _groups(hypothesis)
    runnable = [group for group in groups if all(_applies(step) for step in group)]
    rest = [_sentence(step) for group in groups if group not in runnable for step in group]
    rest += [f"or: {' and '.join(_sentence(step) for step in group)}" for group in runnable[1:]]
    return [_translated(step, launch) for step in (runnable[0] if runnable else [])], rest


def _groups(hypothesis: HypothesisInfo) -> list[list[FixInfo]]:
    """The alternatives of a fix: a step with those that help only together with it."""
    groups: list[list[FixInfo]] = []
    for step in hypothesis.fix:
        if step.with_above and groups:
            groups[-1].append(step)
        else:
            groups.append([step])
    return groups


def _changes(step: FixInfo) -> bool:
    return step.kind in ("flag", "env") and step.op in ("set", "remove")


def _applies(step: FixInfo) -> bool:
    return _changes(step) and _concrete(step)


def is_open(step: FixInfo) -> bool:
    """Whether a step leaves its value to the reader."""
    return step.op == "set" and leaves_open(step.value)


def left_open(hypothesis: HypothesisInfo) -> FixInfo | None:
    """The step whose value is left to the reader in the best change of a fix; None where that change can be applied, or
    cannot for another reason."""
    best = next((g for g in _groups(hypothesis) if all(_changes(step) for step in g)), [])
    return next((step for step in best if is_open(step)), None)


def alternatives(hypothesis: HypothesisInfo, launch: LaunchInfo) -> list[list[Change]]:
    """Every runnable alternative of a hypothesis' fix as a change set of its own, in order."""
    groups = [group for group in _groups(hypothesis) if all(_applies(step) for step in group)]
    return [[_translated(step, launch) for step in group] for group in groups]


def _concrete(step: FixInfo) -> bool:
    if is_open(step):
        return False
    if step.op == "remove" or step.value is not None:
        return True
    return step.kind == "flag" and catalog().takes_value(step.name) is False


def _translated(step: FixInfo, launch: LaunchInfo) -> Change:
    """The step in the spelling of the launch's version: an older name where the new one is not there yet."""
    name, value = step.name, step.value
    version = launch.version.exact or launch.version.low
    if step.kind == "flag" and version:
        book = catalog()
        life = book.flag_lifetime(name)
        if life is not None and book.exists(life, version) is False:
            for old in book.renamed_from(name):
                older = book.flag_lifetime(old)
                if older is not None and book.exists(older, version):
                    name = old
                    break
    return Change(step.kind, step.op, name, value or None)


def _sentence(step: FixInfo) -> str:
    from forensics.output.fixes import fix_line

    if not _changes(step):
        return fix_line(step).lstrip("·+ ")
    if is_open(step):
        return f"{said(step)} (the value is left to you)"
    return f"remove {step.name}" if step.op == "remove" else fix_line(step).removeprefix("+ ")


def said(step: FixInfo) -> str:
    """A change as one would write it on the command line, its value as it stands."""
    joint = " " if step.kind == "flag" else "="
    return f"{step.name}{joint}{step.value}" if step.value else step.name
