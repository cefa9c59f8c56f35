"""What replay shows: the diff, the exact command, what will be verified, progress, verdict."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TextIO

from rich.console import Console
from rich.text import Text

from forensics.output.clean import clean
from forensics.output.mask import mask
from forensics.replay.edits import Change, change_command, read_server
from forensics.replay.folder import RunFolder
from forensics.replay.live import State
from forensics.replay.plan import Plan
from forensics.replay.preflight import Finding, nodes_of
from forensics.replay.probe import Load
from forensics.replay.run import Outcome
from forensics.replay.verify import Judgement

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
        self._last = ""
        self._pace: dict[tuple[str, str], tuple[float, int]] = {}

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
        self.say("Command (+inserted+ words, -removed- words):")
        self.console.print(self._diff(plan))
        self.say("Exact command to run:")
        self.out.write(mask(plan.after) + "\n")
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

    def _diff(self, plan: Plan) -> Text:
        text = Text("  ")
        for sign, part in plan.diff():
            shown = mask(part)
            body = shown.strip()
            lead = shown[: len(shown) - len(shown.lstrip())]
            if sign == "=" or not body:
                text.append(shown)
            else:
                text.append(lead)
                text.append(f"{sign}{body}{sign}", style=_STYLE[sign])
        return text

    def nodes(self, plan: Plan) -> None:
        """One command for each node; they are not run."""
        count = nodes_of(read_server(plan.after))
        self.say(f"{count} nodes: multi-node launches are planned, not run. On each node:")
        for node in range(count):
            text = change_command(plan.after, [Change("flag", "set", "--node-rank", str(node))])
            self.say(f"node {node}:")
            self.out.write(mask(text) + "\n")

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

    def progress(self, step: str, state: State) -> None:
        """One line for each change of state; on a terminal it overwrites itself."""
        line = f"{step}: {state.line()}{self._left(step, state)}"
        if line.split(", about")[0] == self._last:
            return
        self._last = line.split(", about")[0]
        if self.out.isatty():
            self.out.write(f"\r\x1b[K{line}" + ("\n" if state.failed else ""))
            self.out.flush()
        else:
            self.say(line)

    def _left(self, step: str, state: State) -> str:
        """Time left in a stage that counts (shards, graphs), from the pace since it began."""
        percent = re.search(r"(\d+) %", state.progress)
        if percent is None or state.stage not in ("load", "graph-capture"):
            return ""
        began, first = self._pace.setdefault((step, state.stage), (time.monotonic(), int(percent.group(1))))
        done = int(percent.group(1)) - first
        if done <= 0 or first + done >= 100:
            return ""
        left = (time.monotonic() - began) / done * (100 - first - done)
        return f", about {left:.0f} s left"

    def outcomes(self, outcome: Outcome, before: Outcome | None) -> None:
        if self.out.isatty():
            self.out.write("\n")
        for name, one in (("control", before), ("fixed", outcome)):
            if one is None:
                continue
            self.say(f"{name}: {clean(one.why)} ({one.seconds:.0f} s)")
            for check in one.checks:
                self.say(f"  {'ok' if check.held else 'failed'}: {check.name} ({clean(check.seen)})")

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
        if judgement.word == "fixed":
            self.say(f"Keep it: forensics kb new --from-run {folder.path}")
