"""The event table: every kept line as one row of columns; models and text are built only when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from forensics.frozen import frozen
from forensics.schema.rank import Rank
from forensics.schema.span import Span

if TYPE_CHECKING:
    from forensics.schema.report import SourceInfo

STAMPED = 1
"""The line carries its own timestamp (else `time` is inherited from the stamped line above, or -1)."""
HEADED = 2
"""The line carries a log header (timestamp bracket, glog, `[rankN]:` …); lines without belong to a record above."""
TRUNCATED = 4
GLUED = 8
"""The row is the second or later part of one raw line that two writers glued."""
UNATTRIBUTED = 16
WRAPPED = 32
"""A wrapper was taken off that only the whole file gives away (`0: ` of Slurm)."""
ESCAPED = 64
"""The row is a later line of a message that stands as a JSON string in one raw line."""
MAX_RAW = 1 << 16
"""Bytes of one raw line that are read."""


@frozen
class Shape:
    """Message with its digits masked. `kind` is the grammar's word for it, `row` the first row that had it."""

    id: int
    kind: str
    text: str
    row: int
    count: int


@frozen
class Series:
    """Batch metrics of hot lines, one array per column, row-aligned and in time order.

    `kind` decode or prefill; `row` (int64) is the table position before which the line stood, so that a hot line can
    be placed between rows; `line` int64, `source` int16, `time` float64 seconds (nan unknown), `rank` int16 index into
    `EventTable.ranks` (-1 none). `columns` hold float64 arrays (nan: not in that line): running, queue, token_usage,
    throughput, accept_len, cached_tokens, new_tokens, new_seqs, cuda_graph (0/1) and whatever else the lines carry.
    """

    kind: str
    row: npt.NDArray[np.int64]
    source: npt.NDArray[np.int16]
    line: npt.NDArray[np.int64]
    time: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int16]
    columns: dict[str, npt.NDArray[np.float64]]


class TextSource(Protocol):
    """Random access to one input, decompressed and as raw bytes."""

    name: str

    def pread(self, offset: int, length: int) -> bytes: ...


class Unwrapper(Protocol):
    """Takes a wrapper (compose, CRI, journald, Ray …) and the log header off one raw line."""

    def message(self, raw: bytes, flags: int) -> tuple[str, int]:
        """Message text (decoded, no ANSI, no header) and the 0-based column of its start in the raw line."""
        ...


@dataclass(slots=True, weakref_slot=True)
class EventTable:
    """Columns of all kept lines of all inputs, in analysis order (inputs of one incident merged by time).

    Hot lines (decode and prefill batches, access log lines of good requests, tqdm repeats) are not rows: they are in
    `series` and in `counts`. All arrays have one entry per row. `time` is float64 seconds since the epoch in the log's
    own clock (nan: none yet). `rank` indexes `ranks` (-1: the line carries none). A raw line that two writers glued is
    several rows: `offset` and `length` are each row's own share, columns still count from the start of the raw line.
    """

    sources: tuple[TextSource, ...]
    infos: tuple[SourceInfo, ...]
    source: npt.NDArray[np.int16]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int32]
    line: npt.NDArray[np.int64]
    time: npt.NDArray[np.float64]
    rank: npt.NDArray[np.int16]
    shape: npt.NDArray[np.int32]
    flags: npt.NDArray[np.uint8]
    ranks: tuple[Rank, ...]
    shapes: tuple[Shape, ...]
    series: dict[str, Series]
    counts: dict[str, int]
    unwrapper: Unwrapper
    lead: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """Bytes of the raw line before a glued row (0 for the others); empty where the table has none."""
    memo: dict[str, Any] = field(default_factory=dict, repr=False)
    """What later stages found out about the shapes, which no launch changes. Nothing in it holds the table."""
    _ahead: tuple[int, int, bytes] = field(default=(-1, 0, b""), repr=False)
    _cache: dict[int, tuple[str, int]] = field(default_factory=dict, repr=False)
    _of_kind: dict[tuple[str, ...], npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)
    _of_shape: dict[frozenset[int], npt.NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.offset)

    def raw(self, row: int) -> bytes:
        """The raw line without its newline, at most 64 KiB of it."""
        begin, size = int(self.offset[row]), min(int(self.length[row]), MAX_RAW)
        source, at, ahead = self._ahead
        if at <= begin and begin + size <= at + len(ahead) and int(self.source[row]) == source:
            return ahead[begin - at : begin - at + size]
        return self.sources[int(self.source[row])].pread(begin, size)

    def look_ahead(self, first: int, last: int) -> None:
        """Have the bytes of neighbouring rows at hand, as many as fit: they will be asked for one by one."""
        begin = int(self.offset[first])
        end = int(self.offset[last]) + int(self.length[last])
        source = int(self.source[first])
        if begin < end <= begin + MAX_RAW and int(self.source[last]) == source:
            self._ahead = source, begin, self.sources[source].pread(begin, end - begin)

    def text(self, row: int) -> str:
        """The message: wrapper and header taken off, ANSI removed, decoded with replacement."""
        return self.message(row)[0]

    def column(self, row: int) -> int:
        """1-based column in the raw line at which the message starts."""
        return self.message(row)[1] + 1 + self._lead_columns(row)

    def kind(self, row: int) -> str:
        return self.shapes[int(self.shape[row])].kind

    def rank_of(self, row: int) -> Rank | None:
        index = int(self.rank[row])
        return self.ranks[index] if index >= 0 else None

    def time_of(self, row: int) -> float | None:
        value = float(self.time[row])
        return None if np.isnan(value) else value

    def span(self, row: int, column: int | None = None) -> Span:
        """Place of a row; `column` (1-based, code points of the raw line) defaults to the start of the message."""
        start = int(self.offset[row])
        return Span(
            self.sources[int(self.source[row])].name,
            int(self.line[row]),
            self.column(row) if column is None else column,
            start,
            start + int(self.length[row]),
        )

    def rows_of_kind(self, *kinds: str) -> npt.NDArray[np.int64]:
        """Rows (ascending) whose shape has one of these kinds."""
        found = self._of_kind.get(kinds)
        if found is None:
            found = self._of_kind[kinds] = self.rows_of_shapes(i for i, s in enumerate(self.shapes) if s.kind in kinds)
        return found

    def rows_of_shapes(self, ids: Iterable[int]) -> npt.NDArray[np.int64]:
        """Rows (ascending) that have one of these shapes. Not to be written to: they are remembered."""
        key = frozenset(ids)
        found = self._of_shape.get(key)
        if found is None:
            wanted = np.zeros(len(self.shapes), dtype=bool)
            wanted[list(key)] = True
            found = np.flatnonzero(wanted[self.shape]).astype(np.int64) if key else np.zeros(0, np.int64)
            found.flags.writeable = False
            if len(self._of_shape) > 64:
                self._of_shape.clear()
                self._of_kind.clear()
            self._of_shape[key] = found
        return found

    def _lead_columns(self, row: int) -> int:
        """Code points of the raw line before a glued row."""
        lead = int(self.lead[row]) if len(self.lead) else 0
        if not lead:
            return 0
        before = self.sources[int(self.source[row])].pread(int(self.offset[row]) - lead, lead)
        return len(before.decode("utf-8", "replace"))

    def message(self, row: int) -> tuple[str, int]:
        """Text and the 0-based column of its start in the row's share of the raw line."""
        found = self._cache.get(row)
        if found is None:
            if len(self._cache) > 10_000:
                self._cache.clear()
            found = self.unwrapper.message(self.raw(row), int(self.flags[row]))
            self._cache[row] = found
        return found
