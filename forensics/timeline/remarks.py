"""Remarks on a launch: what its log cannot tell, and how its first failure is to be read."""

from __future__ import annotations

from forensics.schema.launch import Launch
from forensics.timeline import roles
from forensics.timeline.episodes import Episode

WAITED = "the first failing line is that of one who waited or lost a peer"
"""Begins the remark on a first failure that tells of somebody else's; it is idle where a cause is established."""


def of(launch: Launch, first: Episode | None) -> tuple[str, ...]:
    """Remarks in a fixed order; none for a whole log without a failure."""
    found: list[str] = []
    if launch.truncated_head and not any("head of the log" in note for note in launch.notes):
        found.append("the head of the log is cut: no server_args, and what came before is unknown")
    elif not launch.truncated_head and without_settings(launch):
        found.append("no server_args in the log: flags and sizes are known only where other lines tell them")
    if first is None:
        return tuple(found)
    fault = first.first
    if fault.key == "truncated":
        found.append("the trace is cut off before its exception: its header is all there is")
    if first.nature == roles.VICTIM and fault.go_to:
        found.append(f"{WAITED}: look at {fault.go_to}")
    if first.nature == roles.DEGRADED:
        found.append("a warning counts as the first failure because nothing else fails: requests are still answered")
    if first.nature == roles.WEAK:
        found.append("no line states a failure; this one only has words of trouble")
    if first.nature == roles.CLIENT:
        found.append("a request fails, the server goes on")
    if first.outcome in ("recovered", "progressed") and first.nature in (roles.CAUSE, roles.VICTIM):
        found.append("the server went on after the first failure")
    return tuple(found)


def without_settings(launch: Launch) -> bool:
    """Whether a launch shows none of its arguments although it came further, or has lost the head that had them."""
    begun = launch.truncated_head or any(m.stage != "config" for m in launch.marks)
    return begun and not any(name.startswith("args.") for name in launch.facts)
