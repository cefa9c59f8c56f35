"""What can be said of a server that stands still without an error line: who is behind, and what it was at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from forensics.diagnose.general import General
from forensics.diagnose.grounds import FOR, Ground
from forensics.diagnose.standstill import last_record
from forensics.rulebook.case import Case
from forensics.schema.rank import Rank
from forensics.timeline import hang
from forensics.timeline.behind import behind
from forensics.timeline.stages import hot_lines

MAX_NAMED = 8
STOPPED_EARLIER_S = 60.0
"""A rank whose last batch lies this much before that of all others stopped while they went on."""
_PHASE = {"prefill": "a prefill", "decode": "a decode"}


def read(case: Case) -> General | None:
    """The reading of a launch without a failure that stands still (the user says so, or the stacks at its end do)."""
    if case.launch.first_failure is not None:
        return None
    for reader in (_never_came, _behind, _stacks, _at_work, _stopped_earlier, _last_batch):
        found = reader(case)
        if found is not None:
            return found
    return None


def _never_came(case: Case) -> General | None:
    absent = case.launch.missing
    if not absent:
        return None
    who = names(absent)
    why = f"{who} printed nothing, the others wait for {'it' if len(absent) == 1 else 'them'} in init"
    return General(f"{who} never came up", why, (_ground(case, why, None),), (
        (f"whether the process of {who} lives, and what it does", "ps -ef | grep sglang::scheduler"),
    ))  # fmt: skip


def _behind(case: Case) -> General | None:
    late, words = behind(case.launch)
    if not late:
        return None
    who, stage = names(late), case.launch.stages.get(late[0], case.launch.reached)
    why = f"{words}, {who} did not"
    rows = [m.row for m in case.launch.marks if m.rank == late[0]]
    return General(f"{who} is behind the others, in {stage}", why, (_ground(case, why, rows[-1] if rows else None),), (
        (f"the stacks of the process of {who} first: the others wait for it", "py-spy dump --native --pid PID"),
    ))  # fmt: skip


def _stacks(case: Case) -> General | None:
    """Stacks that all stand in one place: no rank is astray, the library or the transport below it does not return."""
    found = hang.dumps(case.blocks, case.launch.rows)
    places = Counter(d.place for d in found if d.calls)
    if len(found) < 2 or len(places) != 1 or hang.standing(case.table, case.blocks, case.launch.rows) is None:
        return None
    place = next(iter(places))
    why = f"the stacks of all {len(found)} processes stand in {place}: nobody is astray; their call does not return"
    return General(f"All ranks stand in {place}", why, (_ground(case, why, found[0].frames[-1].row),))


def _at_work(case: Case) -> General | None:
    """Start-up that was loading, compiling or capturing when the log stopped."""
    if case.launch.reached in ("warmup", "serving"):
        return None
    work = last_record(case)
    if work is None:
        return None
    return General(work.title, work.why, (_ground(case, work.why, work.row),), work.collect, work.do)


def _stopped_earlier(case: Case) -> General | None:
    """Ranks that print batches of their own, one of which stopped while the others went on."""
    last = _last_batches(case)
    stamped = [(time, rank) for rank, (time, _) in last.items() if rank is not None and not np.isnan(time)]
    times = sorted(stamped, key=lambda pair: (pair[0], str(pair[1])))
    if len(times) < 2 or times[1][0] - times[0][0] < STOPPED_EARLIER_S:
        return None
    (time, rank), (later, _) = times[0], times[1]
    phase = _PHASE[last[rank][1]]
    why = f"the last line of {rank} is {phase} batch, {later - time:.0f} s before the last ones of the others"
    return General(f"{rank} stopped while the others went on", why, (_ground(case, why, None),), (
        (f"the stacks of the process of {rank} first", "py-spy dump --native --pid PID"),
    ))  # fmt: skip


def _last_batch(case: Case) -> General | None:
    """A server that was up: which step it was in when the log stopped."""
    ends = [(time, kind, rank) for rank, (time, kind) in _last_batches(case).items() if not np.isnan(time)]
    if not ends:
        return None
    _, kind, rank = max(ends, key=lambda e: (e[0], e[1]))
    who = f" on {rank}" if rank is not None else ""
    why = f"the last batch line of the log is {_PHASE[kind]} batch{who}; nothing in the log tells which rank stands"
    return General(f"The log stops after {_PHASE[kind]} batch", why, (_ground(case, why, None),))


def _last_batches(case: Case) -> dict[Rank | None, tuple[float, str]]:
    """Time and kind of the last batch of every rank that prints batches."""
    found: dict[Rank | None, tuple[float, str]] = {}
    for kind in _PHASE:
        series = case.table.series.get(kind)
        if series is None:
            continue
        inside = hot_lines(series, case.table, case.launch.rows)
        times, ranks = series.time[inside], series.rank[inside]
        for index in np.unique(ranks).tolist():
            rank = case.table.ranks[index] if index >= 0 else None
            mine = times[ranks == index]
            time = float(np.nanmax(mine)) if not np.isnan(mine).all() else float("nan")
            if rank not in found or not time < found[rank][0]:
                found[rank] = (time, kind)
    return found


def names(ranks: Sequence[Rank]) -> str:
    """The first ranks by name, with the number of further ones."""
    shown = ", ".join(str(r) for r in ranks[:MAX_NAMED])
    return shown if len(ranks) <= MAX_NAMED else f"{shown} and {len(ranks) - MAX_NAMED} more"


def _ground(case: Case, why: str, row: int | None) -> Ground:
    where = (case.table.span(row),) if row is not None else ()
    return Ground(FOR, "weak", "where it stands", True, why, where=where, observed=True)
