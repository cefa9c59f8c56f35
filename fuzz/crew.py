"""Slices of fuzzing over many processes, and what they came to.

Each slice is a fork that nothing shares but its board. One that dies or no longer moves is a fault of its target: the
input on its board is kept.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from slices import Board, Crash, Slice
from targets import Target

STILL = 120.0
"""Seconds of wall time without a further input after which a slice is ended."""
FILES = 8
"""Inputs that are kept at most."""
Engine = Callable[[Slice, Board, frozenset[str], Callable[[Crash], None]], None]


def _slice(engine: Engine, work: Slice, board: Board, known: frozenset[str], tell: Callable[[Crash], None]) -> None:
    """What the process of a slice does. Signals are the caller's: it ends the slice and keeps the counts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    engine(work, board, known, tell)


@dataclass(slots=True)
class _Running:
    work: Slice
    board: Board
    process: BaseProcess
    pipe: Connection
    runs: int = 0
    moved: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Tally:
    """Counts of all slices that ended, and the smallest input of every fault."""

    groups: dict[str, list[str]]
    runs: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    crashes: dict[str, Crash] = field(default_factory=dict)

    def table(self, running: list[_Running]) -> str:
        """A Markdown table: one row a group, with the slices that still run counted in."""
        runs, seconds = dict(self.runs), dict(self.seconds)
        for each in running:
            count, spent, _ = each.board.read()
            name = each.work.target.name
            runs[name], seconds[name] = runs.get(name, 0) + count, seconds.get(name, 0.0) + spent
        lines = ["| group | targets | inputs | CPU seconds | crashes |", "|---|---|---|---|---|"]
        for group, names in self.groups.items():
            found = sum(crash.target in names for crash in self.crashes.values())
            count, spent = sum(runs.get(n, 0) for n in names), sum(seconds.get(n, 0.0) for n in names)
            lines.append(f"| {group} | {', '.join(names)} | {count:,} | {spent:,.0f} | {found} |")
        total = f"| all | | {sum(runs.values()):,} | {sum(seconds.values()):,.0f} | {len(self.crashes)} |"
        return "\n".join([*lines, total])


def plan(targets: list[Target], seconds: dict[str, float], jobs: int, seed: int) -> Iterator[Slice]:
    """Slices in rounds over all targets, so that time that runs out is missing everywhere alike.

    `seconds` is CPU time for each target. Slices are short enough that no processor waits long for the last one.
    """
    longest = min(120.0, max(15.0, sum(seconds.values()) / jobs / 16))
    left, number = dict(seconds), seed * 100_000
    while any(left.values()):
        for target in sorted(targets, key=lambda t: -left[t.name]):
            if left[target.name] > 0:
                # what would remain as a tiny slice is done with this one
                share = left[target.name] if left[target.name] < 1.5 * longest else longest
                left[target.name] -= share
                yield Slice(target, share, number)
                number += 1


class Crew:
    """At most `jobs` slices at a time. `report` gets the table every minute, `folder` the inputs of faults."""

    def __init__(self, engine: Engine, jobs: int, tally: Tally, folder: Path, report: Callable[[str], None]) -> None:
        self._engine, self._jobs, self.tally, self._folder, self._report = engine, jobs, tally, folder, report
        self._running: list[_Running] = []
        self._known: set[str] = set()

    def work(self, slices: Iterator[Slice], until: float) -> None:
        """All slices, or as many as wall time allows (`until`: time.monotonic())."""
        told, more = time.monotonic(), True
        while (more or self._running) and time.monotonic() < until:
            while more and len(self._running) < self._jobs:
                one = next(slices, None)
                more = one is not None
                if one is not None:
                    self._start(one)
            wait([r.pipe for r in self._running] + [r.process.sentinel for r in self._running], 1.0)
            self._look()
            if time.monotonic() - told > 60:
                told = time.monotonic()
                self._report(self.table())

    def table(self) -> str:
        """The table as it is now."""
        return self.tally.table(self._running)

    def stop(self) -> None:
        """End what runs; its counts stay."""
        for each in list(self._running):
            self._listen(each)
            each.process.kill()
            each.process.join()
            self._count(each)

    def _start(self, one: Slice) -> None:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        board = Board()
        context = multiprocessing.get_context("fork")
        process = context.Process(target=_slice, args=(self._engine, one, board, frozenset(self._known), theirs.send))
        process.start()
        theirs.close()
        self._running.append(_Running(one, board, process, ours))

    def _look(self) -> None:
        now = time.monotonic()
        for each in list(self._running):
            self._listen(each)
            runs, _, data = each.board.read()
            if runs != each.runs:
                each.runs, each.moved = runs, now
            dead = not each.process.is_alive()
            if not dead and now - each.moved > STILL + each.work.seconds * (self._engine.__name__ == "with_atheris"):
                each.process.kill()
                each.process.join()
                self._crash(Crash(each.work.target.name, f"{each.work.target.name} stands still", "no progress", data))
                dead = True
            elif dead and each.process.exitcode not in (0, -signal.SIGTERM):
                words = f"the process ended with {each.process.exitcode}"
                self._crash(Crash(each.work.target.name, f"{each.work.target.name}: {words}", words, data))
            if dead:
                self._listen(each)
                self._count(each)

    def _listen(self, each: _Running) -> None:
        try:
            while each.pipe.poll():
                self._crash(each.pipe.recv())
        except (EOFError, OSError):
            pass

    def _count(self, each: _Running) -> None:
        name = each.work.target.name
        runs, seconds, _ = each.board.read()
        self.tally.runs[name] = self.tally.runs.get(name, 0) + runs
        self.tally.seconds[name] = self.tally.seconds.get(name, 0.0) + seconds
        self._running.remove(each)
        each.pipe.close()

    def _crash(self, crash: Crash) -> None:
        """Keep the smallest input of each fault; the first of a kind is told at once."""
        before = self.tally.crashes.get(crash.signature)
        if before is None:
            self._known.add(crash.signature)
            self._report(f"CRASH {crash.target}: {crash.signature}\n{crash.text}")
        elif len(before.data) <= len(crash.data):
            return
        self.tally.crashes[crash.signature] = crash
        number = list(self.tally.crashes).index(crash.signature)
        if number < FILES:
            self._folder.mkdir(parents=True, exist_ok=True)
            name = f"{crash.target}-{hashlib.sha256(crash.signature.encode()).hexdigest()[:8]}"
            partial = self._folder / f".{name}.{os.getpid()}"
            partial.write_bytes(crash.data)
            partial.replace(self._folder / name)
