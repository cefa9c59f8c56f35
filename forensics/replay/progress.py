"""How a launch goes on: one moving line with rich on a terminal, one plain line for each change anywhere else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from forensics.output.clean import clean
from forensics.replay.live import State
from forensics.schema.launch import STAGES

COUNTED = ("load", "graph-capture")
"""Stages whose log counts what is done: shards, graphs."""


@dataclass
class Pace:
    """How fast a counting stage goes: seconds left, from when this part of it was first seen."""

    clock: Callable[[], float] = time.monotonic
    _seen: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)

    def left(self, step: str, state: State) -> float | None:
        """Seconds left in this stage; None where it does not count, has just begun or is done."""
        percent = percent_of(state)
        if percent is None or state.stage not in COUNTED:
            return None
        began, first = self._seen.setdefault((step, state.stage), (self.clock(), percent))
        done = percent - first
        if done <= 0 or percent >= 100:
            return None
        return (self.clock() - began) / done * (100 - percent)


def percent_of(state: State) -> int | None:
    """How much of the stage's work is done, where the log counts it."""
    found = re.search(r"(\d+) %", state.progress)
    return int(found.group(1)) if found else None


class Follower:
    """Shows the states of the launches of one replay."""

    def __init__(self, console: Console, pace: Pace | None = None) -> None:
        self.console = console
        self.pace = pace or Pace()
        self._last = ""
        self._bar: Progress | None = None
        self._step = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """The moving line lives inside; on anything but a terminal there is none."""
        if not self.console.is_terminal:
            yield
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[more]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as self._bar:
            yield
        self._bar = None

    def tell(self, step: str, state: State) -> None:
        """The state of a step, as often as it is known."""
        left = self.pace.left(step, state)
        eta = f"about {left:.0f} s left" if left is not None else ""
        if self._bar is not None:
            self._move(self._bar, step, state, eta)
            return
        line = clean(f"{step}: {state.line()}")
        if line != self._last:
            self._last = line
            self.console.print(f"{line}, {eta}" if eta else line, markup=False, highlight=False, soft_wrap=True)

    def _move(self, bar: Progress, step: str, state: State, eta: str) -> None:
        if step != self._step:
            for task in bar.task_ids:
                bar.remove_task(task)
            bar.add_task(step, total=100, more="")
            self._step = step
        ranks = f"{state.ranks[0]} of {state.ranks[1]} ranks" if state.ranks[1] > 1 else ""
        percent = percent_of(state) if state.stage in COUNTED else None
        more = ", ".join(part for part in (clean(state.progress), ranks, eta) if part)
        done = percent if percent is not None else 100 * _order(state.stage) / (len(STAGES) - 1)
        bar.update(bar.task_ids[-1], description=f"{step}: {state.stage}", completed=done, more=more)


def _order(stage: str) -> int:
    return STAGES.index(stage) if stage in STAGES else 0
