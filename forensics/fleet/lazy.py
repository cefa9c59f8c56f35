"""Objects in a store that are read where somebody looks: blocks are fetched when they are asked for, and kept in a
local file with holes, so that the rest of the program sees an ordinary log."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from forensics.errors import InputError
from forensics.fleet.logs import Fetch
from forensics.fleet.objects import Storage
from forensics.fleet.remote import BLOCK, BROKEN, Limits, fetch, range_reader
from forensics.ingest.bundle import is_bundle
from forensics.ingest.inputs import open_path
from forensics.ingest.sources import Source
from forensics.ingest.spool import compression_of

STEP = 1 << 20
"""Bytes that are fetched together where a single line is asked for; neighbours that are missing, too, go along."""


@dataclass(slots=True)
class LazySource(Source):
    """A source whose file has holes; reading fills them. `known` are the numbers of the steps that are there."""

    fetch: Fetch = field(default=lambda start, stop: b"", repr=False)
    known: set[int] = field(default_factory=set, repr=False)

    def pread(self, offset: int, length: int) -> bytes:
        """As of any source. Raises InputError where the store does not give the bytes."""
        stop = min(offset + length, self.size)
        missing = [n for n in range(offset // STEP, -(-stop // STEP)) if n not in self.known]
        while missing:
            run = [n for at, n in enumerate(missing) if n == missing[0] + at and at < BLOCK // STEP]
            missing = missing[len(run) :]
            self._fill(run)
        # zero-argument super() does not work in a dataclass with slots: the class was made anew
        return Source.pread(self, offset, length)

    def read_into(self, offset: int, memory: memoryview) -> int:
        """As of any source."""
        data = self.pread(offset, len(memory))
        memory[: len(data)] = data
        return len(data)

    def _fill(self, run: list[int]) -> None:
        start, stop = run[0] * STEP, min((run[-1] + 1) * STEP, self.size)
        data = self.fetch(start, stop)
        if len(data) != stop - start:
            raise InputError(f"{self.name}: is shorter than it was", code=BROKEN, hint="run the same command again")
        os.pwrite(self.handle.fileno(), data, start)
        self.known.update(run)


def hollow(url: str, size: int, storage: Storage, target: Path, limits: Limits) -> Fetch | None:
    """Make `target` a file of the object's size that holds its head only; gives what fetches the rest. None, and the
    whole object in `target`, where it cannot be read piece by piece: a compressed log, an archive, no stated size, a
    server without ranges."""
    if not size or size > limits.spool:
        fetch(url, size, storage, target, limits)
        return None
    read = range_reader(url, storage, limits.stall)
    start = read(0, min(STEP, size))
    if len(start) != min(STEP, size):
        # a web server that knows no ranges sends everything, whatever was asked for
        fetch(url, size, storage, target, limits)
        return None
    target.write_bytes(start)
    with target.open("rb") as head:
        packed = compression_of(head.read(4)) is not None
    if packed or is_bundle(target):
        fetch(url, size, storage, target, limits)
        return None
    os.truncate(target, size)
    return read


def filled(source: Source, path: Path, read: Fetch) -> LazySource:
    """An opened hollow file as a source that fills itself."""
    source.close()
    handle = path.open("r+b", buffering=0)
    return LazySource(
        source.name, source.size, handle, source.compression, source.node, source.rotation, source.notes, read, {0}
    )


@contextmanager
def remote_source(url: str, size: int, storage: Storage, limits: Limits, scratch: str = "") -> Iterator[Source]:
    """One object, opened; its local file is gone afterwards. Raises InputError with a code as `fetch` does."""
    folder = Path(tempfile.mkdtemp(prefix="forensics-fleet-", dir=scratch or None))
    try:
        target = folder / (url.rpartition("/")[2] or "log")
        read = hollow(url, size, storage, target, limits)
        source = open_path(target)
        if read is not None:
            source = filled(source, target, read)
        try:
            yield source
        finally:
            source.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
