"""How a launch ended: crashed, killed, stopped, hung, running, or the log simply ends."""

from __future__ import annotations

import numpy as np

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.timeline.firsts import firsts
from forensics.timeline.lookup import Rows, rows_of_shapes, within
from forensics.timeline.sieve import Needle, needle

_SIGQUIT = needle(r"[Rr]eceived sigquit|SIGQUIT received")
_STOP = needle(
    r"SIGTERM received|^Gracefully exiting"
    r"|^(?:INFO: +)?(?:Finished server process|Application shutdown complete|Shutting down)"
)
_INTERRUPT = needle(r"^(?:\^C\s*)+|^KeyboardInterrupt\b")
_SHELL_KILL = needle(r"^Killed\b|: line \d+: +\d+ Killed|\d{1,8} Killed +\S")
_TREE = needle(r"^kill_process_tree called")
_CHILD = needle(r"crashed with exit code|[Ss]cheduler (?:is dead|died)|^Exit code: ")
_LEAKED = needle(r"resource_tracker: There appear to be|resource_tracker\.py:\d+: UserWarning")
_WAITING = needle(r"^(?:INFO: +)?Waiting for application shutdown")


@frozen
class Ends:
    """Rows of the launch that tell of its end, by kind."""

    sigquit: Rows
    stop: Rows
    shell: Rows
    tree: Rows
    child: Rows
    leaked: Rows
    waiting: Rows
    interrupt: Rows

    @property
    def teardown(self) -> Rows:
        """Where the server is being taken down."""
        return np.sort(np.concatenate([self.sigquit, self.stop, self.tree, self.shell, self.interrupt]))

    @property
    def orderly(self) -> Rows:
        """Where somebody asked the server to stop: a signal, or Ctrl-C at its terminal."""
        return np.sort(np.concatenate([self.stop, self.interrupt]))


@frozen
class Ending:
    ended: str
    row: int | None
    why: str


def find_ends(table: EventTable, inside: Rows) -> Ends:
    """Rows of the launch that tell of its end."""
    first = firsts(table)

    def rows(wanted: Needle) -> Rows:
        ids = [s.id for s, _ in first.matching(wanted) if s.kind not in ("request-dump", "access", "server-args")]
        return within(rows_of_shapes(table, ids), inside)

    return Ends(
        rows(_SIGQUIT),
        rows(_STOP),
        rows(_SHELL_KILL),
        rows(_TREE),
        rows(_CHILD),
        rows(_LEAKED),
        rows(_WAITING),
        rows(_INTERRUPT),
    )


LINGER_S = 40.0
"""sglang waits five seconds, then for dumps, before it ends its own process tree."""


def _never_ended(table: EventTable, inside: Rows, ends: Ends) -> bool:
    """Lines go on for long after SIGQUIT, and nothing says that the process tree was ended."""
    if len(ends.tree) or len(ends.shell):
        return False
    a, b = table.time_of(int(ends.sigquit[0])), table.time_of(int(inside[-1]))
    return a is not None and b is not None and b - a > LINGER_S


def _child_alone(ends: Ends) -> bool:
    """One process was interrupted and no other: the parent reports it as dead and was not asked to stop itself
    (Ctrl-C at a terminal reaches every process, and uvicorn says that it shuts down)."""
    return (
        not len(ends.stop)
        and len(ends.interrupt) == 1
        and len(ends.child) > 0
        and len(ends.sigquit) > 0
        and ends.interrupt[0] < ends.child[0]
    )


def ending(
    table: EventTable,
    inside: Rows,
    ends: Ends,
    reached: str,
    fatal: int | None,
    hang_row: int | None,
    main_died: bool,
) -> Ending:
    """`fatal`: the row of a failure that the server did not survive; `hang_row`: a line that reports a standstill;
    `main_died`: the parent process raised or refused its arguments."""
    last = int(inside[-1])
    stop = ends.orderly
    if (
        len(stop)
        and not (len(ends.sigquit) and ends.sigquit[0] < stop[0])
        and not (len(ends.child) and ends.child[0] < stop[0])
        and not (not len(ends.stop) and fatal is not None and fatal < stop[0])
        and not _child_alone(ends)
    ):
        by_hand = len(ends.interrupt) and ends.interrupt[0] == stop[0]
        why = "stopped by the user (Ctrl-C)" if by_hand else "it was asked to stop and did"
        return Ending("stopped", int(stop[0]), why)
    if len(ends.sigquit) and _never_ended(table, inside, ends):
        return Ending("hung", int(ends.sigquit[-1]), "the parent began to take the server down and never finished")
    if len(ends.sigquit):
        return Ending("crashed", int(ends.sigquit[0]), "a child failed and the parent took the server down (SIGQUIT)")
    if len(ends.child):
        return Ending("crashed", int(ends.child[0]), "a child process died")
    if main_died:
        return Ending("crashed", last, "the parent process ended with an error")
    if len(ends.waiting) and int(ends.waiting[-1]) >= last - 1 and not len(ends.tree):
        return Ending("hung", int(ends.waiting[-1]), "the HTTP server gave up, and the process never ended")
    if hang_row is not None and not len(ends.tree):
        return Ending("hung", hang_row, "a standstill is reported and nothing follows")
    if fatal is not None:
        return Ending("crashed", last, "a failure that the server did not survive")
    if len(ends.shell):
        return Ending("killed", int(ends.shell[0]), "the shell reports a kill, and no failure comes before it")
    if len(ends.tree):
        return Ending("stopped", int(ends.tree[0]), "the process tree was ended without a failure")
    if len(ends.leaked) and int(ends.leaked[-1]) >= last - 2:
        return Ending(
            "killed", int(ends.leaked[0]), "only the resource tracker outlived the server: it was killed from outside"
        )
    if reached == "serving":
        return Ending("running", None, "the log ends while it serves")
    return Ending("log-ends", last, f"the log ends during {reached}")
