"""Runs one command and measures it: wall time, CPU time and peak memory of the whole process tree."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of wall clock and CPU (user and system, children included), and peak memory in MB (proportional set size
    of the process tree, sampled, so that pages shared between forked workers count once)."""

    wall: float
    cpu: float
    memory: float
    output: str = ""


def measure(command: Sequence[str], environment: dict[str, str] | None = None, *, memory: bool = False) -> Cost:
    """Run a command to its end. A command that fails raises CalledProcessError.

    `memory`: look at the memory, too. Looking holds a lock that the command's own requests for memory wait for, so that
    times are taken in another run."""
    before = os.times()
    start = time.perf_counter()
    # An installed package has its byte code; a checkout must be allowed to keep it, too.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    peak = [0.0]
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peak, stop), daemon=True)
    if memory:
        watcher.start()
    output = process.communicate()[0].decode("utf-8", "replace")
    wall = time.perf_counter() - start
    stop.set()
    if memory:
        watcher.join()
    after = os.times()
    if process.returncode not in (0, 1):
        raise subprocess.CalledProcessError(process.returncode, list(command))
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    return Cost(wall, cpu, peak[0], output)


def best(command: Sequence[str], runs: int, environment: dict[str, str] | None = None) -> Cost:
    """Cheapest wall and CPU of several runs (others may share the machine), and the memory of one more."""
    timed = least([measure(command, environment) for _ in range(runs)])
    return Cost(timed.wall, timed.cpu, measure(command, environment, memory=True).memory, timed.output)


def least(costs: Sequence[Cost]) -> Cost:
    """Cheapest wall and CPU of several runs, highest memory."""
    return Cost(min(c.wall for c in costs), min(c.cpu for c in costs), max(c.memory for c in costs), costs[0].output)


def _watch(pid: int, peak: list[float], stop: threading.Event) -> None:
    while not stop.wait(0.05):
        peak[0] = max(peak[0], sum(_pss(p) for p in _tree(pid)) / 1024)


def _tree(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(grand for child in children for grand in _tree(int(child)))]


def _pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except (OSError, IndexError):
        pass
    return 0
