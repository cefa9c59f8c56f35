"""What replay shows: the diff, the exact command, what will be verified, progress, verdict."""

from __future__ import annotations

import difflib
import os
import sys
from contextlib import AbstractContextManager
from typing import TextIO

from rich.console import Console
from rich.text import Text

from forensics.output.clean import clean
from forensics.output.mask import mask
from forensics.replay.edits import Change, change_command, main_spelling
from forensics.replay.folder import RunFolder
from forensics.replay.live import State
from forensics.replay.plan import Plan
from forensics.replay.preflight import Finding, nodes_of
from forensics.replay.probe import Load
from forensics.replay.progress import Follower
from forensics.replay.run import Outcome
from forensics.replay.verify import Judgement

RUN = "forensics-RUN"
"""Stands for the run's name in a dry run, where there is none yet."""
_STYLE = {"=": "", "+": "bold green", "-": "red"}


class Screen:
    """Writes to one stream; colours and a moving line only on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        color = out.isatty() and not os.environ.get("NO_COLOR")
        self.console = Console(
            file=out, highlight=False, markup=False, emoji=False, soft_wrap=True, force_terminal=color or None,
            no_color=not color,
        )  # fmt: skip
        self.follower = Follower(self.console)

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style=style))

    def plan(self, plan: Plan, load: Load, others: list[Plan], ladder: bool) -> None:
        """The dry run's text."""
        self.say(f"Base command: {clean(plan.base.origin)}", "bold")
        for note in plan.base.notes:
            self.say(f"  note: {clean(note)}")
        if plan.finding:
            self.say(f"Fix of {plan.finding}: {clean(plan.title)}", "bold")
        self.say("Changes:")
        for change in plan.changes:
            self.say(f"  {clean(str(change))}")
        shown, _ = plan.fixed.prepared(f"{RUN}/fixed.config.yaml", f"{RUN}/fixed.cid", f"FORENSICS_REPLAY_ID={RUN}")
        self.say("Command (+inserted+ words, -removed- words):")
        self.console.print(self._diff(plan, shown))
        self._config(plan)
        self.say("Exact command to run:")
        self.out.write(mask(plan.base.prologue + shown) + "\n")
        if RUN in shown:
            self.say(f"  {RUN} stands for the name of the run folder")
        self.say("To be verified:")
        self.say(
            "  the server becomes ready; fixed prompts are answered with sense (not empty, not one repeated token,"
        )
        self.say("  finite log probabilities, stable greedy answers)")
        self.say(f"  {load.count} requests of {load.tokens} tokens, {load.concurrency} at a time, and it stays alive")
        for line in plan.verify:
            self.say(f"  by hand: {clean(line)}")
        if plan.by_hand:
            self.say("Not done by replay:")
            for line in plan.by_hand:
                self.say(f"  {clean(line)}")
        if ladder and others:
            self.say("Then, while it fails and the budget lasts:")
            for number, other in enumerate(others, 2):
                self.say(f"  {number}. {', '.join(str(c) for c in other.changes)}  [{other.finding}]")

    def _config(self, plan: Plan) -> None:
        """The changed words of the `--config` file."""
        if plan.config is None or plan.changed is None:
            return
        self.say(f"Changed copy of {clean(plan.config.path)} (the file itself is not touched):")
        old, new = plan.config.text.splitlines(), plan.changed.text.splitlines()
        for line in difflib.unified_diff(old, new, n=0, lineterm=""):
            if line[:1] in "+-" and line[:3] not in ("+++", "---"):
                self.say(f"  {clean(mask(line))}", _STYLE[line[0]])

    def _diff(self, plan: Plan, after: str) -> Text:
        text = Text("  ")
        for sign, part in plan.diff(after):
            shown = mask(part)
            body = shown.strip()
            lead = shown[: len(shown) - len(shown.lstrip())]
            if sign == "=" or not body:
                text.append(shown)
            else:
                text.append(lead or (" " if text.plain.endswith("-") and sign == "+" else ""))
                text.append(f"{sign}{body}{sign}", style=_STYLE[sign])
                text.append(shown[len(shown.rstrip()) :])
        return text

    def nodes(self, plan: Plan) -> None:
        """One command for each node; they are not run."""
        count = nodes_of(plan.reads())
        self.say(f"{count} nodes: multi-node launches are planned, not run. On each node:")
        for node in range(count):
            text = change_command(plan.after, [Change("flag", "set", "--node-rank", str(node))])
            self.say(f"node {node}:")
            self.out.write(mask(plan.base.prologue + text) + "\n")
        if "--dist-init-addr" not in {main_spelling(f.name) for f in plan.reads().flags}:
            self.say("  note: no --dist-init-addr is given, and every node needs the same one")

    def agrees(self) -> bool:
        """Ask on a terminal; False anywhere else."""
        if not (sys.stdin.isatty() and self.out.isatty()):
            return False
        self.out.write("Start it now? [y/N] ")
        self.out.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def preflight(self, findings: list[Finding]) -> None:
        self.say("Preflight:")
        for finding in findings:
            self.say(f"  {clean(finding.line())}", "" if finding.ok else "red")

    def live(self) -> AbstractContextManager[None]:
        """Inside, `progress` may move a line."""
        return self.follower.shown()

    def progress(self, step: str, state: State) -> None:
        """The state of a step, as it goes on."""
        self.follower.tell(step, state)

    def outcomes(self, outcome: Outcome, before: Outcome | None) -> None:
        for name, one in (("control", before), ("fixed", outcome)):
            if one is None:
                continue
            self.say(f"{name}: {clean(one.why)} ({one.seconds:.0f} s)")
            for check in one.checks:
                self.say(f"  {'ok' if check.held else 'failed'}: {check.name} ({clean(check.seen)})")

    def least(self, changes: list[Change], known: bool) -> None:
        """What --minimise found."""
        said = "the smallest set that still works" if known else "the smallest set that was found in the budget"
        self.say(f"{said}: {', '.join(str(c) for c in changes)}")

    def tried(self, tried: list[tuple[Plan, Judgement]]) -> None:
        for plan, judgement in tried:
            self.say(f"{', '.join(str(c) for c in plan.changes)}: {judgement.word}: {clean(judgement.why)}")

    def verdict(self, judgement: Judgement, folder: RunFolder, plan: Plan | None) -> None:
        good = judgement.word in ("fixed", "passes")
        self.say(f"Verdict: {judgement.word}", "bold green" if good else "bold red")
        self.say(f"  {clean(judgement.why)}")
        if plan is not None and good:
            self.say(f"  with: {', '.join(str(c) for c in plan.changes)}")
        self.say(f"Evidence: {folder.path}")
        step = folder.read().get("step")
        if judgement.word == "different-failure" and step:
            self.say(f"A new report: forensics analyze {folder.log(step)}")
        if judgement.word == "fixed":
            self.say(f"Keep it: forensics kb new --from-run {folder.path}")
