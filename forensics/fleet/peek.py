"""A cheap look at the two ends of a log: when it begins and ends, whose node it is, to which job it belongs."""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from forensics.engine.scan import scan
from forensics.errors import ForensicsError, InputError
from forensics.fleet.objects import LogObject, Storage
from forensics.fleet.worker import begin_worker
from forensics.frozen import frozen
from forensics.ingest.inputs import looks_binary
from forensics.ingest.sources import Source, node_hint
from forensics.ingest.spool import compression_of, unfolded
from forensics.schema.options import Options

PEEK = 64 << 10
"""Bytes read at each end of a log."""
SHARE = 16
"""Objects that one process looks at in one go."""
_ADDRESS = re.compile(
    rb"(?:dist_init_addr['\"]?[=:] ?|--dist-init-addr[= ]|--nccl-init-addr[= ])['\"]?([\w.\-:\[\]]{3,200})"
)
_NODES = re.compile(rb"(?:nnodes['\"]?[=:] ?|--nnodes[= ])(\d{1,5})")
_NODE_RANK = re.compile(rb"(?:node_rank['\"]?[=:] ?|--node-rank[= ])(\d{1,5})")
_MODEL = re.compile(rb"model_path['\"]?[=:] ?['\"]([^'\"\n]{1,300})['\"]")


@frozen
class Peek:
    """`begin`, `end`: seconds since the epoch in the log's own clock (None: no stamp seen). `node`: from the name, else
    from the launch arguments. `nodes`: nodes of the job as its arguments state it (0 unknown). `job`: its rendezvous
    address and model, "" where none is stated. `digest` of both ends is part of what identifies the content."""

    begin: float | None = None
    end: float | None = None
    node: str | None = None
    nodes: int = 0
    job: str = ""
    digest: str = ""


def peek_all(
    objects: Sequence[LogObject], storage: Storage, stall: float, threads: int, processes: int = 1
) -> list[Peek]:
    """One peek per object, in order. Objects that cannot be read give an empty peek: the analysis states why. Threads
    wait for a store together; the stamps are work for a core, so many objects are shared out over `processes`."""
    shares = [(objects[at : at + SHARE], storage, stall, threads) for at in range(0, len(objects), SHARE)]
    if processes < 2 or len(shares) < 2:
        return list(chain.from_iterable(map(_peek_share, shares)))
    count = min(processes, len(shares))
    with ProcessPoolExecutor(count, get_context("spawn"), begin_worker, (os.getpid(),)) as pool:
        return list(chain.from_iterable(pool.map(_peek_share, shares)))


def _peek_share(share: tuple[Sequence[LogObject], Storage, float, int]) -> list[Peek]:
    objects, storage, stall, threads = share
    with ThreadPoolExecutor(max(1, threads)) as pool:
        return list(pool.map(lambda o: peek(o, storage, stall), objects))


def peek(item: LogObject, storage: Storage, stall: float = 60.0) -> Peek:
    """Look at one object."""
    try:
        head, tail = _ends(item, storage, stall)
    except (ForensicsError, OSError):
        return Peek(node=node_hint(item.name))
    digest = hashlib.sha256(len(head).to_bytes(8, "big") + head + tail).hexdigest()[:32]
    if compression_of(head):
        head, tail = unfolded(head), b""
    if not head or looks_binary(head):
        return Peek(node=node_hint(item.name), digest=digest)
    first, last = _times(head, item.name)
    if tail:
        last = _times(tail.partition(b"\n")[2], item.name)[1] or last
    nodes, rank, address, model = (_found(p, head) for p in (_NODES, _NODE_RANK, _ADDRESS, _MODEL))
    several = int(nodes or 0)
    node = node_hint(item.name) or (f"node{int(rank)}" if rank and several > 1 else None)
    return Peek(first, last, node, several, f"{address} {model}" if address and several > 1 else "", digest)


def _ends(item: LogObject, storage: Storage, stall: float) -> tuple[bytes, bytes]:
    if item.remote:
        from forensics.fleet.remote import read_ends

        return read_ends(item.location, item.size, storage, PEEK, stall)
    with Path(item.location).open("rb") as file:
        head = file.read(PEEK)
        file.seek(max(len(head), item.size - PEEK))
        return head, file.read(PEEK)


def _found(pattern: re.Pattern[bytes], data: bytes) -> str:
    match = pattern.search(data)
    return match[1].decode("utf-8", "replace") if match else ""


def _times(data: bytes, name: str) -> tuple[float | None, float | None]:
    """First and last stamp, read by the engine itself so that every wrapper and form of stamp counts."""
    if not data.strip():
        return None, None
    with tempfile.TemporaryFile(prefix="forensics-") as file:
        file.write(data)
        file.flush()
        try:
            table = scan([Source(name, len(data), cast(BinaryIO, file))], Options(processes=1, engine="numpy"))
        except InputError:
            return None, None
        times = np.concatenate([table.time, *(s.time for s in table.series.values())])
    times = times[~np.isnan(times) & (times >= 0)]
    if not len(times):
        return None, None
    low, high = float(times.min()), float(times.max())
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)
