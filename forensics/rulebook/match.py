"""Rules over one launch: which signals the log shows, where, how often and with which values.

Work is done once per shape wherever digits do not matter: literals prefilter shapes, one line decides for its shape,
and floods (runs of one text on one rank) are one match with a count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.rulebook.among import kept
from forensics.rulebook.captures import typed
from forensics.rulebook.derived import DERIVED
from forensics.rulebook.patterns import Pattern
from forensics.rulebook.phase import phase_words
from forensics.rulebook.program import Program, Ready, Rules, ShapePlans, plans_of, program_of
from forensics.rulebook.where import holds
from forensics.schema.block import Block
from forensics.schema.facts import Value
from forensics.schema.launch import Launch
from forensics.schema.rank import Rank
from forensics.schema.signal import Match, Signal

MAX_MATCHES = 512
"""Matches kept per rule and launch; `Signal.total` still counts the rows that were looked at."""
MAX_ROWS = 1024
"""Rows of one shape whose text one rule reads, first and last ones (as many as matches are kept where each row is a
match with its values); the rest only counts as capped."""
SAMPLE = 64
"""Rows of a flood that are read before it counts as one, where digits could make a difference."""
FLOOD_GAP = 1.0
"""Seconds between two lines of one flood."""
FLOOD_SLICE = 10.0
"""Seconds that one match of a flood stands for at most: `count … within …` looks at times."""

Rows = npt.NDArray[np.int64]
Patterns = tuple[Pattern, ...]
Captures = tuple[tuple[str, Value], ...]


def match_rules(rules: Rules, table: EventTable, blocks: Sequence[Block], launch: Launch) -> dict[str, Signal]:
    """The signals of one launch, by rule id in the order of `rules`; rules that did not match are absent."""
    program = program_of(rules)
    matcher = _Matcher(program, table, blocks, launch)
    signals: dict[str, Signal] = {}
    for ready, found in zip(program.ready, matcher.run(), strict=True):
        matches = kept(sorted(found.matches, key=lambda m: m.row), ready.rule, table)
        total = sum(m.count for m in matches)
        if total < ready.rule.min_count or not matches:
            continue
        capped = found.capped or len(matches) > MAX_MATCHES
        shown = matches[: MAX_MATCHES - 1] + matches[-1:] if len(matches) > MAX_MATCHES else matches
        signals[ready.rule.id] = Signal(ready.rule.id, ready.rule.role, tuple(shown), total, capped)
    return signals


@dataclass(slots=True)
class _Found:
    matches: list[Match]
    capped: bool = False


class _Matcher:
    def __init__(self, program: Program, table: EventTable, blocks: Sequence[Block], launch: Launch) -> None:
        self.program = program
        self.table = table
        self.blocks = blocks
        self.launch = launch
        self.plans: ShapePlans = plans_of(program, table)
        self.block_of = _blocks_of(blocks, table)
        self.times = table.time

    def run(self) -> list[_Found]:
        found = [_Found([]) for _ in self.program.ready]
        for shape_id, rows in _by_shape(self.table, self.launch.rows):
            plan = self.plans.plan(shape_id)
            if plan.open:
                self._open_shape(plan.rules, rows, found)
            else:
                for index in plan.rules:
                    self._closed_shape(self.program.ready[index], rows, found[index])
        return found

    def _closed_shape(self, ready: Ready, rows: Rows, found: _Found) -> None:
        """All rows of the shape have the same text but for digits, which all patterns of a blind rule ignore."""
        near = ready.near(self.table.text(int(rows[0])))
        if not near:
            return
        if ready.blind:
            if self._captures(ready, near, self.table.text(int(rows[0]))) is None:
                return
            for run in self._runs(rows):
                self._add(ready, run, (), found)
            return
        if ready.rule.captures:
            bound = MAX_ROWS if ready.rule.where else MAX_MATCHES
            self._read(ready, near, self._runs(self._chosen(rows, found, bound)), found)
            return
        for run in self._runs(rows):
            if self._all_alike(ready, near, run):
                self._add(ready, run, (), found)
            else:
                self._read(ready, near, [self._chosen(run, found)], found)

    def _open_shape(self, rules: tuple[int, ...], rows: Rows, found: list[_Found]) -> None:
        """Texts differ: each is prefiltered by itself."""
        dummy = _Found([])
        for row in self._chosen(rows, dummy).tolist():
            for index in self.program.candidates(self.table.text(row)):
                if index in rules:
                    ready = self.program.ready[index]
                    self._read(ready, ready.patterns, [np.array([row], np.int64)], found[index])
        if dummy.capped:
            for index in rules:
                found[index].capped = found[index].capped or bool(found[index].matches)

    def _chosen(self, rows: Rows, found: _Found, bound: int = MAX_ROWS) -> Rows:
        if len(rows) <= bound:
            return rows
        found.capped = True
        return np.concatenate([rows[: bound // 2], rows[-bound // 2 :]])

    def _all_alike(self, ready: Ready, near: Patterns, run: Rows) -> bool:
        """Whether a long flood may count as a whole: rows spread over it all satisfy the rule."""
        if len(run) <= SAMPLE:
            return False
        chosen = run[np.linspace(0, len(run) - 1, SAMPLE).astype(np.int64)]
        return all(self._captures(ready, near, self.table.text(row)) is not None for row in chosen.tolist())

    def _read(self, ready: Ready, near: Patterns, runs: Iterable[Rows], found: _Found) -> None:
        """Match each row's real text; equal values on one rank in one flood fold."""
        for run in runs:
            held: tuple[Captures, list[int]] | None = None
            for row in run.tolist():
                captures = self._captures(ready, near, self.table.text(row))
                if held is not None and captures == held[0]:
                    held[1].append(row)
                    continue
                if held is not None:
                    self._add(ready, np.array(held[1], np.int64), held[0], found)
                held = None if captures is None else (captures, [row])
            if held is not None:
                self._add(ready, np.array(held[1], np.int64), held[0], found)

    def _captures(self, ready: Ready, near: Patterns, text: str) -> Captures | None:
        """Typed captures of a text that satisfies patterns (`near`: those worth a try), `not` and `where`; None where
        it does not."""
        hit = next((m for p in near if (m := p.search(text)) is not None), None)
        if hit is None or any(p.search(text) is not None for p in ready.absent):
            return None
        if not ready.rule.captures:
            return ()
        groups = hit.groupdict()
        captures = tuple((name, typed(groups.get(name), kind)) for name, kind in ready.rule.captures)
        if ready.rule.derive:
            values = DERIVED[ready.rule.derive](text)
            if values is None:
                return None
            captures = tuple((name, values.get(name) if value is None else value) for name, value in captures)
        if ready.rule.where and holds(ready.rule.where, dict(captures)) is not True:
            return None
        return captures

    def _add(self, ready: Ready, rows: Rows, captures: Captures, found: _Found) -> None:
        first = int(rows[0])
        index = int(self.block_of[first])
        block = self.blocks[index] if index >= 0 else None
        if not self._context(ready, first, block):
            return
        if len(found.matches) > 4 * MAX_MATCHES:
            # The last match stays exact: `before` and `within` look at both ends of a flood.
            found.matches[MAX_MATCHES:-1] = []
            found.capped = True
        rank = self._rank(ready, first, block)
        if ready.rule.stages and not self._in_stage(ready, first, rank, block):
            return
        found.matches.append(Match(first, rank, captures, len(rows), index if index >= 0 else None))

    def _context(self, ready: Ready, row: int, block: Block | None) -> bool:
        """Whether the block around the row has the wanted exception and frame."""
        if ready.exception is not None:
            types = [r.type for r in block.raised] if block else []
            if not types and self.table.kind(row) == "exception":
                types = [self.table.text(row).partition(":")[0]]
            if not any(ready.exception.search(t) for t in types):
                return False
        if ready.frames is None:
            return True
        frames = [] if block is None else [*block.frames, *(f for r in block.raised for f in r.frames)]
        return any(ready.frames.search(f"{f.file}:{f.number} in {f.function}") for f in frames)

    def _rank(self, ready: Ready, row: int, block: Block | None) -> Rank | None:
        if ready.rule.scope == "process":
            return None
        own = self.table.rank_of(row)
        return own if own is not None or block is None else block.rank

    def _in_stage(self, ready: Ready, row: int, rank: Rank | None, block: Block | None) -> bool:
        return bool(phase_words(self.table, self.launch, row, rank, block) & set(ready.rule.stages))

    def _runs(self, rows: Rows) -> Iterator[Rows]:
        """Floods: rows of one rank in one block (or none), each within a second of the one before."""
        if len(rows) == 1:
            yield rows
            return
        ranks, blocks, times = self.table.rank[rows], self.block_of[rows], self.times[rows]
        order = np.lexsort((rows, blocks, ranks))
        rows, ranks, blocks, times = rows[order], ranks[order], blocks[order], times[order]
        with np.errstate(invalid="ignore"):
            apart = np.abs(np.diff(times)) > FLOOD_GAP
        other = (np.diff(ranks) != 0) | (np.diff(blocks) != 0) | apart
        cut = np.flatnonzero(other | (np.diff(_slices(times, other)) != 0)) + 1
        if len(cut) > 4 * MAX_MATCHES:
            cut = np.concatenate([cut[: 2 * MAX_MATCHES], cut[-2 * MAX_MATCHES :]])
        for low, high in pairwise([0, *cut.tolist(), len(rows)]):
            yield rows[low:high]


def _slices(times: npt.NDArray[np.float64], other: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Number of the slice of its flood that each row falls into, so that a long flood keeps its course in time."""
    first = np.concatenate([[0], np.flatnonzero(other) + 1])
    start = np.repeat(times[first], np.diff(np.append(first, len(times))))
    return np.asarray(np.nan_to_num(np.floor((times - start) / FLOOD_SLICE)), np.float64)


def _by_shape(table: EventTable, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Rows grouped by shape, each group ascending."""
    if not len(rows):
        return
    shapes = table.shape[rows]
    order = np.argsort(shapes, kind="stable")
    rows, shapes = rows[order], shapes[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(shapes)) + 1])
    yield from zip(shapes[starts].tolist(), np.split(rows, starts[1:]), strict=True)


_LAST: list[tuple[Sequence[Block], EventTable, npt.NDArray[np.int32]]] = []


def _blocks_of(blocks: Sequence[Block], table: EventTable) -> npt.NDArray[np.int32]:
    """`_block_of`, kept for the launches that follow in the same table."""
    if not (_LAST and _LAST[0][0] is blocks and _LAST[0][1] is table):
        _LAST[:] = [(blocks, table, _block_of(blocks, len(table)))]
    return _LAST[0][2]


def _block_of(blocks: Sequence[Block], length: int) -> npt.NDArray[np.int32]:
    """For each row the index of its block, -1 where it is in none; the first block that names a row keeps it."""
    found = np.full(length, -1, np.int32)
    for index in range(len(blocks) - 1, -1, -1):
        found[list(blocks[index].rows)] = index
    return found
