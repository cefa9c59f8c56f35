"""Failures of one launch: faults folded, placed, ordered; the first one named; the ending told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from forensics.engine.table import EventTable
from forensics.schema.block import Block
from forensics.schema.launch import STAGES, Failure, Launch
from forensics.schema.rank import Rank
from forensics.schema.signal import Rule, Signal
from forensics.timeline import arithmetic, causality, component, faults, hang, places, remarks, roles, suspects
from forensics.timeline.clock import Clock, clock_of
from forensics.timeline.ending import Ends, ending, find_ends
from forensics.timeline.episodes import Episode, fold, settle
from forensics.timeline.progress import Progress
from forensics.timeline.sharpen import name_signals, sharpen

MAX_FAILURES = 64
FURTHER_LINES = 8
_HARMS_REQUESTS = frozenset({"request-state", "kv-transfer", "circuit-open", "register"})
"""Failures of single requests, or of a way to another server: this one goes on."""
_KILLS = frozenset({"segfault", "gpu-fault", "device-assert", "native-abort", "pool-oom", "memory-leak", "bind",
                    "port-taken", "router-start", "nan-detected", "exit", "killed-by-shell"})  # fmt: skip
"""Single lines that a process does not outlive. Any other line of a server that serves is about a request, or about a
link to another process, until something says that the server died of it."""
_IN_THREAD = re.compile(r"_bootstrap_inner|^run_with_exceptions_on_timeout$")
_STANDSTILLS = frozenset({"watchdog", "collective-timeout", "health"})
_HANG_KEYS = frozenset({"watchdog", "divergence", "health"})


def find_failures(
    table: EventTable,
    blocks: tuple[Block, ...],
    launch: Launch,
    signals: Mapping[str, Signal],
    rules: Mapping[str, Rule],
) -> Launch:
    """The launch with its failures, first failure and ending. Works without any signal; signals sharpen it."""
    ends = find_ends(table, launch.rows)
    found = faults.collect(table, blocks, launch.rows)
    found = _with_standstill(table, blocks, launch, found)
    found = sharpen(table, found, signals, rules)
    faults.demote_after_stop(found, _asked_to_stop(ends))
    progress = Progress.of(table, launch.rows, launch.marks, ends.teardown)
    clock = clock_of(table, launch.rows)
    episodes = fold(table, found, progress, clock)
    settle(table, episodes, progress, _taken_down(ends))
    for episode in episodes:
        episode.stage = places.place_of(table, episode, episodes, launch.marks, launch.truncated_head, _mode(launch))
        told = component.component_of(episode.first.stated) or component.component_of(episode.first.frames)
        told = told or component.OF_KEY.get(episode.first.key.split(":")[0], "")
        episode.component = told or component.of_message(episode.first.text)
    name_signals(episodes, signals)
    first = causality.first_failure(table, episodes, ends.teardown, launch.reached == "serving", clock)
    hung = _hang_row(first) if first is not None else _stands(table, blocks, launch, progress)
    done = _finished(table, launch, ends, episodes, first, hung, clock, rules)
    return _with_astray(done, blocks) if first is not None and first.first.key in _STANDSTILLS else done


def _with_astray(launch: Launch, blocks: tuple[Block, ...]) -> Launch:
    """Who stands elsewhere in the dumped stacks is the suspect of a standstill: stronger than who printed what."""
    ranks, why = hang.astray(blocks, launch.rows)
    if not ranks:
        return launch
    told = tuple(
        replace(f, suspect_ranks=ranks[: suspects.MAX_SHOWN], suspect_why=why) if f.id == launch.first_failure else f
        for f in launch.failures
    )
    return replace(launch, failures=told)


def _asked_to_stop(ends: Ends) -> int | None:
    """Row of the orderly stop, where nothing had failed before it."""
    stop = ends.orderly
    if not len(stop) or (len(ends.sigquit) and ends.sigquit[0] < stop[0]):
        return None
    return int(stop[0])


def _mode(launch: Launch) -> str:
    """The PD role, where the launch has exactly one."""
    modes = [s for s in launch.services if s in ("prefill", "decode")]
    return modes[0] if len(set(modes)) == 1 else ""


def _with_standstill(
    table: EventTable, blocks: tuple[Block, ...], launch: Launch, found: list[faults.Fault]
) -> list[faults.Fault]:
    """Dumps that stand in different calls state a standstill, where no timeout line does."""
    if any(f.key in ("watchdog", "collective-timeout") for f in found):
        return found
    extra = hang.divergence(table, blocks, launch.rows)
    return found if extra is None else sorted([*found, extra], key=lambda f: (f.head, f.row))


def _taken_down(ends: Ends) -> bool:
    return bool(len(ends.sigquit) or len(ends.child) or len(ends.shell))


def _finished(
    table: EventTable,
    launch: Launch,
    ends: Ends,
    episodes: list[Episode],
    first: Episode | None,
    hung: int | None,
    clock: Clock,
    rules: Mapping[str, Rule],
) -> Launch:
    held = causality.assign(episodes, first, clock)
    failures = tuple(
        _failure(table, launch, episode, held[place], f"{launch.id}.F{place + 1}", episodes if episode is first else [])
        for place, episode in enumerate(episodes[:MAX_FAILURES])
    )
    chosen = next((f.id for f, e in zip(failures, episodes, strict=False) if e is first), None)
    reached = _reached(launch, first)
    fatal = _fatal(first, reached == "serving" or _is_router(launch), rules)
    told = ending(
        table,
        launch.rows,
        ends,
        reached,
        first.first.row if first is not None and fatal else None,
        hung,
        _main_died(launch, episodes),
    )
    return replace(
        launch,
        failures=failures,
        first_failure=chosen,
        reached=reached,
        ended=told.ended,
        ended_row=told.row,
        ended_why=told.why,
        notes=(*launch.notes, *remarks.of(launch, first), *([clock.note] if clock.note and first else ())),
    )


def _failure(
    table: EventTable, launch: Launch, episode: Episode, role: str, name: str, others: list[Episode]
) -> Failure:
    fault = episode.first
    reporters = suspects.reporters(episode, others, launch) if others else ()
    who: tuple[tuple[Rank, ...], str] = suspects.suspects(table, launch, episode, others) if others else ((), "")
    return Failure(
        id=name,
        role=role,
        outcome=episode.outcome,
        stage=episode.stage,
        row=fault.row,
        rows=episode.rows,
        rank=fault.rank or _torch_rank(fault, launch),
        ranks=episode.ranks,
        count=episode.count,
        mechanism=episode.mechanism,
        text=fault.text[:2000],
        signals=episode.signals,
        blocks=tuple(f.block for f in episode.faults if f.block is not None)[:256],
        component=episode.component,
        reporters=reporters,
        suspect_ranks=who[0],
        suspect_why=who[1],
        reading=arithmetic.readings(_whole(table, fault)) if role in ("root", "cascade") else (),
    )


def _torch_rank(fault: faults.Fault, launch: Launch) -> Rank | None:
    """The rank of a line that torch's C++ part stamps with its own number, `[rank2]:[E…`: that number is the
    tensor-parallel rank where one node runs tensor parallelism alone."""
    nodes = launch.facts.get("args.nnodes")
    if fault.global_rank is None or nodes is None or nodes.value not in (1, "1"):
        return None
    rank = Rank.parse(f"TP{fault.global_rank}")
    return rank if rank is not None and rank in launch.expected else None


def _whole(table: EventTable, fault: faults.Fault) -> str:
    """The message with its further lines: numbers stand below the line that states the failure."""
    if fault.source == "traceback":
        return fault.text
    below = range(fault.row, min(fault.row + FURTHER_LINES, len(table)))
    return "\n".join(
        table.text(r)
        for r in below
        if r == fault.row or (table.kind(r) in ("text", "frame-source", "message") and not table.flags[r] & 2)
    )


def _reached(launch: Launch, first: Episode | None) -> str:
    """A failure inside a stage proves that the stage was entered."""
    if first is None:
        return launch.reached
    if first.stage in STAGES:
        return places.later(launch.reached, first.stage)
    if launch.truncated_head and first.stage in ("prefill", "decode", "idle"):
        return "serving"
    return launch.reached


def _fatal(first: Episode | None, serving: bool, rules: Mapping[str, Rule]) -> bool:
    """Whether the first failure is of a kind that a process does not outlive. `serving`: the server was up (or is a
    router): then its log may simply end after a failed request."""
    if first is None or first.outcome not in ("terminal", "unresolved"):
        return False
    if first.nature not in (roles.CAUSE, roles.VICTIM) or first.first.key in _HARMS_REQUESTS:
        return False
    if not serving:
        return True
    fault = first.first
    if fault.key == "panic":
        return fault.text.startswith("thread 'main'")
    if fault.source in ("line", "rule"):
        named = [rules[name] for name in (fault.key, *first.signals) if name in rules]
        return fault.key in _KILLS or any(rule.severity == "fatal" for rule in named)
    return not any(_IN_THREAD.search(f.function) for f in fault.frames)


def _is_router(launch: Launch) -> bool:
    role = launch.facts.get("launch.role")
    return role is not None and role.value == "router"


def _hang_row(first: Episode | None) -> int | None:
    return first.last if first is not None and first.first.key in _HANG_KEYS and first.outcome != "terminal" else None


def _stands(table: EventTable, blocks: tuple[Block, ...], launch: Launch, progress: Progress) -> int | None:
    """Row of the stacks that somebody took at the end of a launch without a failure, and after which no batch ran."""
    row = hang.standing(table, blocks, launch.rows)
    return None if row is None or (progress.rows > row).any() else row


def _main_died(launch: Launch, episodes: list[Episode]) -> bool:
    """The parent's own traceback or argparse refusal at the end of a log that never served."""
    if launch.reached == "serving":
        return False
    return any(
        e.outcome != "recovered"
        and e.nature in (roles.CAUSE, roles.VICTIM)
        and e.first.source in ("traceback", "argparse")
        and e.first.rank is None
        for e in episodes
    )
