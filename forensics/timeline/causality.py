"""Which failure came first, and what the others are to it.

Order: causal role, then time; never loudness or count. A victim's sentence (it waited, or lost a peer) counts only
where nothing in the same episode states a cause. A fault that the server survived is not the cause of a later death.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.engine.table import EventTable
from forensics.timeline import roles
from forensics.timeline.clock import BY_POSITION, Clock
from forensics.timeline.episodes import Episode
from forensics.timeline.lookup import Rows

SURVIVED = ("recovered", "progressed")


def first_failure(
    table: EventTable,
    episodes: Sequence[Episode],
    teardown: Rows,
    served: bool = False,
    clock: Clock = BY_POSITION,
) -> Episode | None:
    """The episode that states the first real failure, or None where the log shows none. `episodes` are in the order of
    events, which `clock` gives."""
    open_ones = [
        e for e in episodes if e.outcome in ("terminal", "unresolved") and e.nature in (roles.CAUSE, roles.VICTIM)
    ]
    survived = [e for e in episodes if e.outcome in SURVIVED and not _passed(e)]
    if open_ones:
        found = _earliest(table, open_ones, teardown, clock)
        if found.first.key in LOOKS_BACK:
            return next((e for e in survived if e.nature == roles.CAUSE and _precedes(clock, e, found)), found)
        if found.first.key == "register":  # the attempts before it gave up are its beginning
            return next((e for e in survived if ATTEMPT in e.first.text and _precedes(clock, e, found)), found)
        return _near_hint(table, episodes, found, clock)
    fallen = [e for e in episodes if e.nature == roles.WEAK and e.outcome == "terminal"]
    if fallen:
        return fallen[-1]
    serving = [e for e in survived if e.nature in (roles.CAUSE, roles.VICTIM) and e.stage not in _STARTUP]
    if serving:
        # Faults of start-up that were survived come back into question: something still fails while serving.
        causes = [e for e in survived if e.nature == roles.CAUSE]
        return causes[0] if causes else serving[0]
    killed = [e for e in episodes if e.first.key == "killed-by-shell"]
    if killed and not survived and not any(e.first.key in ASKED_TO_END for e in episodes):
        return killed[0]
    degraded = [e for e in episodes if e.nature == roles.DEGRADED and not (served and e.first.key in ROUTINE_IF_SERVED)]
    if degraded:
        return degraded[0]
    client = [e for e in episodes if e.nature == roles.CLIENT and e.first.source == "traceback"]
    return next((e for e in client if e.first.key != roles.CLIENT_GONE), None)


def _passed(episode: Episode) -> bool:
    """A trouble that comes and goes by itself, seen once, with work going on behind it: no failure."""
    return episode.first.key in PASSING and episode.outcome == "recovered"


PASSING = frozenset({"link-event", "health"})
"""Troubles that come and go: a link that flaps, one health probe that waited behind a long step."""
ATTEMPT = "Prefill register attempt"
EXPLAINED_BY_HINTS = frozenset({"child-died", "kv-transfer", "warmup-failed", "exit"})
HINT_S = 10.0
ROUTINE_IF_SERVED = frozenset({"weights-missing"})
"""Warnings that many working models print: they count only where the server never came up."""
ASKED_TO_END = frozenset({"sigquit", "graceful", "kill-tree"})
"""Signs that the server itself, or somebody with a plain signal, ended it: a kill after them is the clean-up."""
LOOKS_BACK = frozenset({"kv-transfer"})
"""Victims whose cause was stated long before, and survived: a prefill server that never registered still serves."""

_STARTUP = ("config", "init", "load", "kv-pool", "graph-capture", "warmup")


def _precedes(clock: Clock, one: Episode, other: Episode) -> bool:
    return clock.of(one.first.head) < clock.of(other.first.head)


def _near_hint(table: EventTable, episodes: Sequence[Episode], victim: Episode, clock: Clock) -> Episode:
    """A line with words of trouble shortly before a bare death says more than the death."""
    if victim.nature != roles.VICTIM or victim.first.key not in EXPLAINED_BY_HINTS:
        return victim
    end = table.time_of(victim.first.head)
    for episode in episodes:
        begin = table.time_of(episode.first.head)
        close = begin is not None and end is not None and end - begin <= HINT_S
        if episode.nature == roles.WEAK and close and _precedes(clock, episode, victim):
            return episode
    return victim


def _earliest(table: EventTable, episodes: list[Episode], teardown: Rows, clock: Clock) -> Episode:
    causes = [e for e in episodes if e.nature == roles.CAUSE]
    victims = [e for e in episodes if e.nature == roles.VICTIM]
    if not causes:
        return victims[0]
    if not victims:
        return causes[0]
    cause, victim = causes[0], victims[0]
    if _precedes(clock, cause, victim):
        return cause
    # The victim spoke first. A cause that comes later still wins while the server is not yet being taken down:
    # ranks print their traces at the same time, and buffers are flushed in any order.
    ends, spoke = clock.all(teardown), clock.of(victim.first.head)
    stopped = int(ends[np.searchsorted(ends, spoke)]) if len(ends) and ends[-1] > spoke else None
    late = stopped is not None and clock.of(cause.first.head) > stopped
    a, b = table.time_of(victim.first.row), table.time_of(cause.first.row)
    far = a is not None and b is not None and b - a > 5.0
    return victim if late or far else cause


def assign(episodes: Sequence[Episode], first: Episode | None, clock: Clock = BY_POSITION) -> dict[int, str]:
    """Role of every episode by its index."""
    found: dict[int, str] = {}
    for place, episode in enumerate(episodes):
        if episode is first:
            found[place] = "root"
        elif episode.nature in (roles.TEARDOWN, roles.ADVICE):
            found[place] = roles.role_of_nature(episode.nature, False)
        elif first is None or (_precedes(clock, episode, first) and episode.outcome in SURVIVED):
            found[place] = "root" if episode.nature == roles.CAUSE else "cascade"
        else:
            found[place] = "cascade"
    return found
