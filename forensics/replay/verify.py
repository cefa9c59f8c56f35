"""The verdict of a replay: pure functions over what the runs showed."""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.replay.run import Outcome
from forensics.schema.report import LaunchInfo, Report

WORDS = ("fixed", "passes", "not-reproduced", "still-failing", "different-failure", "inconclusive")


@frozen
class Failing:
    """What the failing launch showed, and so what the fixed one is held against."""

    finding: str | None
    mechanism: str
    stage: str
    signals: frozenset[str]
    hung: bool = False

    @classmethod
    def of(cls, launch: LaunchInfo | None) -> Failing | None:
        """The failure of a launch; None where it shows none."""
        hung = launch is not None and launch.ended == "hung"
        if launch is None or (launch.first_failure is None and not hung):
            return None
        if launch.first_failure is None:
            return cls(None, "", launch.reached, frozenset(), True)
        first = launch.first_failure
        failure = next((f for f in launch.failures if f.id == first.failure), None)
        best = next((h for h in launch.hypotheses if h.verdict != "ruled-out"), None)
        return cls(
            best.finding if best else None,
            failure.mechanism if failure else first.text,
            first.stage,
            frozenset(failure.signals if failure else ()),
            hung,
        )

    def same_as(self, other: Failing) -> bool:
        """The same failure: one mechanism, or a shared signal, or one named cause; a stage alone says nothing."""
        if self.mechanism and self.mechanism == other.mechanism:
            return True
        if self.signals & other.signals:
            return True
        return self.finding is not None and self.finding == other.finding


@frozen
class Judgement:
    """`word` is one of WORDS; `why` says it in a sentence."""

    word: str
    why: str


def focus(report: Report | None) -> LaunchInfo | None:
    """The launch that a report is about."""
    if report is None:
        return None
    found = next((x for x in report.launches if x.id == report.focus), None)
    return found or (report.launches[-1] if report.launches else None)


def failing_of(report: Report | None) -> Failing | None:
    """The failure of the launch that a report is about."""
    return Failing.of(focus(report))


def judge(before: Failing | None, fixed: Outcome, control: Outcome | None) -> Judgement:
    """The verdict over the fixed launch, given the failure of the log (or of the control) and the control's outcome.

    `control` is the unchanged command run in the same folder; without it a success is `passes`, never `fixed`.
    """
    if control is not None:
        if control.passed:
            return Judgement(
                "not-reproduced", "the unchanged command did not fail here, so nothing is proved about the fix"
            )
        if control.end == "died" or (not control.passed and control.end == "answered"):
            before = failing_of(control.report) or before
        elif not hangs_again(before, control):
            return Judgement("inconclusive", f"the control run did not come to an end: {control.why}")
    if fixed.passed:
        if control is None:
            return Judgement(
                "passes", "the changed command works; no control was run, so the change is not proved to be why"
            )
        return Judgement(
            "fixed", f"the unchanged command failed here ({control.why}) and the changed one passes beyond that point"
        )
    if hangs_again(before, fixed):
        return Judgement("still-failing", f"it hangs as before: {fixed.why}")
    if fixed.end in ("timeout", "interrupted"):
        return Judgement("inconclusive", fixed.why)
    return _failed(before, fixed)


def hangs_again(before: Failing | None, outcome: Outcome) -> bool:
    """Whether a launch ran into a time limit where the failing one had hung: the stage is the same."""
    return before is not None and before.hung and outcome.end == "timeout" and outcome.reached == before.stage


def _failed(before: Failing | None, fixed: Outcome) -> Judgement:
    after = failing_of(fixed.report)
    bad = [check for check in fixed.checks if not check.held]
    if after is None:
        if fixed.end == "died":
            return Judgement("different-failure", f"{fixed.why}, and its log states no failure")
        return Judgement("still-failing", f"the probe failed: {bad[0].name}: {bad[0].seen}" if bad else fixed.why)
    if before is not None and before.same_as(after):
        return Judgement("still-failing", f"it fails in the same way ({after.mechanism or after.stage})")
    return Judgement("different-failure", f"it fails in another way: {after.mechanism or after.stage} in {after.stage}")
