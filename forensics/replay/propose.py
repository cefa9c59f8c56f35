"""What is to be tried: the changes that the user names, or those of the report's hypotheses, as plans in order."""

from __future__ import annotations

from forensics.analysis import analyze
from forensics.diagnose.fill import suggested
from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.replay.base import Base
from forensics.replay.config_file import ConfigFile
from forensics.replay.edits import Change
from forensics.replay.plan import Plan, make_plan
from forensics.replay.request import Request
from forensics.replay.steps import alternatives, changes_of, left_open, said
from forensics.schema.options import Options
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report
from forensics.timeline.catalog import catalog


@frozen
class Proposer:
    """Makes plans over one base command. `config` is its `--config` file where it was read."""

    request: Request
    base: Base
    launch: LaunchInfo | None
    config: ConfigFile | None

    def plans(self) -> list[Plan]:
        """One plan, or with `--ladder` one for each runnable alternative of each hypothesis, best first. Raises
        ReplayError where there is nothing that replay can apply."""
        if self.request.fixes:
            changes = [Change.parse(text) for text in self.request.fixes]
            return [self.plan(changes, self._named_by(changes))]
        if self.launch is None:
            raise ReplayError(
                "there is no log to take a fix from", hint="say what to change with --fix 'set --flag=value'"
            )
        chosen = self._hypotheses(self.launch)
        plans: list[Plan] = []
        for hypothesis in chosen:
            if not self.request.ladder:
                _refuse_open(hypothesis, self.launch)
            plans += self._plans_of(hypothesis, self.launch)
            if plans and not self.request.ladder:
                break
        if plans:
            return plans
        by_hand = [line for h in chosen for line in changes_of(h, self.launch)[1]]
        steps = "".join(f"\n  {line}" for line in by_hand)
        raise ReplayError(
            f"no hypothesis has a fix that replay can apply{':' if steps else ''}{steps}",
            hint="do it by hand, or name a change with --fix 'set --flag=value'",
        )

    def plan(
        self, changes: list[Change], hypothesis: HypothesisInfo | None = None, by_hand: tuple[str, ...] = ()
    ) -> Plan:
        """One plan over this base."""
        return make_plan(
            self.base, changes, by_hand=by_hand, hypothesis=hypothesis, allowed_env=self.request.allow_env,
            config=self.config,
        )  # fmt: skip

    def _named_by(self, changes: list[Change]) -> HypothesisInfo | None:
        """The hypothesis whose fix the user typed by hand: its verdict is then one about that hypothesis."""
        if self.launch is None:
            return None
        for hypothesis in self.launch.hypotheses:
            if any(set(changes) == set(one) for one in alternatives(hypothesis, self.launch)):
                return hypothesis
        return None

    def _hypotheses(self, launch: LaunchInfo) -> list[HypothesisInfo]:
        live = [h for h in launch.hypotheses if h.verdict != "ruled-out"]
        if self.request.hypothesis is None:
            if not live:
                raise ReplayError(
                    "the report has no hypothesis about this log",
                    hint="see `forensics analyze`; say what to change with --fix 'set --flag=value'",
                )
            return live
        found = [h for h in launch.hypotheses if self.request.hypothesis in (h.id, h.finding)]
        if not found:
            known = ", ".join(f"{h.id} ({h.finding})" for h in live) or "none"
            raise ReplayError(f"no hypothesis {self.request.hypothesis}", hint=f"the report has: {known}")
        return found

    def _plans_of(self, hypothesis: HypothesisInfo, launch: LaunchInfo) -> list[Plan]:
        changes, by_hand = changes_of(hypothesis, launch)
        sets = alternatives(hypothesis, launch) if self.request.ladder else [changes]
        plans = []
        for one in sets:
            if not one:
                continue
            try:
                plans.append(self.plan(one, hypothesis, tuple(by_hand)))
            except ReplayError:
                if not self.request.ladder:
                    raise
        return plans


def _refuse_open(hypothesis: HypothesisInfo, launch: LaunchInfo) -> None:
    """Nobody but the user can name a value that the best change leaves open, and the next best is not tried instead."""
    step = left_open(hypothesis)
    if step is None:
        return
    fact = launch.facts.get(f"args.{catalog().dest(step.name)}") if step.kind == "flag" else None
    text = launch.first_failure.text if launch.first_failure else ""
    value = suggested(step.name, step.value or "", fact.value if fact else None, text)
    raise ReplayError(
        f"the fix leaves a value to you: {said(step)}",
        hint=f"name it: --fix 'set {step.name}={'…' if value is None else value}'; "
        "--ladder tries the changes that leave nothing open",
    )


def analysis_of(request: Request) -> Report | None:
    """The report about the failing log; None without one."""
    if not request.logs:
        return None
    return analyze(list(request.logs), Options(symptom=request.symptom, kb=request.kb, history=request.history))
