"""One byte range of one source → one `Scanned`. Ranges begin and end at line starts; one process per range."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from multiprocessing import get_context

import numpy as np

from forensics.engine.chunk import ChunkScanner, Hot, Rows
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.probe import Probe
from forensics.engine.record import DECODE, PREFILL, LineReader
from forensics.engine.records import LONG_LINE, MaskTable
from forensics.engine.thin import Thinner, bucket_bytes, concat
from forensics.grammar.header import WRAPPER_NAMES
from forensics.ingest.sources import Source

SPLIT_ABOVE = 64 << 20
"""Inputs above this size are scanned by two processes, unless told otherwise."""
_FIELDS = ("offset", "length", "lead", "line", "time", "rank", "shape", "flags")


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
    capped: bool = False
    notes: list[str] = field(default_factory=list)


def scan_source(source: Source, probe: Probe, forced: str | None, chunk_bytes: int, processes: int) -> list[Scanned]:
    """All ranges of a source, in order."""
    count = processes or (1 if source.size < SPLIT_ABOVE else 2)
    cuts = cut_points(source, count, probe, forced)
    ranges = list(pairwise(cuts))
    if len(ranges) == 1:
        return [scan_range(source, probe, forced, chunk_bytes, *ranges[0])]
    with ProcessPoolExecutor(
        len(ranges) - 1, mp_context=get_context("fork"), initializer=_inherit, initargs=(source,)
    ) as pool:
        later = [pool.submit(_scan_inherited, probe, forced, chunk_bytes, a, b) for a, b in ranges[1:]]
        first = scan_range(source, probe, forced, chunk_bytes, *ranges[0])
        return [first, *(task.result() for task in later)]


_inherited: list[Source] = []


def _inherit(source: Source) -> None:
    _inherited[:] = [source]


def _scan_inherited(probe: Probe, forced: str | None, chunk_bytes: int, start: int, stop: int) -> Scanned:
    return scan_range(_inherited[0], probe, forced, chunk_bytes, start, stop)


def cut_points(source: Source, count: int, probe: Probe, forced: str | None) -> list[int]:
    """Range borders: line starts that lie in no message cut by a wrapper, aligned to the thinning buckets."""
    cuts = [0]
    reader = LineReader(probe.slurm, forced)
    step = bucket_bytes(source.size) or 1
    for number in range(1, count):
        wanted = source.size * number // count // step * step
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


def scan_range(source: Source, probe: Probe, forced: str | None, chunk_bytes: int, start: int, stop: int) -> Scanned:
    """Scan [start, stop) of a source in chunks of about `chunk_bytes`."""
    reader = LineReader(probe.slurm, forced)
    table = MaskTable(reader, probe.outer_time)
    scanner = ChunkScanner(table, probe)
    kept: list[Rows] = []
    thin = {DECODE: Thinner(source.size), PREFILL: Thinner(source.size)}
    at, line = start, 1
    rest = b""
    position = start
    while position < stop or rest:
        data = source.pread(position, min(chunk_bytes, stop - position))
        position += len(data)
        final = position >= stop or not data
        cut = len(data) if final else data.rfind(b"\n") + 1
        if not cut and not final:
            rest += data
            continue
        text, rest = rest + data[:cut], data[cut:]
        if not text:
            break
        used, lines, rows, hot = scanner.scan(text, at, line, final)
        rest = text[used:] + rest
        at, line = at + used, line + lines
        kept.append(rows)
        for kind, lines_of_kind in hot.items():
            thin[kind].add(lines_of_kind)
        if final and not rest:
            break
    counts = scanner.shape_counts[: len(table.shapes)].tolist()
    counts += [0] * (len(table.shapes) - len(counts))
    wrappers = {
        WRAPPER_NAMES[name]
        for names, i in table.wrappers.items()
        if i < len(scanner.wrapper_counts) and scanner.wrapper_counts[i]
        for name in names
    }
    hot_all = {kind: concat(t.finish()) for kind, t in thin.items()}
    return Scanned(
        join_rows(kept),
        hot_all,
        list(table.shapes),
        counts,
        list(scanner.ranks),
        wrappers,
        line - 1,
        scanner.now,
        sum(t.dropped for t in thin.values()),
        reader.capped,
    )


def join_rows(parts: list[Rows]) -> Rows:
    """Rows of consecutive chunks as one."""
    kinds = (np.int64, np.int32, np.int32, np.int64, np.float64, np.int16, np.int32, np.uint8)
    return Rows(
        *(
            np.concatenate([getattr(p, name) for p in parts]) if parts else np.zeros(0, kind)
            for name, kind in zip(_FIELDS, kinds, strict=True)
        )
    )
