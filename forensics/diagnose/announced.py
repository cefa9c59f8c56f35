"""What can be said of a launch of which only its end is told: the launcher learned that a process had ended, and
nothing in the log says why."""

from __future__ import annotations

from forensics.diagnose.general import General
from forensics.diagnose.grounds import FOR, Ground
from forensics.late import Late
from forensics.rulebook.case import Case

LAST_ROWS = 400
"""Rows at the end of a launch among which the announcement is looked for."""
_ANNOUNCED = Late(r"[Rr]eceived sigquit|SIGQUIT received")
_TITLE = "A process of the server ended, and its own lines are not here"
_WHY = "the launcher only announces it: the exception, the signal or the exit code of the child is missing"
_COLLECT = (
    ("the other streams and files of this launch: a trace goes to standard error", ""),
    (
        "what the kernel did to a process at that time",
        "dmesg -T | grep -iE 'killed process|segfault|xid|amdgpu' | tail",
    ),
)


def read(case: Case) -> General | None:
    """The reading of a crashed launch that shows no failure."""
    if case.launch.ended != "crashed" or case.launch.first_failure is not None:
        return None
    told = (row for row in case.launch.rows[-LAST_ROWS:].tolist() if _ANNOUNCED.search(case.table.text(row)))
    row = next(told, None)
    if row is None:
        return None
    where = (case.table.span(row),)
    ground = Ground(FOR, "weak", "what the launcher says", True, _WHY, where=where, observed=True)
    return General(_TITLE, _WHY, (ground,), _COLLECT)
