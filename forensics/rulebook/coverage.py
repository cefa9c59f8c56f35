"""What a log that does not show a signal proves: nothing happened, or nobody could have seen it."""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.rulebook.versions import lifetime_range, overlap
from forensics.schema.launch import STAGES
from forensics.schema.rank import Rank
from forensics.schema.signal import Rule

_EARLY = frozenset(STAGES) - {"serving"}
_QUIET_ROLES = frozenset({"warning", "progress", "info", "advice"})


@frozen
class Coverage:
    """`covered` False: the signal may have been there all the same; then `why` and `settle` say more. `lapsed`: this
    release does not print its message."""

    covered: bool
    why: str = ""
    settle: str = ""
    lapsed: bool = False


def coverage(case: Case, signal: str, rank: Rank | None = None) -> Coverage:
    """Whether the log would show the signal (on that rank) if it had happened."""
    found = case.memo.coverages.get(signal)
    if found is None:
        found = case.memo.coverages[signal] = _of_launch(case, signal)
    if not found.covered or rank is None or case.rules[signal].scope != "rank" or covers(case, rank):
        return found
    return Coverage(False, f"the log shows nothing of rank {rank}", f"give the log of the node that runs rank {rank}")


_COVERED = Coverage(True)


def _of_launch(case: Case, signal: str) -> Coverage:
    """Whether the launch as a whole would show the signal."""
    rule = case.rules.get(signal)
    if rule is None:
        return Coverage(False, f"there is no rule `{signal}`", "forensics kb lint")
    lifetime = lifetime_range(rule.first, rule.last) if rule.first or rule.last else ""
    if lifetime and overlap(case.launch.version, lifetime) == "outside":
        why = f"the sglang release of this launch does not print {signal} (printed by {lifetime})"
        return Coverage(False, why, "", True)
    if case.launch.truncated_head and _may_be_early(rule):
        why = f"the head of the log is cut, so {signal} may stand before it"
        return Coverage(False, why, "give the log from the launch on, without --tail or rotation")
    if rule.role == "progress" and case.launch.ended in ("log-ends", "running") and case.launch.reached != "serving":
        return Coverage(False, f"the log ends before {signal} could be expected", "give the rest of the log")
    return _COVERED


def covers(case: Case, rank: Rank) -> bool:
    """Whether any line of the launch is from this rank."""
    return any(same_rank(rank, seen) for seen in case.launch.seen)


def same_rank(one: Rank, other: Rank) -> bool:
    """Whether two labels can name one process: all axes that both carry agree, and there is such an axis."""
    if one.node and other.node and one.node != other.node:
        return False
    left, right = dict(one.axes), dict(other.axes)
    shared = left.keys() & right.keys()
    return bool(shared) and all(left[a] == right[a] for a in shared)


def _may_be_early(rule: Rule) -> bool:
    """A fault of a lost head would have ended the launch; notes, warnings and progress would not."""
    if rule.stages:
        return bool(set(rule.stages) & _EARLY)
    return rule.role in _QUIET_ROLES
