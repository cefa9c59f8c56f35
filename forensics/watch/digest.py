"""A bounded stand-in for a log without end: the first lines of every shape, the last lines, some batch lines."""

from __future__ import annotations

import tempfile
from collections import Counter, deque
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from forensics.ingest.sources import Source

FIRST = 12
"""Lines of one shape that are kept for good."""
MAX_FOR_GOOD = 8_000
MAX_RECENT = 2_500
MAX_BATCHES = 200
MAX_SPARSE = 400
SPARSE_EVERY = 500
"""Of older batch lines every SPARSE_EVERY-th is kept, so that their course over the last hours stays visible."""
MAX_LINE = 32 << 10
"""Bytes kept of one line (server_args lines are about 10 KB long)."""


class Digest:
    """Lines by their number in the whole stream. Never holds more than the sum of the bounds above."""

    def __init__(self) -> None:
        self._for_good: dict[int, bytes] = {}
        self._recent: deque[tuple[int, bytes]] = deque(maxlen=MAX_RECENT)
        self._batches: deque[tuple[int, bytes]] = deque(maxlen=MAX_BATCHES)
        self._sparse: deque[tuple[int, bytes]] = deque(maxlen=MAX_SPARSE)
        self._seen: Counter[int] = Counter()
        self._batches_seen = 0

    def keep(self, number: int, line: bytes, shape: int) -> bool:
        """Keep one line that is no batch line. Gives whether its shape (a number) is new."""
        self._seen[shape] += 1
        count = self._seen[shape]
        line = line[:MAX_LINE]
        if count <= FIRST and len(self._for_good) < MAX_FOR_GOOD:
            self._for_good[number] = line
        else:
            self._recent.append((number, line))
        return count == 1

    def keep_batch(self, number: int, line: bytes) -> None:
        """Keep one batch line for a while."""
        self._batches_seen += 1
        if self._batches_seen % SPARSE_EVERY == 1:
            self._sparse.append((number, line[:MAX_LINE]))
        self._batches.append((number, line[:MAX_LINE]))

    def clear(self) -> None:
        """Forget everything: another server begins."""
        self._for_good.clear()
        for ring in (self._recent, self._batches, self._sparse):
            ring.clear()
        self._seen.clear()

    def __len__(self) -> int:
        return len(self._for_good) + len(self._recent) + len(self._batches) + len(self._sparse)

    def source(self, name: str) -> tuple[Source, npt.NDArray[np.int64]] | None:
        """The digest as an input, and the true line number of each of its lines; None where it is empty."""
        held = dict(self._for_good)
        for ring in (self._recent, self._batches, self._sparse):
            held.update(ring)
        if not held:
            return None
        numbers = sorted(held)
        file = cast(BinaryIO, tempfile.TemporaryFile(prefix="forensics-watch-"))  # noqa: SIM115 (lives as the source)
        data = b"\n".join(held[n] for n in numbers) + b"\n"
        file.write(data)
        file.flush()
        return Source(name, len(data), file), np.array(numbers, np.int64)
