"""Rules over one launch: which signals the log shows, where, how often and with which values.

Work is done once per shape wherever digits do not matter: literals prefilter shapes, one line decides for its shape,
and floods (runs of one text on one rank) are one match with a count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, repeat
from operator import itemgetter
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.rulebook.among import kept
from forensics.rulebook.captures import typed
from forensics.rulebook.derived import DERIVED, NEEDED
from forensics.rulebook.later import LaterMatch
from forensics.rulebook.patterns import Pattern
from forensics.rulebook.phase import phase_words
from forensics.rulebook.places import places_of, raised_in
from forensics.rulebook.program import Asked, Program, Ready, Rules, ShapePlans, plans_of, program_of
from forensics.rulebook.where import holds
from forensics.schema.block import Block
from forensics.schema.facts import Value
from forensics.schema.launch import Launch
from forensics.schema.rank import Rank
from forensics.schema.signal import Match, Signal

MAX_MATCHES = 512
"""Matches kept per rule and launch; `Signal.total` still counts the rows that were looked at."""
MAX_HELD = 4 * MAX_MATCHES + 1
"""Matches of one rule in one launch that are held before the middle ones are dropped."""
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
T = TypeVar("T")


def match_rules(rules: Rules, table: EventTable, blocks: Sequence[Block], launch: Launch) -> dict[str, Signal]:
    """The signals of one launch, by rule id in the order of `rules`; rules that did not match are absent."""
    program = program_of(rules)
    matcher = _Matcher(program, table, blocks, launch)
    signals: dict[str, Signal] = {}
    for index, found in sorted(matcher.run().items()):
        ready = program.ready[index]
        signal = matcher.signal(ready, found) if found.held else None
        if signal is not None:
            signals[ready.rule.id] = signal
    return signals


Noted = tuple[int, int, Captures | None]
"""A match in the making: its row, how many rows it stands for, captures (None: read when somebody asks)."""
Held = tuple[int, int, Captures | None, int]
"""The same with the index of its block (-1: none)."""
_ROW = itemgetter(0)


@dataclass(slots=True)
class _Found:
    held: list[Held] = field(default_factory=list)
    capped: bool = False

    def take(self, further: list[Held] | _Flooded) -> None:
        """Hold more matches, with `make_room` wherever there are too many; those that it drops are not even made."""
        at, number = 0, len(further)
        while number - at > (room := MAX_HELD - len(self.held)):
            first = self.held[:MAX_MATCHES] + further[at : at + max(0, min(room, MAX_MATCHES - len(self.held)))]
            self.held = first + (further[at + room - 1 : at + room] if room else self.held[-1:])
            self.capped = True
            at += room
        self.held += further[at:]

    def make_room(self) -> None:
        """Of too many matches the first ones stay and the last: `before` and `within` look at both ends of a flood."""
        if len(self.held) >= MAX_HELD:
            self.held[MAX_MATCHES:-1] = []
            self.capped = True


class _Matcher:
    def __init__(self, program: Program, table: EventTable, blocks: Sequence[Block], launch: Launch) -> None:
        self.program = program
        self.table = table
        self.blocks = blocks
        self.launch = launch
        self.plans: ShapePlans = plans_of(program, table)
        self.places = places_of(blocks, table)
        self.block_of = self.places.block_of
        self.times = table.time

    def run(self) -> dict[int, _Found]:
        """What the rules found, by their indexes."""
        found: defaultdict[int, _Found] = defaultdict(_Found)
        for shape_id, rows in _by_shape(self.table, self.launch.rows):
            plan = self.plans.plan(self.table, shape_id)
            if plan.open:
                self._open_shape(plan.rules, rows, found)
                continue
            floods = _Floods(rows, self)
            for index in plan.rules:
                self._closed_shape(self.program.ready[index], rows, floods, found[index])
        return found

    def signal(self, ready: Ready, found: _Found) -> Signal | None:
        """What a rule found, as a signal; None where it is not enough."""
        rule = ready.rule
        held = sorted(found.held, key=_ROW)
        if rule.min_same > 1 or rule.differs:
            matches = kept(self._matches(ready, held), rule, self.table)
            number, total = len(matches), sum(m.count for m in matches)
            shown = _ends(matches)
        else:
            number, total = len(held), sum(count for _, count, _, _ in held)
            shown = self._matches(ready, _ends(held)) if total >= rule.min_count else []
        if total < rule.min_count or not shown:
            return None
        return Signal(rule.id, rule.role, tuple(shown), total, found.capped or number > MAX_MATCHES)

    def _closed_shape(self, ready: Ready, rows: Rows, floods: _Floods, found: _Found) -> None:
        """All rows of the shape have the same text but for digits, which all patterns of a blind rule ignore."""
        first = self.table.text(int(rows[0]))
        near = ready.near(first)
        if not near or NEEDED.get(ready.rule.derive, "") not in first:
            return
        if ready.blind and self._captures(ready, near, first) is None:
            return
        if ready.blind and not ready.rule.captures:
            if ready.plain:
                found.take(floods.whole)
            else:
                self._hold(ready, floods.whole[:], found)
        elif ready.rule.captures:
            bound = MAX_ROWS if ready.rule.where else MAX_MATCHES
            chosen = self._chosen(rows, found, bound)
            noted = self._blind(ready, near, chosen) if ready.blind else self._read(ready, near, self._runs(chosen))
            self._keep(ready, list(noted), found)
        else:
            for run in self._runs(rows):
                if self._all_alike(ready, near, run):
                    self._keep(ready, [(int(run[0]), len(run), ())], found)
                else:
                    self._keep(ready, list(self._read(ready, near, [self._chosen(run, found)])), found)

    def _open_shape(self, rules: tuple[int, ...], rows: Rows, found: dict[int, _Found]) -> None:
        """Texts differ: each is prefiltered by itself."""
        dummy = _Found()
        asked = Asked(self.program, rules)
        for row in self._chosen(rows, dummy).tolist() if rules else ():
            if asked.nobody(self.table.raw(row)):
                continue
            text = self.table.text(row)
            for index in asked.among(text):
                ready = self.program.ready[index]
                captures = self._captures(ready, ready.patterns, text)
                if captures is not None:
                    self._keep(ready, [(row, 1, captures)], found[index])
        if dummy.capped:
            for index in rules:
                found[index].capped = found[index].capped or bool(found[index].held)

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

    def _blind(self, ready: Ready, near: Patterns, rows: Rows) -> Iterator[Noted]:
        """All rows match: captures are only read where they make a difference, in floods, where equal ones fold."""
        rows, edges = self.sorted_runs(rows)
        for row, (low, high) in zip(rows[edges[:-1]].tolist(), pairwise(edges), strict=True):
            if high - low == 1:
                yield row, 1, None
            else:
                yield from self._read(ready, near, [rows[low:high]])

    def _read(self, ready: Ready, near: Patterns, runs: Iterable[Rows]) -> Iterator[Noted]:
        """Match each row's real text; equal values on one rank in one flood fold."""
        for run in runs:
            first, count, held = -1, 0, None
            for row in run.tolist():
                captures = self._captures(ready, near, self.table.text(row))
                if count and captures == held:
                    count += 1
                    continue
                if count:
                    yield first, count, held
                first, count, held = row, int(captures is not None), captures
            if count:
                yield first, count, held

    def _captures(self, ready: Ready, near: Patterns, text: str) -> Captures | None:
        """Typed captures of a text that satisfies patterns (`near`: those worth a try), `not` and `where`; None where
        it does not."""
        hit = next((m for p in near if (m := p.search(text)) is not None), None)
        if hit is None or any(p.search(text) is not None for p in ready.absent):
            return None
        if not ready.rule.captures:
            return ()
        values = DERIVED[ready.rule.derive](text) if ready.rule.derive else {}
        if values is None:
            return None
        groups = hit.groupdict()
        captures = tuple((name, typed(groups.get(name), kind)) for name, kind in ready.rule.captures)
        if ready.rule.derive:
            captures = tuple((name, values.get(name) if value is None else value) for name, value in captures)
        if ready.rule.where and holds(ready.rule.where, dict(captures)) is not True:
            return None
        return captures

    def _keep(self, ready: Ready, noted: Sequence[Noted], found: _Found) -> None:
        """Hold the matches that stand in the wanted exception, stack and stage."""
        if noted:
            places = self.block_of[[row for row, _, _ in noted]].tolist()
            held = [(row, count, captures, at) for (row, count, captures), at in zip(noted, places, strict=True)]
            self._hold(ready, held, found)

    def _hold(self, ready: Ready, held: list[Held], found: _Found) -> None:
        if ready.plain:
            found.take(held)
            return
        for match in held:
            row, _, _, place = match
            block = self.blocks[place] if place >= 0 else None
            if not self._context(ready, row, place, block):
                continue
            found.make_room()
            if not ready.rule.stages or self._in_stage(ready, row, self._rank(ready, row, block), block):
                found.held.append(match)

    def _matches(self, ready: Ready, held: list[Held]) -> list[Match]:
        found: list[Match] = []
        later = self._again, ready
        ranks = self.table.rank[[row for row, _, _, _ in held]].tolist() if held else []
        for (row, count, captures, place), own in zip(held, ranks, strict=True):
            index = place if place >= 0 else None
            rank = None
            if ready.rule.scope != "process":
                rank = self.table.ranks[own] if own >= 0 else self.blocks[place].rank if place >= 0 else None
            if captures is not None:
                found.append(Match(row, rank, captures, count, index))
            else:
                found.append(LaterMatch(row, rank, count, index, later))
        return found

    def _again(self, row: int, ready: Ready) -> Captures:
        """The captures of a row that is known to match."""
        text = self.table.text(row)
        return self._captures(ready, ready.near(text), text) or ()

    def _context(self, ready: Ready, row: int, place: int, block: Block | None) -> bool:
        """Whether the block around the row has the wanted exception and frame."""
        if ready.exception is not None:
            types = [r.type for r in block.raised] if block else []
            if not types and self.table.kind(row) == "exception":
                types = [self.table.text(row).partition(":")[0]]
            if not any(ready.exception.search(t) for t in types):
                return False
        if ready.innermost is not None and not (block and raised_in(block, row, ready.innermost)):
            return False
        return ready.frames is None or self.places.in_stack(place, ready.frames)

    def _rank(self, ready: Ready, row: int, block: Block | None) -> Rank | None:
        if ready.rule.scope == "process":
            return None
        own = self.table.rank_of(row)
        return own if own is not None or block is None else block.rank

    def _in_stage(self, ready: Ready, row: int, rank: Rank | None, block: Block | None) -> bool:
        return bool(phase_words(self.table, self.launch, row, rank, block) & set(ready.rule.stages))

    def _runs(self, rows: Rows) -> Iterator[Rows]:
        """Floods: rows of one rank in one block (or none), each within a second of the one before."""
        rows, edges = self.sorted_runs(rows)
        for low, high in pairwise(edges):
            yield rows[low:high]

    def sorted_runs(self, rows: Rows) -> tuple[Rows, list[int]]:
        """Rows in the order of their floods, and the places where one begins, with the end."""
        if len(rows) == 1:
            return rows, [0, 1]
        ranks, blocks, times = self.table.rank[rows], self.block_of[rows], self.times[rows]
        # Rows are ascending: a stable order by what tells floods apart keeps them so.
        alone = bool((blocks == blocks[0]).all())
        order = np.argsort(ranks, kind="stable") if alone else np.lexsort((blocks, ranks))
        rows, ranks, blocks, times = rows[order], ranks[order], blocks[order], times[order]
        steps = np.diff(times)
        with np.errstate(invalid="ignore"):
            other = (np.diff(ranks) != 0) | (np.diff(blocks) != 0) | (np.abs(steps) > FLOOD_GAP)
        cut = np.flatnonzero(other | _sliced(times, steps, other)) + 1
        if len(cut) > 4 * MAX_MATCHES:
            cut = np.concatenate([cut[: 2 * MAX_MATCHES], cut[-2 * MAX_MATCHES :]])
        return rows, [0, *cut.tolist(), len(rows)]


class _Floods:
    """The floods of one shape as matches without captures, worked out once for all rules that want them."""

    def __init__(self, rows: Rows, matcher: _Matcher) -> None:
        self._rows = rows
        self._matcher = matcher

    @cached_property
    def whole(self) -> _Flooded:
        rows, edges = self._matcher.sorted_runs(self._rows)
        firsts = rows[edges[:-1]]
        return _Flooded(firsts, np.diff(edges), self._matcher.block_of[firsts])


@dataclass(slots=True)
class _Flooded:
    """Matches without captures that are made when a slice of them is asked for."""

    rows: Rows
    counts: Rows
    places: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, part: slice) -> list[Held]:
        columns = self.rows[part].tolist(), self.counts[part].tolist(), repeat(()), self.places[part].tolist()
        return list(zip(*columns, strict=False))


def _ends(matches: list[T]) -> list[T]:
    """The matches that are shown: of too many the first ones and the last."""
    return matches[: MAX_MATCHES - 1] + matches[-1:] if len(matches) > MAX_MATCHES else matches


Times = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def _sliced(times: Times, steps: Times, other: Mask) -> Mask:
    """After which rows a new slice of their flood begins, so that a long flood keeps its course in time. `other`: after
    which rows another flood begins."""
    first = np.concatenate([[0], np.flatnonzero(other) + 1])
    last = np.append(first[1:], len(times)) - 1
    if bool((steps >= 0)[~other].all()) and bool((times[last] - times[first] < FLOOD_SLICE).all()):
        return np.zeros(len(steps), dtype=bool)
    start = np.repeat(times[first], np.diff(np.append(first, len(times))))
    return np.asarray(np.diff(np.nan_to_num(np.floor((times - start) / FLOOD_SLICE))) != 0)


def _by_shape(table: EventTable, rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Rows grouped by shape, each group ascending."""
    if not len(rows):
        return
    shapes = table.shape[rows]
    if len(table.shapes) < 1 << 15:
        shapes = shapes.astype(np.int16)  # short numbers are sorted in linear time
    order = np.argsort(shapes, kind="stable")
    rows, shapes = rows[order], shapes[order]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(shapes)) + 1])
    yield from zip(shapes[starts].tolist(), np.split(rows, starts[1:]), strict=True)
