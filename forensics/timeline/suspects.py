"""Who may be guilty: ranks that report, and ranks that are missing or deviate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from forensics.engine.table import HEADED, EventTable
from forensics.late import Late
from forensics.schema.launch import Launch
from forensics.schema.rank import Rank
from forensics.timeline import collectives, roles
from forensics.timeline.episodes import Episode
from forensics.timeline.firsts import firsts
from forensics.timeline.lookup import rows_of_shapes, within
from forensics.timeline.sieve import needle

MAX_SHOWN = 64
_CHILD = Late(r"scheduler_(?:[A-Z_]*?)(\d+)\b")
_UNBALANCED = Late(r"memory capacity is unbalanced")
_JOINED = Late(r"(\d{1,6})/(\d{1,6}) clients joined")
_BATCH = needle(r"^scheduler\.cur_batch\w*\.batch_size\(\)=(\d+)")
PEER = Late(
    r"(?:[Rr]ead|[Ww]rite) error (\[[0-9A-Fa-f.:]{2,45}\]:\d{1,5})"
    r"|Connection (?:closed|reset) by (?:remote )?peer (\[[0-9A-Fa-f.:]{2,45}\]:\d{1,5})"
    r"|failed on SocketImpl\(.{0,200}?remote=(\[[^\]]{1,80}\]:\d{1,5})"
)
"""A lost peer that the message names by its address: the rank that reports it is the one that was still there."""
_OF_REQUESTS = frozenset({"register", "kv-transfer"})
"""What a rank reports of its requests' other side: a rank without such a line is no suspect for it."""
_ONLY_SOME = 0.5
"""Silent ranks are suspects only where they are at most this share of all."""

Suspects = tuple[tuple[Rank, ...], str]
NOBODY: Suspects = ((), "")


def reporters(episode: Episode, others: list[Episode], launch: Launch) -> tuple[Rank, ...]:
    """Ranks of the ranked errors that the first failure leads to (its own first), in order of appearance."""
    found: list[tuple[int, Rank]] = []
    for other in others:
        if other.nature in (roles.CAUSE, roles.VICTIM, roles.DEGRADED) and other.first.head >= episode.first.head:
            found += [(f.head, r) for f in other.faults for r in (f.ranks or _by_number(launch, f.global_rank))]
    own = [r for f in episode.faults for r in (f.ranks or _by_number(launch, f.global_rank))]
    return tuple(dict.fromkeys([*own, *(r for _, r in sorted(found, key=lambda p: p[0]))]))[:MAX_SHOWN]


def suspects(table: EventTable, launch: Launch, episode: Episode, others: list[Episode]) -> Suspects:
    """Missing or deviating ranks behind the first failure, with the reason; nobody where the log gives no ground."""
    fault = episode.first
    every = launch.expected or launch.seen
    if fault.key == "divergence":
        return (tuple(r for r in episode.ranks), fault.go_to)
    odd = collectives.odd_one(episode.faults) if fault.key == "collective-timeout" else None
    if odd is not None:
        number, why = odd
        return (_by_number(launch, number), why if every else f"global rank {number}: {why}")
    if fault.key == "collective-timeout" and not every:
        return (), _missing_number(episode)
    if fault.source == "cuda-assert" or len(every) < 2:
        return NOBODY
    if fault.key == "health":
        others = [o for o in others if o.first.key not in _OF_REQUESTS]
    if launch.missing:
        return launch.missing[:MAX_SHOWN], "never reported init"
    absent = _without(every, launch.seen)
    if absent and _JOINED.search(fault.text):
        return absent[:MAX_SHOWN], "the rendezvous waited for them; the input holds no line of theirs"
    if fault.key == "load-barrier":
        return _unfinished(launch, every)
    if fault.key == "child-died":
        return _dead_child(fault.text, every)
    held = _odd_batch(table, launch) if fault.key == "watchdog" else NOBODY
    if held[0]:
        return held
    spoke = reporters(episode, [episode] if fault.key == "collective-timeout" else others, launch)
    if episode.nature == roles.VICTIM:
        return _silent(every, spoke, fault.key, launch)
    if _UNBALANCED.search(fault.text):
        return _silent(every, spoke, "unbalanced", launch)
    if len(episode.ranks) == 1 and len(every) > 1:
        return episode.ranks, "only this rank states the failure"
    return NOBODY


def _missing_number(episode: Episode) -> str:
    """The global ranks without a timeout line between those that have one, where the log names no rank otherwise."""
    held = {f.global_rank for f in episode.faults if f.global_rank is not None}
    quiet = sorted(set(range(max(held, default=0))) - held)
    if len(held) < 3 or not quiet or len(quiet) > len(held) * _ONLY_SOME:
        return ""
    names = ", ".join(str(n) for n in quiet[:8])
    return f"global rank {names} has no timeout line while {len(held)} others have one: it came late, or left"


def _odd_batch(table: EventTable, launch: Launch) -> Suspects:
    """The ranks whose watchdog dump holds a batch of another size than most others'."""
    dumped = rows_of_shapes(table, (s.id for s, _ in firsts(table).matching(_BATCH)))
    sizes: dict[Rank, int] = {}
    for row in within(dumped, launch.rows).tolist():
        found = _BATCH.pattern.match(table.text(row))
        rank = table.rank_of(row) or (table.rank_of(row - 1) if row and table.flags[row - 1] & HEADED else None)
        if found and rank is not None:
            sizes[rank] = int(found.group(1))
    usual = Counter(sizes.values()).most_common(2)
    if len(usual) < 2 or usual[0][1] <= len(sizes) / 2:
        return NOBODY
    odd = tuple(r for r, size in sizes.items() if size != usual[0][0])
    return odd[:MAX_SHOWN], f"a batch of {sizes[odd[0]]} where most ranks hold {usual[0][0]}"


ELSEWHERE = "the input holds no line of these (other nodes?)"
_SILENT_WHY = {
    "collective-timeout": "no timeout line while the other ranks of the group have one",
    "peer-lost": "the peer: it states no failure of its own, the others lost the connection to it",
    "peer-wait": "the others waited for it",
    "watchdog": "no watchdog line while other ranks have one: it made no step at all, or the others wait for it",
    "health": "silent when the health check failed",
    "unbalanced": "the speaker measured its own GPU as free: another one has less",
}


def _silent(every: tuple[Rank, ...], spoke: tuple[Rank, ...], key: str, launch: Launch) -> Suspects:
    """Ranks that do not report. Where whole ranks have no line in the input at all, those are named."""
    quiet = _without(every, spoke)
    here = _among(quiet, launch.seen)
    seen = len(every) - (len(quiet) - len(here))
    if not spoke or not quiet or (len({r.node for r in launch.seen}) > 1 and key == "unbalanced"):
        return NOBODY
    if len(here) < len(quiet) and len(here) <= seen * _ONLY_SOME:
        away = _without(quiet, here)
        return away[:MAX_SHOWN], f"the ranks here report; {ELSEWHERE}"
    if len(here) > max(1, int(seen * _ONLY_SOME)):
        return NOBODY
    return here[:MAX_SHOWN], _SILENT_WHY.get(key, "silent while the others report")


def _unfinished(launch: Launch, every: tuple[Rank, ...]) -> Suspects:
    done = {m.rank for m in launch.marks if m.stage == "load" and m.edge == "end" and m.rank is not None}
    late = _without(every, done)
    here = _among(late, launch.seen)
    if here and len(late) < len(every):
        return here[:MAX_SHOWN], "no `Load weight end` while the others have one"
    if late and len(late) < len(every):
        return late[:MAX_SHOWN], f"all ranks here finished loading; {ELSEWHERE}"
    slow = max(
        (m for m in launch.marks if m.rank in done and m.stage == "load" and m.edge == "end" and m.time),
        key=lambda m: m.time or 0.0,
        default=None,
    )
    return ((slow.rank,), "the last to finish loading") if slow is not None and slow.rank is not None else NOBODY


def _dead_child(text: str, every: tuple[Rank, ...]) -> Suspects:
    match = _CHILD.search(text)
    if match is None or int(match.group(1)) >= len(every):
        return NOBODY
    return (every[int(match.group(1))],), "its process died"


def _by_number(launch: Launch, number: int | None) -> tuple[Rank, ...]:
    """The rank with a global number, where the launch is one replica (pipeline stages outermost)."""
    if number is None:
        return ()
    every = sorted(launch.expected or launch.seen, key=lambda r: (r.axis("PP") or 0, r.axis("TP") or 0))
    places = {(r.axis("PP") or 0, r.axis("TP") or 0) for r in every}
    return (every[number],) if number < len(every) == len(places) else ()


def _without(ranks: Iterable[Rank], others: Iterable[Rank]) -> tuple[Rank, ...]:
    """The ranks whose label none of the others has, whatever the node."""
    held = {r.axes for r in others}
    return tuple(r for r in ranks if r.axes not in held)


def _among(ranks: Iterable[Rank], others: Iterable[Rank]) -> tuple[Rank, ...]:
    """The ranks whose label one of the others has."""
    held = {r.axes for r in others}
    return tuple(r for r in ranks if r.axes in held)
