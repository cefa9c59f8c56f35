"""Launches, stages and failures: what the timeline knows before any finding is asked."""

from __future__ import annotations

from dataclasses import field

import numpy as np
import numpy.typing as npt

from forensics.frozen import frozen
from forensics.schema.facts import Fact, VersionInterval
from forensics.schema.rank import Rank

STAGES = ("config", "init", "load", "kv-pool", "graph-capture", "warmup", "serving")
"""Start-up stages in order. Inside serving a failure's place is its phase."""
PHASES = ("prefill", "decode", "idle", "shutdown", "client", "unknown")
ENDINGS = ("crashed", "killed", "stopped", "hung", "running", "log-ends")
ROLES = ("root", "cascade", "teardown", "advice")
OUTCOMES = ("terminal", "recovered", "progressed", "unresolved")


@frozen
class StageMark:
    """A line that proves something about start-up: `stage` entered (`edge="begin"`) or finished (`edge="end"`)."""

    stage: str
    edge: str
    rank: Rank | None
    row: int
    time: float | None


@frozen
class Failure:
    """Events of one mechanism, folded over repeats and ranks.

    `row` is the line that states it; `rank` from that record's own header, else None. `mechanism` is a stable key
    (exception type and masked message, or the id of the rule that named it). `signals` are ids of rules that matched
    inside it. `component` comes from the innermost frames (model, layer, kernel library, communication, scheduler,
    tokenizer, host, config, …; "" unknown). `stage` is a stage or a phase. `reporters` are the ranks of the ranked
    errors that it leads to, in order of appearance. `reading` is what the numbers of its message say, in words.
    """

    id: str
    role: str
    outcome: str
    stage: str
    row: int
    rows: tuple[int, ...]
    rank: Rank | None
    ranks: tuple[Rank, ...]
    count: int
    mechanism: str
    text: str
    signals: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    component: str = ""
    reporters: tuple[Rank, ...] = ()
    suspect_ranks: tuple[Rank, ...] = ()
    suspect_why: str = ""
    reading: tuple[str, ...] = ()


@frozen
class Launch:
    """One life of the server inside the input.

    `rows` are its table rows (int64, ascending). `lines` are first and last line in its (first) source.
    `progress` holds the last progress seen, e.g. `("load", 0.25)`. `silences` are (rank or None, from, to) in seconds
    since the epoch. `first_failure` is an id in `failures`, None where the log shows none.
    """

    id: str
    rows: npt.NDArray[np.int64]
    sources: tuple[int, ...]
    lines: tuple[int, int]
    reached: str
    ended: str
    ended_row: int | None
    ended_why: str
    expected: tuple[Rank, ...]
    seen: tuple[Rank, ...]
    missing: tuple[Rank, ...]
    stages: dict[Rank, str]
    marks: tuple[StageMark, ...]
    facts: dict[str, Fact]
    version: VersionInterval
    failures: tuple[Failure, ...] = ()
    first_failure: str | None = None
    progress: tuple[str, float] | None = None
    silences: tuple[tuple[Rank | None, float, float], ...] = ()
    notes: tuple[str, ...] = ()
    truncated_head: bool = False
    services: tuple[str, ...] = field(default=())

    def failure(self, failure_id: str | None) -> Failure | None:
        """The failure with this id, or None."""
        return next((f for f in self.failures if f.id == failure_id), None)
