"""`scan`: inputs → one `EventTable`. Everything per line is in chunk.py; here the pieces are put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forensics.engine.assemble import Assembled, AxisKey, assemble
from forensics.engine.forked import Forked, spare_core
from forensics.engine.merge import Loaded, corrected, interleave, order_inputs
from forensics.engine.probe import Probe, probe
from forensics.engine.series import KINDS, Places, series_of
from forensics.engine.table import HEADED, MAX_RAW, UNATTRIBUTED, EventTable, Shape
from forensics.engine.unwrap import GrammarUnwrapper
from forensics.engine.worker import (
    HEAD_START,
    MAX_LINE,
    SPLIT_ABOVE,
    Scanned,
    Started,
    choose_engine,
    give_memory_back,
)
from forensics.errors import UsageError
from forensics.grammar.header import WRAPPERS, headers
from forensics.ingest.inputs import Inputs, open_inputs
from forensics.ingest.sources import Source
from forensics.schema.options import Options
from forensics.schema.rank import Rank

if TYPE_CHECKING:
    from forensics.schema.report import SourceInfo

Array = npt.NDArray[Any]


Ranges = Callable[[Sequence[Source], Sequence[Probe], Options], list[list[Scanned]]]
"""Scans all sources elsewhere: byte ranges of each, in order, cut at `cut_points`."""


def scan(
    inputs: Inputs | Sequence[Source | Path | str], options: Options | None = None, ranges: Ranges | None = None
) -> EventTable:
    """Scan inputs into one event table.

    Takes opened inputs, sources, or names of files. Equal bytes give equal tables, whatever the chunk size, the number
    of processes, the compression, or who scans the `ranges`. Raises InputError when nothing usable was named.
    """
    options = options or Options()
    if ranges is not None:
        opened = _opened(inputs, options)
        return _built(
            [Loaded(s, seen) for s, seen in zip(opened, _ranged(opened, options, ranges), strict=True)], options
        )
    with Scan(inputs, options) as begun:
        return begun.table()


class Scan:
    """A scan that has begun: `table` finishes it, leaving the block ends what still runs.

    `ahead`: other work comes before `table` is asked for, and a second process reads meanwhile."""

    def __init__(self, inputs: Inputs | Sequence[Source | Path | str], options: Options, ahead: bool = False) -> None:
        self.sources = _opened(inputs, options)
        self.options = options
        ahead = ahead and len(self.sources) == 1 and options.processes != 1 and spare_core()
        self._first = _begun(self.sources[0], options, ahead) if self.sources else None

    def __enter__(self) -> Scan:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End what still runs."""
        if self._first is not None:
            self._first.close()

    def table(self) -> EventTable:
        """The table of all inputs; to be asked for once."""
        return _built([Loaded(source, self._load(source)) for source in self.sources], self.options)

    def _load(self, source: Source) -> Assembled:
        first = self._first if source is self.sources[0] else None
        return (first or _begun(source, self.options)).result()


def _ranged(sources: Sequence[Source], options: Options, ranges: Ranges) -> list[Assembled]:
    """The sources, scanned by somebody else."""
    probes = [probe(source, options.wrapper) for source in sources]
    found = ranges(sources, probes, options)
    return [assemble(parts, seen, s.size) for parts, seen, s in zip(found, probes, sources, strict=True)]


def _built(loaded: list[Loaded], options: Options) -> EventTable:
    large = any(item.source.size > SPLIT_ABOVE for item in loaded)
    table = build_table(order_inputs(loaded), options)
    loaded.clear()
    if large:
        give_memory_back()
    return table


def _opened(inputs: Inputs | Sequence[Source | Path | str], options: Options) -> tuple[Source, ...]:
    if options.wrapper is not None and options.wrapper not in WRAPPERS:
        raise UsageError(f"unknown wrapper {options.wrapper!r}", hint=f"one of: {', '.join(WRAPPERS)}")
    sources = _sources(inputs)
    if options.progress is not None:
        for source in sources:
            options.progress(source.name, 0, source.size)
    return sources


class _Shared:
    """One source, read by this process and, where it is large, by children from the start."""

    def __init__(self, source: Source, options: Options, ahead: bool = False) -> None:
        self._seen = probe(source, options.wrapper)
        self._size = source.size
        engine = choose_engine(options.engine, source.size)
        chunk = min(max(64, options.chunk_bytes), MAX_LINE)
        forced, processes, lead = options.wrapper, options.processes, HEAD_START[engine] if ahead else 0
        self._started = Started(source, self._seen, forced, chunk, processes, engine, options.progress, lead)

    def result(self) -> Assembled:
        return assemble(self._started.finish(), self._seen, self._size)

    def close(self) -> None:
        self._started.close()


def _begun(source: Source, options: Options, ahead: bool = False) -> _Shared | Forked[Assembled]:
    """A source whose scan has begun; ahead of other work, a child reads all of a small one."""
    if ahead and source.size <= HEAD_START[choose_engine(options.engine, source.size)]:
        headers()  # both processes will ask for them
        return Forked(lambda: _Shared(source, options).result())
    return _Shared(source, options, ahead)


def _sources(inputs: Inputs | Sequence[Source | Path | str]) -> tuple[Source, ...]:
    if isinstance(inputs, Inputs):
        return inputs.sources
    opened = [x for x in inputs if isinstance(x, Source)]
    names = [str(x) for x in inputs if not isinstance(x, Source)]
    return (*opened, *(open_inputs(names).sources if names else ()))


def build_table(groups: list[list[Loaded]], options: Options) -> EventTable:
    """One table from groups of sources in their final order."""
    items = [item for group in groups for item in group]
    ranks, rank_maps = _ranks(groups)
    which, local = _order(groups)
    rows = _columns(items, which, local, rank_maps)
    shape, shapes = _shapes(items, which, rows.pop("shape"))
    counts: dict[str, int] = {}
    for item in items:
        for kind, number in item.seen.kinds.items():
            counts[kind] = counts.get(kind, 0) + number
    place = Places(which, rows["time"], [len(group) > 1 for group in groups for _ in group])
    series = {name: series_of(name, kind, items, place, rank_maps) for name, kind in KINDS.items()}
    return EventTable(
        sources=tuple(item.source for item in items),
        infos=tuple(_info(item) for item in items),
        shape=shape,
        shapes=shapes,
        ranks=ranks,
        series=series,
        counts=dict(sorted(counts.items())),
        unwrapper=GrammarUnwrapper(
            options.wrapper, tuple(dict.fromkeys(i.seen.preamble for i in items if i.seen.preamble))
        ),
        **rows,
    )


def _order(groups: list[list[Loaded]]) -> tuple[Array, Array]:
    which: list[Array] = []
    local: list[Array] = []
    base = 0
    for group in groups:
        sources, rows = interleave(group)
        which.append(sources + base)
        local.append(rows)
        base += len(group)
    return np.concatenate(which), np.concatenate(local)


def _ranks(groups: list[list[Loaded]]) -> tuple[tuple[Rank, ...], list[Array]]:
    """All ranks in a fixed order. A rank carries its node only where two nodes of a group use the same one."""
    wanted: list[list[Rank]] = []
    for group in groups:
        holders: dict[AxisKey, set[str | None]] = {}
        for item in group:
            for key in item.seen.ranks:
                holders.setdefault(key, set()).add(item.node)
        for item in group:
            wanted.append(
                [
                    Rank(tuple(zip(*key, strict=True)), item.node if len(holders[key]) > 1 else None)
                    for key in item.seen.ranks
                ]
            )
    ordered = sorted({rank for ranks in wanted for rank in ranks}, key=lambda r: (r.node or "", r.axes))
    number = {rank: i for i, rank in enumerate(ordered)}
    return tuple(ordered), [np.array([*(number[r] for r in ranks), -1], np.int16) for ranks in wanted]


def _columns(items: list[Loaded], which: Array, local: Array, rank_maps: list[Array]) -> dict[str, Any]:
    starts = np.cumsum([0, *(len(item.seen.rows.line) for item in items)])[:-1]
    # One source in its own order, as most inputs are, is not copied.
    alone = len(items) == 1 and bool((local == np.arange(len(local))).all())
    pick = slice(None) if alone else starts[which] + local
    out: dict[str, Any] = {"source": which.astype(np.int16)}
    for name in ("offset", "length", "lead", "line", "shape"):
        out[name] = _joined([getattr(item.seen.rows, name) for item in items])[pick]
    out["time"] = _joined([corrected(item) for item in items])[pick]
    out["rank"] = _joined([m[item.seen.rows.rank] for item, m in zip(items, rank_maps, strict=True)])[pick]
    flags = _joined([item.seen.rows.flags for item in items])[pick]
    lone = ((flags & HEADED) == 0) & (out["rank"] < 0)
    out["flags"] = np.where(lone, flags | UNATTRIBUTED, flags).astype(np.uint8)
    return out


def _joined(parts: list[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _shapes(items: list[Loaded], which: Array, local_shape: Array) -> tuple[Array, tuple[Shape, ...]]:
    """Shapes of all sources in one numbering, by first row."""
    table: dict[tuple[str, str], int] = {}
    counts: list[int] = []
    merged = np.zeros(len(local_shape), np.int32)
    for number, item in enumerate(items):
        mine = np.array([table.setdefault(s, len(table)) for s in item.seen.shapes] or [0], np.int32)
        counts += [0] * (len(table) - len(counts))
        for i, lines in enumerate(item.seen.shape_counts):
            counts[int(mine[i])] += lines
        pick = which == number
        merged[pick] = mine[local_shape[pick]]
    names = list(table)
    rows = np.arange(len(merged))
    firsts = np.full(len(names) + 1, -1)
    firsts[merged[::-1]] = rows[::-1]  # of equal places the last one written stays
    found = np.flatnonzero(firsts >= 0)
    first = firsts[found]
    renumber = np.zeros(len(names) + 1, np.int32)
    shapes = []
    for new, i in enumerate(np.argsort(first, kind="stable")):
        old = int(found[i])
        renumber[old] = new
        shapes.append(Shape(new, *names[old], int(first[i]), counts[old]))
    return renumber[merged], tuple(shapes)


def _info(item: Loaded) -> SourceInfo:
    from forensics.schema.report import SourceInfo  # not needed before a table is there, and long to load

    seen, source = item.seen, item.source
    return SourceInfo(
        path=source.name,
        bytes=source.size,
        lines=seen.lines,
        unparsed_lines=seen.kinds.get("text", 0),
        unattributed_lines=int((((seen.rows.flags & HEADED) == 0) & (seen.rows.rank < 0)).sum()),
        compression=source.compression,
        wrappers=seen.wrappers,
        node=item.node,
        clock_skew_s=item.skew,
        kinds=dict(sorted(seen.kinds.items())),
        notes=[*source.notes, *seen.notes, *_long_lines(seen.rows.length)],
    )


def _long_lines(length: Array) -> list[str]:
    """A note on lines of which only the beginning was read."""
    long = int((length > MAX_RAW).sum())
    return [f"only the first {MAX_RAW >> 10} KiB were read of {long:,} longer lines"] if long else []
