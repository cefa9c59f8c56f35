"""One incident read by several workers at once: its logs cut into byte ranges, each range a task of its own.

A piece says where its bytes are, not what they are: each worker opens the log itself, so that no bytes of logs travel
between nodes, only tables. How a log is cut plays no part in the result (engine/worker.py): the part that comes out is
the one that a single process would have made, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import pairwise
from pathlib import Path

from forensics.engine.probe import Probe
from forensics.engine.worker import Scanned, choose_engine, cut_points, scan_range
from forensics.errors import InputError
from forensics.fleet.objects import Storage, is_url
from forensics.fleet.remote import Limits
from forensics.frozen import frozen
from forensics.ingest.inputs import open_path
from forensics.ingest.sources import Source
from forensics.schema.options import Options

MAX_PIECES = 512
"""Pieces that one log is cut into at most."""


@frozen
class Piece:
    """Bytes [start, stop) of the decompressed log at `location` (an absolute path or a URL, `size` bytes as stored),
    with all that a worker needs to scan them as one process would."""

    location: str
    size: int
    start: int
    stop: int
    probe: Probe
    wrapper: str | None
    chunk_bytes: int
    engine: str
    limits: Limits
    scratch: str = ""
    storage: Storage = field(default_factory=dict, compare=False, repr=False)


Spread = Callable[[Sequence[Piece]], list[Scanned]]
"""Runs `scan_piece` on all pieces, wherever there is room; gives what they saw in the same order."""


@frozen
class Reader:
    """`ranges` of the engine's scan for one incident: cuts its logs into pieces of about `least` bytes and hands the
    pieces of all logs out at once. `origins`: location and stored size of each source by its name; what has none there
    (a member of an archive) is scanned here."""

    spread: Spread
    origins: Mapping[str, tuple[str, int]]
    least: int
    limits: Limits
    scratch: str = ""
    storage: Storage = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, sources: Sequence[Source], probes: Sequence[Probe], options: Options) -> list[list[Scanned]]:
        """What was seen in every source, range by range."""
        pieces: list[Piece] = []
        shares: list[slice | None] = []
        for source, seen in zip(sources, probes, strict=True):
            mine = list(self._pieces(source, seen, options, alone=len(sources) == 1))
            shares.append(slice(len(pieces), len(pieces) + len(mine)) if mine else None)
            pieces += mine
        found = self.spread(pieces) if pieces else []
        return [
            found[share] if share else [_here(source, seen, options)]
            for share, source, seen in zip(shares, sources, probes, strict=True)
        ]

    def _pieces(self, source: Source, seen: Probe, options: Options, alone: bool) -> Iterator[Piece]:
        """None where another worker could do no better: of a compressed log no range can be had without all before."""
        origin = self.origins.get(source.name)
        if origin is None or (alone and source.compression):
            return
        count = 1 if source.compression else max(1, min(MAX_PIECES, source.size // self.least))
        engine = choose_engine(options.engine, source.size)
        for start, stop in pairwise(cut_points(source, count, seen, options.wrapper)):
            yield Piece(
                *origin, start, stop, seen, options.wrapper, _chunk(options), engine, self.limits, self.scratch,
                self.storage,
            )  # fmt: skip


def scan_piece(piece: Piece) -> Scanned:
    """Open the log of a piece and scan its range. Raises InputError where it is not there, or shorter by now."""
    with _opened(piece) as source:
        if source.size < piece.stop:
            raise InputError(f"{piece.location}: is shorter than it was", hint="run the same command again")
        return scan_range(source, piece.probe, piece.wrapper, piece.chunk_bytes, piece.start, piece.stop, piece.engine)


def _here(source: Source, seen: Probe, options: Options) -> Scanned:
    engine = choose_engine(options.engine, source.size)
    return scan_range(source, seen, options.wrapper, _chunk(options), 0, source.size, engine)


def _chunk(options: Options) -> int:
    return max(64, options.chunk_bytes)


@contextmanager
def _opened(piece: Piece) -> Iterator[Source]:
    if is_url(piece.location):
        from forensics.fleet.lazy import remote_source

        with remote_source(piece.location, piece.size, piece.storage, piece.limits, piece.scratch) as source:
            yield source
        return
    source = open_path(Path(piece.location))
    try:
        yield source
    finally:
        source.close()
