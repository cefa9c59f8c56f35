"""What watch says while the server lives: one state line, and each warning once."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from forensics.output.clean import clean
from forensics.schema.report import LaunchInfo, Report
from forensics.watch.state import State, duration


class Voice:
    """Writes to `out` (standard error). On a terminal the state line is rewritten in place; elsewhere it is printed
    when the stage changes and every `every` seconds."""

    def __init__(self, out: TextIO, every: float, quiet: bool = False) -> None:
        self.out = out
        self.every = every
        self.quiet = quiet
        self.live = out.isatty()
        self._told: set[str] = set()
        self._shown = False
        self._next = 0.0

    def state(self, state: State, silent: float, now: float, changed: bool) -> None:
        """Show the state where it is time to."""
        if self.quiet or not (changed or now >= self._next):
            return
        self._next = now + (1.0 if self.live else self.every)
        text = state.line(silent)
        if self.live:
            self.out.write(f"\r\x1b[2K{text[: shutil.get_terminal_size().columns - 1]}")
            self._shown = True
        else:
            self.out.write(f"{time.strftime('%H:%M:%S')} {text}\n")
        self.out.flush()

    def say(self, text: str, key: str = "") -> None:
        """Print a line of its own; with a key only once."""
        if key and key in self._told:
            return
        self._told.add(key)
        if self._shown:
            self.out.write("\r\x1b[2K")
            self._shown = False
        self.out.write(f"{time.strftime('%H:%M:%S')} {clean(text)}\n")
        self.out.flush()

    def warn(self, found: Report, place: Callable[[int], str]) -> None:
        """Say what a judgement found on the last launch: the first failure with its best cause, and the risks.
        `place` names a line of the stream."""
        if not found.launches:
            return
        launch = found.launches[-1]
        begun = f"{launch.id}:{launch.lines[0]}"
        if launch.first_failure is not None:
            self._failure(launch, begun, place)
        for risk in launch.risks:
            where = f" ({place(risk.where[0].line)})" if risk.where else ""
            self.say(f"warning: risk: {risk.title or risk.finding} [{risk.finding}]{where}", f"{begun}:{risk.finding}")
        if launch.ended == "hung":
            self.say(f"warning: hung: {launch.ended_why}", f"{begun}:hung")

    def _failure(self, launch: LaunchInfo, begun: str, place: Callable[[int], str]) -> None:
        first = launch.first_failure
        if first is None:
            return
        who = f" on {first.rank}" if first.rank else ""
        where = place(first.where.line)
        self.say(
            f"warning: first failure during {first.stage}{who} ({where}): {first.text[:300]}",
            f"{begun}:failure:{first.where.line}",
        )
        live = [h for h in launch.hypotheses if h.verdict != "ruled-out"]
        if live:
            best = live[0]
            name = f" [{best.finding}]" if best.finding else ""
            self.say(f"  {best.verdict}: {best.title}{name}", f"{begun}:cause:{best.finding}:{best.verdict}")

    def silence(self, silent: float, state: State) -> None:
        """Say that nothing comes any more, and who is behind; once for each doubling of the time."""
        step = 1
        while step * 2 <= silent / 60:
            step *= 2
        text = f"no line for {duration(silent)}"
        key = f"silence:{step}:{state.stage}:{state.lines}"
        if state.stage == "serving":
            self.say(f"note: {text}: no requests, or it hangs", key)
            return
        behind = state.behind()
        self.say(f"warning: {text} ({state.stage or 'before any stage'}){f'; {behind}' if behind else ''}", key)
