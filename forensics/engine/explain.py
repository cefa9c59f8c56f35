"""How one line was read: wrapper, header, rank, shape, grammar rule, kind. For `forensics explain LOG:LINE`."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.record import LineReader, Part
from forensics.engine.table import WRAPPED, EventTable
from forensics.errors import UsageError
from forensics.frozen import frozen
from forensics.grammar.header import WRAPPER_NAMES
from forensics.grammar.line import HOT
from forensics.schema.rank import Rank

_WINDOW = 1 << 20
SHOWN = 4096
"""Characters of a line that an explanation holds at most."""


@frozen
class ExplainedPart:
    """One writer's share of the line. `column` is 1-based in the raw line; `timestamp` is the stamp as printed;
    `kept` says where it went: `row 17`, `series decode`, `counted`. `rule` is the rule of line.lark, `terminal` the
    terminal that decided it, `fields` the numbers that became columns."""

    column: int
    message: str
    wrappers: tuple[str, ...]
    header: str
    timestamp: str
    level: str
    rank: str | None
    shape: str
    rule: str
    terminal: str
    kind: str
    kept: str
    fields: dict[str, float] = field(default_factory=dict)


@frozen
class Explanation:
    """One line of one input with its parts (several where writers were glued)."""

    path: str
    line: int
    byte_start: int
    raw: str
    parts: tuple[ExplainedPart, ...]


def line_bytes(table: EventTable, source: int, line: int) -> tuple[int, bytes]:
    """Offset and bytes (at most one window) of a 1-based line; UsageError when the input has fewer lines."""
    info = table.infos[source]
    if not 1 <= line <= info.lines:
        raise UsageError(f"{info.path}: has no line {line}", hint=f"it has lines 1 to {info.lines}")
    rows = np.flatnonzero((table.source == source) & (table.line <= line))
    at, here = 0, 1
    if len(rows):
        row = int(rows[np.argmax(table.line[rows])])
        lead = int(table.lead[row]) if len(table.lead) else 0
        at, here = int(table.offset[row]) - lead, int(table.line[row])
    text = table.sources[source]
    while here < line:
        window = text.pread(at, _WINDOW)
        ends = np.flatnonzero(np.frombuffer(window, np.uint8) == 10)
        if here + len(ends) >= line:
            at += int(ends[line - here - 1]) + 1
            here = line
        else:
            at, here = at + len(window), here + len(ends)
            if not window:
                break
    return at, text.pread(at, _WINDOW).split(b"\n", 1)[0]


def explain_line(table: EventTable, line: int, source: int = 0) -> Explanation:
    """Read one line again with the grammars and say how. `source` indexes `table.sources`."""
    at, raw = line_bytes(table, source, line)
    prefixed = {"slurm", "preamble"} & set(table.infos[source].wrappers)
    preamble = getattr(table.unwrapper, "preamble", None) if prefixed else None
    reader = LineReader(preamble, getattr(table.unwrapper, "forced", None))
    masked = raw.translate(DIGITS_TO_ZERO).decode("latin-1")
    rows = np.flatnonzero((table.source == source) & (table.line == line))
    placed = {int(table.lead[r]) if len(table.lead) else 0: int(r) for r in rows}
    parts = tuple(_part(table, reader, raw, part, placed) for part in reader.read(masked[: 1 << 16]))
    return Explanation(table.infos[source].path, line, at, raw.decode("utf-8", "replace")[:SHOWN], parts)


def _part(table: EventTable, reader: LineReader, raw: bytes, part: Part, placed: dict[int, int]) -> ExplainedPart:
    head = part.head
    row = placed.get(part.start)
    kind = part.kind if row is None else table.kind(row)
    parse = reader.parses.get(part.shape[1])
    bare = part.head.wrappers[:1] not in (("W_SLURM",), ("W_PREAMBLE",))
    flags = int(table.flags[row]) if row is not None else 0 if bare else WRAPPED
    text, column = table.unwrapper.message(raw[part.start : part.stop], flags)
    lead = len(raw[: part.start].decode("utf-8", "replace"))
    axes = tuple((a.name, int(raw[a.at : a.at + a.width])) for a in head.axes)
    if row is not None:
        kept = f"row {row}"
    else:
        kept = f"series {kind.removesuffix('-batch')}" if kind in HOT[:2] else "counted"
    return ExplainedPart(
        column=column + lead + 1,
        message=text[:SHOWN],
        wrappers=tuple(WRAPPER_NAMES[w] for w in head.wrappers),
        header=head.header,
        timestamp=_stamp_text(raw, part),
        level=head.level,
        rank=str(Rank(axes)) if axes else None,
        shape=part.shape[1],
        rule=parse.kind.replace("-", "_") if parse else "",
        terminal=parse.terminal if parse else "",
        kind=kind,
        kept=kept,
        fields=_fields(reader, raw, part),
    )


def _stamp_text(raw: bytes, part: Part) -> str:
    stamp = part.head.stamp or part.head.outer_stamp
    if stamp is None:
        return ""
    end = stamp.fraction_at + stamp.fraction_width if stamp.fraction_width else stamp.clock_at + 8
    return raw[min(stamp.date_at, stamp.clock_at) : end].decode("latin-1")


def _fields(reader: LineReader, raw: bytes, part: Part) -> dict[str, float]:
    names = {i: name for name, i in reader.columns[part.kind].names.items()} if part.kind in HOT else {}
    found = {}
    for slot in part.slots:
        value = slot.constant
        if value is None:
            width = slot.end + (1 + slot.fraction if slot.fraction else 0)
            value = float(raw[slot.start : width])
        found[names[slot.column]] = value
    return found
