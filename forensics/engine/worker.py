"""One byte range of one source → one `Scanned`. Ranges begin and end at line starts; one process per range."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine import compiled
from forensics.engine.apart import Last
from forensics.engine.chunk import ChunkScanner, Hot, Rows
from forensics.engine.forked import Forked, cores
from forensics.engine.lines import Kernel, NumpyKernel
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.numbers import PAD, PADDING
from forensics.engine.plain import rank_share, staying
from forensics.engine.probe import Probe
from forensics.engine.record import DECODE, PREFILL, LineReader
from forensics.engine.records import LONG_LINE, MaskTable
from forensics.engine.thin import bucket_bytes
from forensics.errors import UsageError
from forensics.grammar.header import WRAPPER_NAMES
from forensics.ingest.sources import Source

SPLIT_ABOVE = 64 << 20
"""Inputs above this size are scanned by two processes or more, unless told otherwise."""
SPLIT_EACH = 256 << 20
"""Bytes for which one more process is worth its start, where there are cores."""
MOST_PROCESSES = 8
MAX_LINE = 32 << 20
"""Bytes of one line that are held in memory; what lies beyond is passed over up to its end."""
TAIL = 1 << 14
"""Bytes that are read along behind a chunk, as its last line mostly ends there."""
HEAD_START = {"numpy": 64 << 20, "compiled": 160 << 20}
"""Bytes that a child reads while its parent loads the rest of the program."""
LOAD_ABOVE = 32 << 20
"""Inputs above this size gain more from the compiled kernel than its loading takes."""
COMPILE_ABOVE = 400 << 20
"""Inputs above this size are worth that the kernel is made first, once for all later ones."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt."""
_FIELDS = ("offset", "length", "lead", "line", "time", "rank", "shape", "flags")
_TYPES: tuple[npt.DTypeLike, ...] = ("i8", "i4", "i4", "i8", "f8", "i2", "i4", "u1")
_HOT_FIELDS = ("line", "time", "rank")
_HOT_TYPES: tuple[npt.DTypeLike, ...] = ("i8", "f8", "i2")


Progress = Callable[[str, int, int], None]
"""Told the input's name, its bytes read so far (estimated where several processes read) and all of its bytes."""


@dataclass(slots=True)
class Scanned:
    """What one process saw: rows, batch lines, its own tables of shapes and ranks. Lines count from 1."""

    rows: Rows
    hot: dict[int, Hot]
    shapes: list[tuple[str, str]]
    shape_counts: list[int]
    ranks: list[tuple[tuple[str, ...], tuple[int, ...]]]
    wrappers: set[str]
    lines: int
    last_time: float
    thinned: int = 0
    last_apart: Last | None = None
    places: Sequence[int] = ()
    ranks_capped: bool = False


class Started:
    """A source whose scan has begun: `finish` gives all of its ranges, in order.

    Ranges but the first are read by children from the start. `lead`: this process has other work before it gets to
    its own range, which is shorter by so many bytes."""

    def __init__(
        self,
        source: Source,
        probe: Probe,
        forced: str | None,
        chunk_bytes: int,
        processes: int,
        engine: str = "numpy",
        progress: Progress | None = None,
        lead: int = 0,
    ) -> None:
        count = processes or process_count(source.size, cores())
        ranges = list(pairwise(cut_points(source, count, probe, forced, lead)))
        if engine == "compiled" and len(ranges) > 1:
            compiled.prepare()
        call = partial(scan_range, source, probe, forced, chunk_bytes, engine=engine)
        self._own = partial(call, *ranges[0], progress=progress)
        self._children = [Forked(partial(call, *r)) for r in ranges[1:]]

    def finish(self) -> list[Scanned]:
        """Read the first range, and wait for the others. `progress` hears of the first only; the others keep pace."""
        try:
            found = self._own()
            if self._children:
                give_memory_back()
            return [found, *(child.result() for child in self._children)]
        finally:
            self.close()

    def close(self) -> None:
        """End what still runs."""
        for child in self._children:
            child.close()


def process_count(size: int, cores: int) -> int:
    """How many processes read an input of `size` bytes. Two at least where it is split at all: while one waits for the
    disk, the other reads."""
    return 1 if size < SPLIT_ABOVE else max(2, min(cores, MOST_PROCESSES, size // SPLIT_EACH))


def cut_points(source: Source, count: int, probe: Probe, forced: str | None, lead: int = 0) -> list[int]:
    """Range borders: line starts that lie in no message cut by a wrapper, aligned to the thinning buckets. The first
    range is `lead` bytes shorter than the others, or there is none."""
    cuts = [0]
    reader = LineReader(probe.preamble, forced)
    step = bucket_bytes(source.size) or 1
    for number in range(1, count):
        wanted = max(0, source.size + lead) * number // count - lead
        wanted = max(0, wanted) // step * step
        at = _line_start(source, wanted, reader)
        if cuts[-1] < at < source.size:
            cuts.append(at)
    return [*cuts, source.size]


def _line_start(source: Source, at: int, reader: LineReader) -> int:
    """First line start at or after `at` whose line before is complete."""
    while at < source.size:
        starts = at == 0 or source.pread(at - 1, 1) == b"\n"
        if starts and (at == 0 or not reader.is_partial(_line_before(source, at))):
            return at
        window = source.pread(at, 65536)
        found = window.find(b"\n")
        at += found + 1 if found >= 0 else len(window)
        if not window:
            break
    return source.size


def _line_before(source: Source, at: int) -> str:
    """Masked head of the line that ends right before `at`, as much of it as the scan itself reads."""
    window = LONG_LINE
    while True:
        start = max(0, at - window)
        found = source.pread(start, at - 1 - start).rfind(b"\n")
        if found >= 0 or start == 0:
            head = source.pread(start + found + 1, min(at - 2 - start - found, LONG_LINE))
            return head.translate(DIGITS_TO_ZERO).decode("latin-1")
        window *= 8


def _keep_freed_memory() -> None:
    """Tell the C library to reuse what a chunk's arrays give back instead of returning it to the system, chunk after
    chunk: fetching the pages again is a tenth of the scan. Only glibc has this switch."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, 16 << 20)
        mallopt(_M_TRIM_THRESHOLD, 64 << 20)


def give_memory_back() -> None:
    """Return what the scan's arrays have freed to the system."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def scan_range(
    source: Source,
    probe: Probe,
    forced: str | None,
    chunk_bytes: int,
    start: int,
    stop: int,
    engine: str = "numpy",
    progress: Progress | None = None,
) -> Scanned:
    """Scan [start, stop) of a source in chunks of about `chunk_bytes`."""
    if stop - start > SPLIT_ABOVE // 2:
        _keep_freed_memory()
    reader = LineReader(probe.preamble, forced)
    table = MaskTable(reader, probe.outer_time)
    step = bucket_bytes(source.size)
    scanner = ChunkScanner(table, probe, step, kernel_of(engine, table))
    chunks = Reader(source, step, stop)
    kept: list[Rows] = []
    hot: dict[int, list[Hot]] = {DECODE: [], PREFILL: []}
    at, line, wanted = start, 1, chunk_bytes
    while at < stop:
        padded, skipped = chunks.read(at, wanted)
        end = at + len(padded) - 2 * PAD + skipped
        if end == at:
            break
        used, lines, rows, found = scanner.scan(padded, at, line, end >= stop)
        used += skipped if used == len(padded) - 2 * PAD else 0
        # Nothing used: the chunk lies inside one message that a wrapper cut into lines.
        wanted = chunk_bytes if used else wanted * 2
        at, line = at + used, line + lines
        kept.append(_staying(rows, scanner, source.size))
        for kind, batch in found.items():
            hot[kind].append(batch)
        if progress is not None:
            progress(source.name, source.size * (at - start) // (stop - start), source.size)
    scanner.count()
    if stop - start > SPLIT_ABOVE // 2:
        give_memory_back()
    rows = _staying(join_rows(kept), scanner, source.size)
    return _scanned(scanner, rows, {kind: join_hot(batches) for kind, batches in hot.items()}, line - 1)


def _staying(rows: Rows, scanner: ChunkScanner, size: int) -> Rows:
    """Rows without those of free text that do not stay, where not all shapes are told apart."""
    table = scanner.table
    return rows if table.last_apart is None else without_plain(rows, table.others, scanner.ranks, size)


def _scanned(scanner: ChunkScanner, rows: Rows, hot: dict[int, Hot], lines: int) -> Scanned:
    """What was read of a range, with what the scanner has counted and learned on the way."""
    table = scanner.table
    counts = [*scanner.shape_counts.tolist(), *([0] * len(table.names))][: len(table.names)]
    used = np.flatnonzero(scanner.wrapper_counts)
    wrappers = {WRAPPER_NAMES[name] for names, i in table.wrappers.items() if i in used for name in names}
    return Scanned(
        rows,
        hot,
        table.names,
        counts,
        list(scanner.ranks),
        wrappers,
        lines,
        scanner.now,
        scanner.thinned,
        table.last_apart,
        table.places if table.last_apart is not None else (),
        table.ranks_capped,
    )


def choose_engine(wanted: str, size: int) -> str:
    """`numpy` or `compiled` for an input of `size` bytes: `auto` compiles only what is large, where numba is there."""
    if wanted == "auto":
        gains = size >= COMPILE_ABOVE or (size >= LOAD_ABOVE and compiled.at_hand())
        return "compiled" if gains and compiled.available() and compiled.works() else "numpy"
    if wanted not in ("numpy", "compiled"):
        raise UsageError(f"unknown engine {wanted!r}", hint="one of: auto, numpy, compiled")
    return wanted


def kernel_of(engine: str, table: MaskTable) -> Kernel:
    """The kernel of that name; UsageError where the compiled one cannot be had."""
    return compiled.CompiledKernel(table) if engine == "compiled" else NumpyKernel(table)


class Reader:
    """Reads a source chunk by chunk, up to `stop`, into one piece of memory: a chunk is good until the next is read."""

    def __init__(self, source: Source, step: int, stop: int) -> None:
        self._source, self._step, self._stop = source, step, stop
        self._memory = bytearray(PADDING)

    def read(self, at: int, wanted: int) -> tuple[bytes | memoryview, int]:
        """Whole lines from line start `at` on, about `wanted` bytes (whole buckets of `step`, where there are any),
        never beyond `stop`, between PADDING; and how many bytes of a last line that is longer than MAX_LINE were passed
        over."""
        end = at + wanted
        if self._step:
            end = max(end // self._step, at // self._step + 1) * self._step
        end = min(end, self._stop)
        size = self._lines(at, end - at)
        if not size:
            return read_chunk(self._source, at, end, self._stop)
        self._memory[PAD + size : 2 * PAD + size] = PADDING
        return memoryview(self._memory)[: 2 * PAD + size], 0

    def _lines(self, at: int, wanted: int) -> int:
        """Read `wanted` bytes and what is left of their last line. 0: that line does not end soon."""
        most = wanted + TAIL
        if most > MAX_LINE:
            return 0
        if len(self._memory) < most + 2 * PAD:
            self._memory = bytearray(most + 2 * PAD)
            self._memory[:PAD] = PADDING
        place = memoryview(self._memory)[PAD : PAD + min(most, self._stop - at)]
        size = self._source.read_into(at, place)
        if size <= wanted or self._memory[PAD + wanted - 1] == 10:
            return min(size, wanted)
        found = self._memory.find(b"\n", PAD + wanted, PAD + size)
        if found >= 0:
            return found + 1 - PAD
        return size if at + size == self._stop else 0


def read_chunk(source: Source, at: int, end: int, stop: int) -> tuple[bytes, int]:
    """As `Reader.read`, of the bytes from `at` to `end` and to the end of their last line, however long it is."""
    parts = [PADDING, source.pread(at, end - at)]
    size = len(parts[1])
    more = 1 << 14
    longest = parts[1].rfind(b"\n") + 1 + MAX_LINE
    while size and parts[-1][-1:] != b"\n" and at + size < stop:
        if size > longest:
            break
        tail = source.pread(at + size, min(more, stop - at - size))
        if not tail:
            break
        cut = tail.find(b"\n") + 1
        parts.append(tail[:cut] if cut else tail)
        size += len(parts[-1])
        more = min(more * 4, 1 << 24)
    if size - parts[-1].endswith(b"\n") > longest:
        end = at + size if parts[-1].endswith(b"\n") else line_end(source, at + size, stop)
        return b"".join((PADDING, b"".join(parts[1:])[:longest], PADDING)), end - at - longest
    return b"".join((*parts, PADDING)), 0


def line_end(source: Source, at: int, stop: int) -> int:
    """Where the line that holds `at` ends: right after its newline, or at `stop`."""
    while at < stop:
        window = source.pread(at, min(1 << 20, stop - at))
        found = window.find(b"\n")
        if found >= 0:
            return at + found + 1
        if not window:
            break
        at += len(window)
    return stop


def join_hot(parts: list[Hot]) -> Hot:
    """Batch lines of consecutive chunks or ranges as one, with the union of their columns. Uses the parts up: each
    column of theirs is let go when its whole stands, as those of a large input do not fit into memory twice."""
    if len(parts) == 1:
        return parts[0]
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    sizes = [len(part.line) for part in parts]
    columns = {}
    for name in names:
        found = [part.columns.pop(name, None) for part in parts]
        columns[name] = np.concatenate(
            [np.full(n, np.nan) if f is None else f for f, n in zip(found, sizes, strict=True)]
        )
        del found
    line, time, rank = (_joined(parts, name, kind) for name, kind in zip(_HOT_FIELDS, _HOT_TYPES, strict=True))
    return Hot(line, time, rank, columns)


def without_plain(rows: Rows, kinds: Sequence[int], ranks: Iterable[tuple[Any, tuple[int, ...]]], size: int) -> Rows:
    """Rows without most of those whose shapes are not told apart; `kinds` gives `plain_kind` of each shape."""
    kind = np.frombuffer(array("b", kinds), np.int8)
    share = np.array([*(rank_share(numbers) for _, numbers in ranks), -1], np.int64)
    stay = staying(rows.offset, share[rows.rank], kind[rows.shape], size) if len(kind) else None
    return rows if stay is None else Rows(*(getattr(rows, name)[stay] for name in _FIELDS))


def join_rows(parts: list[Rows]) -> Rows:
    """Rows of consecutive chunks as one; uses the parts up."""
    if len(parts) == 1:
        return parts[0]
    return Rows(*(_joined(parts, name, kind) for name, kind in zip(_FIELDS, _TYPES, strict=True)))


def _joined(parts: list[Any], name: str, kind: npt.DTypeLike) -> npt.NDArray[Any]:
    """One column of all parts, which lose theirs."""
    if not parts:
        return np.zeros(0, kind)
    whole = np.concatenate([getattr(part, name) for part in parts])
    for part in parts:
        setattr(part, name, np.zeros(0, kind))
    return whole
