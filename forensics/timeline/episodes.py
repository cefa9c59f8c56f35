"""Folding: faults of one mechanism over repeats and ranks, split where the server went on in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from forensics.engine.table import EventTable
from forensics.schema.rank import Rank
from forensics.timeline import roles
from forensics.timeline.clock import BY_POSITION, Clock
from forensics.timeline.faults import MAX_ROWS, Fault
from forensics.timeline.progress import SETTLED_S, Progress

SPLIT_S = 60.0
"""Repeats further apart than this, with progress between, are another episode."""
MAX_EPISODES = 8
LONG_S = 60.0
"""Batches of the same replica this long after a scheduler's trace: it did not die, or was started anew."""


@dataclass(slots=True)
class Episode:
    """Faults of one mechanism that belong together; the first of them states the failure."""

    faults: list[Fault]
    nature: str
    mechanism: str
    outcome: str = "unresolved"
    stage: str = "unknown"
    component: str = ""
    signals: tuple[str, ...] = ()
    rows: tuple[int, ...] = field(default=())
    last: int = 0

    @property
    def first(self) -> Fault:
        return self.faults[0]

    @property
    def count(self) -> int:
        return sum(f.count for f in self.faults)

    @property
    def ranks(self) -> tuple[Rank, ...]:
        return tuple(dict.fromkeys(r for f in self.faults for r in f.ranks))


def fold(table: EventTable, faults: list[Fault], progress: Progress, clock: Clock = BY_POSITION) -> list[Episode]:
    """Episodes in the order in which they begin."""
    for fault in faults if clock.moved else ():
        _first_by(clock, table, fault)
    groups: dict[tuple[str, str], list[Fault]] = {}
    for fault in faults:
        groups.setdefault((fault.nature, fault.mechanism), []).append(fault)
    episodes: list[Episode] = []
    for (nature, mechanism), members in groups.items():
        for part in _split(table, members, progress, clock):
            alone = len(part) == 1 and part[0].source == "line"  # its rows are in order
            rows = part[0].rows if alone else sorted({r for f in part for r in f.rows})
            last = max(f.rows[-1] for f in part)
            episodes.append(Episode(part, nature, mechanism, rows=tuple(rows[:MAX_ROWS]), last=last))
    return sorted(episodes, key=lambda e: (clock.of(e.first.head), e.first.row))


def _first_by(clock: Clock, table: EventTable, fault: Fault) -> None:
    """A flood that several nodes print is stated by the earliest of its lines."""
    if fault.source not in ("line", "rule") or len(fault.rows) < 2:
        return
    first = min(fault.rows, key=clock.of)
    if first != fault.row:
        fault.row = fault.head = first
        fault.rank, fault.text = table.rank_of(first), table.text(first).strip()


def _split(table: EventTable, members: list[Fault], progress: Progress, clock: Clock) -> list[list[Fault]]:
    pieces = [piece for fault in members for piece in _unfold(table, fault, progress)]
    pieces.sort(key=lambda f: clock.of(f.head))
    parts: list[list[Fault]] = [[pieces[0]]]
    for before, fault in pairwise(pieces):
        if len(parts) < MAX_EPISODES and _went_on(table, before.rows[-1], fault.head, progress, fault.rank):
            parts.append([fault])
        else:
            parts[-1].append(fault)
    return parts


def _unfold(table: EventTable, fault: Fault, progress: Progress) -> list[Fault]:
    """A folded flood of single lines, cut where the server worked for a while between two of them."""
    if fault.source != "line" or len(fault.rows) < 2:
        return [fault]
    rows = np.array(fault.rows)
    wide = np.flatnonzero(np.diff(table.time[rows]) > SPLIT_S)[: MAX_EPISODES * 4]
    cuts = [int(i) + 1 for i in wide.tolist() if _went_on(table, int(rows[i]), int(rows[i + 1]), progress, None)][
        : MAX_EPISODES - 1
    ]
    if not cuts:
        return [fault]
    edges = [0, *cuts, len(rows)]
    return [_piece(table, fault, rows[a:b], b == len(rows)) for a, b in pairwise(edges)]


def _piece(table: EventTable, fault: Fault, rows: np.ndarray, last: bool) -> Fault:
    indices = dict.fromkeys(table.rank[rows].tolist())
    first = int(rows[0])
    hidden = fault.count - len(fault.rows) if last else 0
    return Fault(
        first,
        first,
        table.rank_of(first),
        fault.nature,
        fault.mechanism,
        table.text(first).strip(),
        tuple(rows.tolist()),
        len(rows) + hidden,
        tuple(table.ranks[i] for i in indices if i >= 0),
        None,
        (),
        fault.key,
        None,
        "line",
        fault.go_to,
    )


def _went_on(table: EventTable, low: int, high: int, progress: Progress, rank: Rank | None) -> bool:
    a, b = table.time_of(low), table.time_of(high)
    if a is None or b is None or b - a <= SPLIT_S:
        return False
    return progress.after(low, a, rank, until=high)


LASTS = ("ailed to register to bootstrap server", "ailed to connect to bootstrap server")
"""A prefill rank that gave up registering stays unknown to every decode server, however well its warm-up goes: that
one is answered by a fake peer."""


def settle(table: EventTable, episodes: list[Episode], progress: Progress, crashed: bool) -> None:
    """Set outcomes: terminal, recovered (once, then went on), progressed (repeated, went on), unresolved."""
    for episode in episodes:
        fault = episode.first
        if episode.nature in (roles.TEARDOWN, roles.ADVICE):
            episode.outcome = "terminal" if crashed else "unresolved"
            continue
        dead = fault.source == "traceback" and episode.nature == roles.CAUSE and _in_scheduler(fault)
        falling = progress.stop(fault.head) <= episode.last  # repeats while it is being taken down prove nothing
        settled = LONG_S if dead else SETTLED_S
        lasts = fault.key == "register" and any(words in fault.text for words in LASTS)
        if (
            not falling
            and not lasts
            and progress.after(episode.last, table.time_of(episode.last), fault.rank, settled=settled)
        ):
            episode.outcome = "recovered" if episode.count == 1 else "progressed"
        elif crashed or dead:
            episode.outcome = "terminal"
        else:
            episode.outcome = "unresolved"


def _in_scheduler(fault: Fault) -> bool:
    return any(f.function == "run_scheduler_process" for f in fault.frames)
