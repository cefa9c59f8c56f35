"""What a log proves and what it cannot tell: notes for a launch without a failure, or with its head cut off.

Which line proves what is stated by sglang's start-up order (arguments, process groups, weights, memory pool, graph
capture, start-up request).
"""

from __future__ import annotations

from collections.abc import Iterable

from forensics.schema.launch import STAGES, Launch, StageMark
from forensics.schema.rank import Rank
from forensics.timeline.behind import behind

PROVED = {
    ("config", "begin"): "the arguments were read",
    ("init", "begin"): "the rank processes run; nothing is shown about the network yet",
    ("init", "end"): "rendezvous and communicator bootstrap work",
    ("load", "begin"): "the memory-balance check passed",
    ("load", "end"): "storage and checkpoint can be read",
    ("kv-pool", "begin"): "weights are in place",
    ("kv-pool", "end"): "the static memory budget suffices",
    ("graph-capture", "begin"): "the static memory budget suffices",
    ("graph-capture", "end"): "the kernels that were captured exist for this GPU",
    ("warmup", "begin"): "the pools stand and the HTTP server starts",
    ("serving", "begin"): "the start-up request passed: prefill and one decode step work",
}
MAX_RANKS = 8


def limits(launch: Launch) -> list[str]:
    """Sentences on what is known and what is not; nothing for a failed launch whose log is complete."""
    failed = launch.first_failure is not None
    if failed and not launch.truncated_head:
        return []
    notes = [] if failed else _proved(launch)
    if launch.truncated_head:
        notes.append("not in the input: the head of the log; command, flags, release and early warnings are unknown")
    late, words = ((), "") if failed else behind(launch)
    if late:
        notes.append(f"{_names(late)} is behind: {words}")
    if not launch.expected and launch.seen:
        who = _names(launch.seen)
        notes.append(f"lines of {who} only; how many ranks there are is unknown, so none can be called missing")
    elif launch.missing:
        notes.append(f"no line of {_names(launch.missing)}: nothing is known about them")
    if not failed and launch.reached == "serving" and launch.truncated_head:
        notes.append("not shown: long or batched decode, and whether the answers are right")
    elif not failed and launch.reached != "serving" and launch.ended in ("log-ends", "running"):
        notes.append(f"not shown: anything after {launch.reached}; the end of a log is neither a crash nor a hang")
        if launch.reached == "config" and not (launch.facts or launch.marks or launch.seen):
            notes.append("is this the server's own log? `forensics coverage LOG` tells how its lines were read")
    return notes


def _proved(launch: Launch) -> list[str]:
    last = _last_mark(launch.marks)
    if last is None or (launch.reached == "serving" and not launch.truncated_head):
        return []
    words = PROVED.get((last.stage, last.edge))
    if words is None:
        return []
    ranks = [m.rank for m in launch.marks if (m.stage, m.edge) == (last.stage, last.edge) and m.rank is not None]
    who = f" on {_names(tuple(dict.fromkeys(ranks)))}" if ranks else ""
    return [f"shown{who}: {words}"]


def _last_mark(marks: Iterable[StageMark]) -> StageMark | None:
    known = [m for m in marks if m.stage in STAGES]
    return max(known, key=lambda m: (STAGES.index(m.stage), m.edge == "end", m.row), default=None)


def _names(ranks: tuple[Rank, ...]) -> str:
    shown = ", ".join(str(r) for r in ranks[:MAX_RANKS])
    return shown if len(ranks) <= MAX_RANKS else f"{shown} and {len(ranks) - MAX_RANKS} more"
