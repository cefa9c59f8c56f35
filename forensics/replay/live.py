"""The log of a running server, read while it grows by the same engine that reads finished ones."""

from __future__ import annotations

import time
from pathlib import Path

from forensics.analysis import analyze
from forensics.errors import InputError
from forensics.frozen import frozen
from forensics.output.mask_bytes import ByteMasker
from forensics.schema.launch import STAGES
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo, Report

_EVERY_S = 1.0
_LONGEST = 1 << 20
"""Bytes of an unfinished line that are held back."""


@frozen
class State:
    """`stage` reached, `ready`, ranks that reached it out of those expected, and the load's progress as text."""

    stage: str
    ready: bool
    ranks: tuple[int, int]
    progress: str
    failed: bool
    launch: LaunchInfo | None

    def line(self) -> str:
        """One line for people."""
        ranks = f", {self.ranks[0]} of {self.ranks[1]} ranks" if self.ranks[1] > 1 else ""
        more = f" ({self.progress})" if self.progress and self.stage in ("load", "graph-capture") else ""
        return f"{self.stage}{more}{ranks}"


class LiveLog:
    """Appends what arrives to a file and judges it at most once a second."""

    def __init__(self, path: Path, options: Options) -> None:
        self.path = path
        self.options = options
        self.size = 0
        self._mask = ByteMasker()
        self._rest = self._before = b""
        self.report: Report | None = None
        self._judged = -1
        self._next = 0.0
        path.touch()

    def add(self, data: bytes) -> None:
        """Append whole lines as they came, secrets masked; what is not a line yet waits for its rest."""
        self.size += len(data)
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        self._rest = rest
        self._write(whole + newline)
        if len(rest) > _LONGEST:
            self._flush()

    def _flush(self) -> None:
        """Write the line that has begun: it may be the last words of the server."""
        rest, self._rest = self._rest, b""
        self._write(rest)

    def _write(self, data: bytes) -> None:
        if data:
            *lines, last = data.split(b"\n")
            masked = b"".join(self._mask(line + b"\n") for line in lines) + (self._mask(last) if last else b"")
            with self.path.open("ab") as file:
                file.write(masked)

    def state(self, *, now: bool = False) -> State:
        """The current state; a new analysis only where bytes came and a second passed (or `now`)."""
        # A progress bar has no newline, and neither has a line whose writer died.
        if now or b"\r" in self._rest or (self._rest and self._rest == self._before):
            self._flush()
        self._before = self._rest
        if self.size > max(0, self._judged) and (now or time.monotonic() >= self._next):
            began = time.monotonic()
            self.report = self.analyze()
            self._judged = self.size
            # the server shares this machine's cores: a long log is judged less often
            self._next = time.monotonic() + max(_EVERY_S, 2 * (time.monotonic() - began))
        return read_state(self.report)

    def analyze(self) -> Report | None:
        """The report over what has arrived; None while there is nothing to read."""
        try:
            return analyze([str(self.path)], self.options)
        except InputError:
            return None


def read_state(report: Report | None) -> State:
    """What a report says about the last launch."""
    if report is None or not report.launches:
        return State("starting", False, (0, 0), "", False, None)
    launch = report.launches[-1]
    ranks = launch.ranks
    level = STAGES.index(launch.reached) if launch.reached in STAGES else 0
    there = sum(1 for s in ranks.stages.values() if s in STAGES and STAGES.index(s) >= level)
    failed = launch.first_failure is not None and launch.ended in ("crashed", "killed", "hung")
    return State(
        launch.reached, launch.reached == "serving", (there, len(ranks.expected)), launch.progress, failed, launch
    )
