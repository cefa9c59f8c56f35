"""Standstills: ranks whose stacks stand in different calls of one group."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.schema.block import Block, Frame
from forensics.schema.rank import Rank
from forensics.timeline import component, roles
from forensics.timeline.faults import Fault
from forensics.timeline.lookup import Rows

WAITS = re.compile(
    r"all_reduce|allreduce|broadcast|all_gather|barrier|reduce_scatter|\brecv\b|\bsend\b|synchronize|\bwait\b|all_to_all|scatter|poll"
    r"|item|tolist|cpu\b|ncclAllReduce|cudaGraphLaunch|cuGraphLaunch|^replay$"
)
_LIBRARY = re.compile(
    r"(?:^|/)(?:torch|threading|multiprocessing|contextlib|asyncio|concurrent|importlib|selectors)[/.]|<string>"
)


@frozen
class Dump:
    """The stack of one scheduler process: program functions from the event loop inwards."""

    block: int
    rank: Rank | None
    calls: tuple[str, ...]
    frames: tuple[Frame, ...]

    @property
    def place(self) -> str:
        return _named(self.calls)


def _named(calls: tuple[str, ...]) -> str:
    """The innermost call that names a feature: a private helper that only wraps the collective does not."""
    if len(calls) > 1 and calls[-1].startswith("_"):
        return calls[-2]
    return calls[-1] if calls else ""


def dumps(blocks: tuple[Block, ...], inside: Rows) -> list[Dump]:
    """Dumps of scheduler main threads among the blocks of a launch (the last of each rank)."""
    found: dict[str, Dump] = {}
    for index, block in enumerate(blocks):
        if block.kind not in ("py-spy", "faulthandler") or block.raised or not block.frames:
            continue
        at = int(np.searchsorted(inside, block.head))
        if at >= len(inside) or int(inside[at]) != block.head:
            continue
        names = [f.function for f in block.frames]
        loop = next((i for i, n in enumerate(names) if n.startswith("event_loop")), None)
        if loop is None:
            continue
        own = tuple(
            f for f in block.frames[loop + 1 :] if not _LIBRARY.search(f.file) and not component.PLUMBING.search(f.file)
        )
        calls = tuple(f.function for f in own)
        found[str(block.rank) if block.rank else f"#{index}"] = Dump(index, block.rank, calls, block.frames)
    return list(found.values())


def divergence(table: EventTable, blocks: tuple[Block, ...], inside: Rows) -> Fault | None:
    """A fault where the dumped ranks wait in different calls: one rank made a collective more than the others."""
    found = dumps(blocks, inside)
    counts = Counter(d.calls for d in found)
    if len(found) < 2 or len(counts) < 2 or all(_listens(d.frames) for d in found):
        return None
    least = min(counts.values())
    odd = [d for d in found if counts[d.calls] == least]
    if least == max(counts.values()) and len(odd) > 1:
        odd = odd[-1:] if len(found) == 2 else odd
    one = next((d for d in odd if d.rank is not None), odd[0])
    others = [d for d in found if counts[d.calls] != least]
    left_out = _listens(one.frames) and bool(others) and all(_at_work(d.frames) for d in others)
    if not left_out and not any(WAITS.search(f.function) for f in one.frames):
        return None
    most = counts.most_common(1)[0][0]
    frame = _telling(one.frames)
    ranks = tuple(d.rank for d in odd if d.rank is not None) or ((one.rank,) if one.rank else ())
    text = table.text(frame.row).strip()
    fault = Fault(
        frame.row,
        frame.row,
        one.rank,
        roles.CAUSE,
        f"divergence: {one.place} against {_named(most) or '?'}",
        text,
        tuple(sorted({d.frames[-1].row for d in found})),
        1,
        ranks,
        one.block,
        one.frames,
        "divergence",
        None,
        "dump",
    )
    fault.go_to = f"its stack stands in {one.place}, the others in {_named(most) or 'other calls'}"
    return fault


def astray(blocks: tuple[Block, ...], inside: Rows) -> tuple[tuple[Rank, ...], str]:
    """The few ranks whose dumped stack stands elsewhere than that of more than half, with where; nobody without."""
    found = [d for d in dumps(blocks, inside) if d.rank is not None and d.calls]
    counts = Counter(d.calls for d in found)
    if len(found) < 3 or len(counts) < 2:
        return (), ""
    most, times = counts.most_common(1)[0]
    if times * 2 <= len(found):
        return (), ""
    odd = [d for d in found if d.calls != most]
    ranks = tuple(d.rank for d in odd if d.rank is not None)
    return ranks, f"its stack stands in {odd[0].place}, the others in {_named(most)}"


def standing(table: EventTable, blocks: tuple[Block, ...], inside: Rows) -> int | None:
    """Row of the first of the stacks with which a launch ends, where somebody took them of schedulers at work.

    Nobody looks at the stacks of a server that goes on: with no line of the server after them they report a
    standstill. An idle loop proves nothing, and a stack that a death printed speaks for itself."""
    kinds = ("py-spy", "faulthandler")
    taken = [b for b in blocks if b.kind in kinds and not b.truncated and not b.raised and _inside(inside, b.head)]
    if not taken or not any(_at_work(b.frames) for b in taken):
        return None
    head, last = min(b.head for b in taken), max(b.rows[-1] for b in taken)
    told, end = table.time_of(head), table.time_of(int(inside[-1]))
    later = inside[int(np.searchsorted(inside, last, side="right")) :]
    if any(table.kind(int(r)) not in _LOOKING for r in later) or (told is not None and end is not None and end > told):
        return None
    return head


_LOOKING = frozenset({"py-spy", "text", "blank", "command", "shell", "faulthandler", "frame", "frame-source"})
"""Kinds of the lines that a person's terminal holds around a dump."""
_WORK = re.compile(
    r"^(?:run_batch|forward\w*|capture\w*|replay|all_reduce|process_batch\w*|prepare_\w+|load_\w+|verify)$|^nccl[A-Z]\w+"
    r"|^cuda?GraphLaunch$"
)
_IDLE = re.compile(r"^(?:on_idle|recv_requests|self_check_during_idle|process_decode_queue|_broadcast_reqs\w*)$")


def _inside(inside: Rows, row: int) -> bool:
    at = int(np.searchsorted(inside, row))
    return at < len(inside) and int(inside[at]) == row


def _at_work(frames: tuple[Frame, ...]) -> bool:
    """Whether the stack waits inside a step of the model, not in the loop that listens for requests."""
    names = [f.function for f in frames]
    waits = any(WAITS.search(n) or n == "sleep" for n in names)
    return waits and any(_WORK.search(n) for n in names) and not _listens(frames)


def _listens(frames: tuple[Frame, ...]) -> bool:
    """Whether the rank has nothing to do: one polls for requests, the others wait for what it will broadcast."""
    return any(_IDLE.search(f.function) for f in frames)


def _telling(frames: tuple[Frame, ...]) -> Frame:
    """The innermost frame of the program that calls the collective's helper: it names the feature."""
    own = [f for f in frames if not _LIBRARY.search(f.file) and not component.PLUMBING.search(f.file)]
    return own[-2] if len(own) > 1 and own[-1].function.startswith("_") else own[-1] if own else frames[-1]
