"""Which collective each rank of a process group waited in: who is in another one than the rest is the suspect.

Source: torch's ProcessGroupNCCL prints `[PG ID 2 PG GUID 3 Rank 0] Watchdog caught collective operation timeout:
WorkNCCL(SeqNum=…, OpType=…, NumelIn=…, …)`; releases before 2.4 print `[Rank 0]` alone. Collectives of a group are
numbered in order, so that the rank with the smallest number made fewer of them than the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from forensics.frozen import frozen
from forensics.late import Late
from forensics.timeline.faults import Fault

_WORK = Late(r"WorkNCCL\(SeqNum=(\d{1,18}), OpType=(\w{1,40}), NumelIn=(\d{1,18})")
_GROUP = Late(r"\[PG (?:ID )?(\d{1,6})\b")
FEW = 3
"""Ranks of a group that a majority needs."""


@frozen
class Waiting:
    """The collective that a global rank waited in."""

    rank: int
    group: str
    number: int
    what: str


def odd_one(faults: Iterable[Fault]) -> tuple[int, str] | None:
    """The one global rank that waited in another collective than most of its group, with the reason; None where all
    waited in the same one, or where it cannot be told who is odd."""
    waits = [w for w in (_waiting(f) for f in faults) if w is not None]
    groups = Counter(w.group for w in waits).most_common(1)
    if not groups:
        return None
    first = {w.rank: w for w in reversed(waits) if w.group == groups[0][0]}
    members = [first[r] for r in sorted(first)]
    return _behind(members) or _elsewhere(members)


def _waiting(fault: Fault) -> Waiting | None:
    found = _WORK.search(fault.text)
    if found is None or fault.global_rank is None:
        return None
    group = _GROUP.search(fault.text)
    what = f"{found.group(2)} of {found.group(3)} elements"
    return Waiting(fault.global_rank, group.group(1) if group else "", int(found.group(1)), what)


def _behind(members: Sequence[Waiting]) -> tuple[int, str] | None:
    """The one rank that made fewer collectives than all others."""
    low = min(w.number for w in members)
    late = [w for w in members if w.number == low]
    others = [w for w in members if w.number != low]
    if len(late) != 1 or not others:
        return None
    return late[0].rank, f"it waits in collective {low} of its group, the others in {min(w.number for w in others)}"


def _elsewhere(members: Sequence[Waiting]) -> tuple[int, str] | None:
    """The one rank that makes another collective, or one of another size, than all others."""
    counts = Counter(w.what for w in members)
    odd = [w for w in members if counts[w.what] == 1]
    if len(counts) != 2 or len(odd) != 1 or len(members) < FEW:
        return None
    usual = next(what for what, n in counts.items() if n > 1)
    return odd[0].rank, f"it waits in another collective: {odd[0].what}, the others in {usual}"
