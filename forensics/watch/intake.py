"""New bytes through the engine, piece by piece: kinds, ranks and batch metrics of the new lines only."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

import numpy as np

from forensics.engine.scan import scan
from forensics.engine.table import EventTable, Series
from forensics.frozen import frozen
from forensics.ingest.sources import Source
from forensics.schema.options import Options
from forensics.schema.rank import Rank
from forensics.watch.digest import MAX_BATCHES, SPARSE_EVERY, Digest

MAX_PENDING = 8 << 20
"""Bytes of an unfinished line that are waited for."""
ALARMS = frozenset(
    {
        "traceback-head", "exception", "cuda-assert", "pg-watchdog", "cxx-abort", "faulthandler", "sigquit", "exit",
        "error", "argparse",
    }
)  # fmt: skip
"""Kinds of lines that may be the beginning, or a consequence, of a failure."""
MAX_SHAPES = 50_000


@frozen
class Seen:
    """One kept line: number in the stream, kind, rank, message (only of new shapes, alarms and progress), and whether
    its shape was never seen before."""

    number: int
    kind: str
    rank: Rank | None
    text: str
    new: bool


@frozen
class Batch:
    """The last decode or prefill line of a piece: its rank and its metrics."""

    kind: str
    rank: Rank | None
    metrics: dict[str, float]


@frozen
class Piece:
    """What new bytes held."""

    lines: int
    seen: tuple[Seen, ...]
    batches: tuple[Batch, ...]


NOTHING = Piece(0, (), ())


class Intake:
    """Scans pieces and feeds the digest; between pieces it holds the unfinished line and the shapes seen."""

    def __init__(self, digest: Digest, options: Options | None = None) -> None:
        self.digest = digest
        self.options = options or Options()
        self.lines = 0
        self._pending = b""
        self._shapes: dict[tuple[str, str], int] = {}

    def feed(self, data: bytes, final: bool = False) -> Piece:
        """Scan new bytes. An unfinished last line waits for its end, or for `final`."""
        data = self._pending + data
        end = len(data) if final or len(data) > MAX_PENDING else data.rfind(b"\n") + 1
        whole, self._pending = data[:end], data[end:]
        if not whole:
            return NOTHING
        with tempfile.TemporaryFile(prefix="forensics-watch-") as file:
            file.write(whole)
            file.flush()
            table = scan([Source("-", len(whole), cast(BinaryIO, file))], self.options)
            raw = whole.split(b"\n")
            seen = tuple(self._rows(table, raw))
            batches = tuple(self._batches(table, raw))
        count = len(raw) - (1 if raw[-1] == b"" else 0)
        self.lines += count
        return Piece(count, seen, batches)

    def unfinished(self) -> str:
        """The end of the line that is not finished yet: progress bars write for minutes before they end theirs."""
        return self._pending[-400:].decode("utf-8", "replace").rsplit("\r", 1)[-1]

    def forget_shapes(self) -> None:
        """Another server begins: its messages are new again."""
        self._shapes.clear()

    def _rows(self, table: EventTable, raw: list[bytes]) -> Iterator[Seen]:
        shapes = [(self._number(s.kind, s.text), s.kind) for s in table.shapes]
        ranks = [*table.ranks, None]
        last = 0
        for row, (line, shape, rank) in enumerate(
            zip(table.line.tolist(), table.shape.tolist(), table.rank.tolist(), strict=True)
        ):
            number, kind = shapes[shape]
            whole = raw[line - 1] if int(table.length[row]) <= len(raw[line - 1]) else table.raw(row)
            new = self.digest.keep(self.lines + line, whole, number) if line != last else False
            last = line
            text = table.text(row) if new or kind in ALARMS or kind == "progress" else ""
            yield Seen(self.lines + line, kind, ranks[rank], text, new)

    def _number(self, kind: str, text: str) -> int:
        """One number per shape over all pieces; past the bound all new shapes of a kind share one."""
        key = (kind, text) if len(self._shapes) < MAX_SHAPES else (kind, "")
        return self._shapes.setdefault(key, len(self._shapes))

    def _batches(self, table: EventTable, raw: list[bytes]) -> Iterator[Batch]:
        numbers = np.sort(np.concatenate([s.line for s in table.series.values()] or [np.zeros(0, np.int64)]))
        wanted = np.union1d(numbers[::SPARSE_EVERY], numbers[-MAX_BATCHES:])
        for line in wanted.tolist():
            self.digest.keep_batch(self.lines + line, raw[line - 1])
        for kind, series in table.series.items():
            if len(series.line):
                yield _last(kind, series, table)


def _last(kind: str, series: Series, table: EventTable) -> Batch:
    index = int(series.rank[-1])
    metrics = {name: float(values[-1]) for name, values in series.columns.items() if not np.isnan(values[-1])}
    return Batch(kind, table.ranks[index] if index >= 0 else None, metrics)
