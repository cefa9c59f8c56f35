"""Conditions about signals: seen, absent, order, counts, and the ranks that showed them."""

from __future__ import annotations

from forensics.grammar.condition_tree import Absent, Before, Count, FirstFailureHas, Quantifier, Seen
from forensics.rulebook.arithmetic import compare_values
from forensics.rulebook.case import Case
from forensics.rulebook.coverage import coverage, covers, same_rank
from forensics.rulebook.outcome import Outcome, kleene_and, kleene_or, some_of
from forensics.schema.rank import Rank
from forensics.schema.signal import Match
from forensics.schema.span import Span

Spans = tuple[Span, ...]
_HUGE = 1 << 62


def matches_of(case: Case, signal: str) -> tuple[Match, ...]:
    """Matches of a signal, none where it was not seen."""
    found = case.signals.get(signal)
    return found.matches if found else ()


def seen(node: Seen, case: Case) -> Outcome:
    """Whether the signal was seen (on the ranks that the quantifier names)."""
    if node.on is not None:
        return _quantified(node.signal, node.on, case)
    matches = matches_of(case, node.signal)
    if matches:
        spans = some_of(case.table.span(m.row) for m in matches)
        return Outcome(True, spans, f"{node.signal} was seen {_times(case.signals[node.signal].total)}")
    return not_seen(case, node.signal)


def not_seen(case: Case, signal: str, rank: Rank | None = None) -> Outcome:
    """False where the log covers the signal, else unknown."""
    cover = coverage(case, signal, rank)
    if cover.covered:
        return Outcome(False, (), f"{signal} was not seen" + (f" on {rank}" if rank else ""))
    return Outcome(None, (), cover.why, cover.settle, lapsed=cover.lapsed)


def failing_rank(case: Case) -> Rank | None:
    """The rank of the first failure: its own, else the one suspect, else the one reporter."""
    failure = case.launch.failure(case.launch.first_failure)
    if failure is None:
        return None
    if failure.rank is not None:
        return failure.rank
    for ranks in (failure.suspect_ranks, failure.reporters, failure.ranks):
        if len(ranks) == 1:
            return ranks[0]
    return None


def on_rank(case: Case, signal: str, rank: Rank) -> tuple[Match, ...]:
    """Matches on one rank; those of a rankless rule count for every rank."""
    rule = case.rules.get(signal)
    matches = matches_of(case, signal)
    if rule is not None and rule.scope == "process":
        return matches
    return tuple(m for m in matches if m.rank is not None and same_rank(m.rank, rank))


def _quantified(signal: str, on: Quantifier, case: Case) -> Outcome:
    matches = matches_of(case, signal)
    rule = case.rules.get(signal)
    if rule is not None and rule.scope == "process" and on.kind != "one":
        return seen(Seen(signal), case)
    if on.kind in ("failing", "named"):
        return _on_that_rank(signal, on, case)
    ranks = showing(case, signal)
    spans = some_of(case.table.span(m.row) for m in matches)
    if on.kind == "some":
        if matches:
            return Outcome(True, spans, f"{signal} was seen on {_ranks(ranks) or 'a process without rank'}")
        return not_seen(case, signal)
    if on.kind == "one":
        return _on_one(signal, ranks, spans, case)
    return _on_every(signal, ranks, spans, case)


def showing(case: Case, signal: str) -> tuple[Rank, ...]:
    """Ranks that showed the signal, each once, in order of appearance."""
    ranks: list[Rank] = []
    for match in matches_of(case, signal):
        if match.rank is not None and not any(same_rank(match.rank, r) for r in ranks):
            ranks.append(match.rank)
    return tuple(ranks)


def _on_that_rank(signal: str, on: Quantifier, case: Case) -> Outcome:
    rank = failing_rank(case) if on.kind == "failing" else Rank.parse(on.rank)
    if rank is None:
        why = "the log does not tell which rank failed first"
        return Outcome(None, (), why, "give the logs of all nodes, with rank prefixes")
    matches = on_rank(case, signal, rank)
    if matches:
        return Outcome(True, some_of(case.table.span(m.row) for m in matches), f"{signal} was seen on {rank}")
    if any(m.rank is None for m in matches_of(case, signal)):
        spans = some_of(case.table.span(m.row) for m in matches_of(case, signal))
        return Outcome(None, spans, f"the lines of {signal} carry no rank", "give one log per node")
    return not_seen(case, signal, rank)


def _on_one(signal: str, ranks: tuple[Rank, ...], spans: Spans, case: Case) -> Outcome:
    if len(ranks) == 1:
        return Outcome(True, spans, f"{signal} was seen on {ranks[0]} only")
    if len(ranks) > 1:
        return Outcome(False, spans, f"{signal} was seen on {len(ranks)} ranks: {_ranks(ranks)}")
    if spans:
        if len(case.launch.expected) <= 1:
            return Outcome(True, spans, f"{signal} was seen on the only rank")
        return Outcome(None, spans, f"the lines of {signal} carry no rank", "give one log per node")
    return not_seen(case, signal)


def _on_every(signal: str, ranks: tuple[Rank, ...], spans: Spans, case: Case) -> Outcome:
    expected = case.launch.expected or case.launch.seen
    if not spans:
        return not_seen(case, signal)
    if not expected:
        return Outcome(True, spans, f"{signal} was seen on the only rank")
    if not ranks:
        return Outcome(None, spans, f"the lines of {signal} carry no rank", "give one log per node")
    lacking = [r for r in expected if not any(same_rank(r, x) for x in ranks)]
    if not lacking:
        return Outcome(True, spans, f"{signal} was seen on all {len(expected)} ranks")
    for rank in lacking:
        if covers(case, rank):
            return Outcome(False, spans, f"{signal} was seen on {_ranks(ranks)}, but not on {rank}")
    why = f"{signal} was seen on {_ranks(ranks)}; the log shows nothing of {_ranks(tuple(lacking))}"
    return Outcome(None, spans, why, "give the logs of all nodes")


def absent(node: Absent, case: Case) -> Outcome:
    """True only where the log covers the rank and the stage of the signal."""
    shown = seen(Seen(node.signal, node.on), case)
    if shown.value is True:
        return Outcome(False, shown.witnesses, shown.why)
    if shown.value is None:
        return shown
    failure = case.launch.failure(case.launch.first_failure)
    spans = (case.table.span(failure.row),) if failure else ()
    return Outcome(True, spans, f"{shown.why}, and the log covers it")


def before(node: Before, case: Case) -> Outcome:
    """Whether the first `a` stands before the first `b`; with a quantifier, on each rank by itself."""
    if node.on is not None:
        return _before_on(node, case)
    first, second = seen(node.first, case), seen(node.second, case)
    both = kleene_and((first.value, second.value))
    if both is not True:
        weak = next(p for p in (first, second) if p.value is both)
        return Outcome(both, weak.witnesses, weak.why, weak.settle, (first, second))
    a, b = _first_row(node.first, case), _first_row(node.second, case)
    word = "before" if a < b else "not before"
    why = f"the first {node.first.signal} stands {word} the first {node.second.signal}"
    return Outcome(a < b, (case.table.span(a), case.table.span(b)), why, "", (first, second))


def _first_row(side: Seen, case: Case) -> int:
    matches = matches_of(case, side.signal)
    rank = _single_rank(side.on, case)
    if rank is not None:
        matches = on_rank(case, side.signal, rank) or matches
    return min((m.row for m in matches), default=_HUGE)


def _single_rank(on: Quantifier | None, case: Case) -> Rank | None:
    if on is None or on.kind not in ("failing", "named"):
        return None
    return failing_rank(case) if on.kind == "failing" else Rank.parse(on.rank)


def _before_on(node: Before, case: Case) -> Outcome:
    on = node.on
    assert on is not None
    if on.kind in ("failing", "named"):
        rank = _single_rank(on, case)
        if rank is None:
            return Outcome(None, (), "the log does not tell which rank failed first", "give the logs of all nodes")
        return _ordered(node, rank, case)
    ranks = case.launch.expected or case.launch.seen
    if not ranks:
        return before(Before(node.first, node.second), case)
    parts = tuple(_ordered(node, rank, case) for rank in ranks[:512])
    values = [p.value for p in parts]
    if on.kind == "one":
        value = None if None in values else values.count(True) == 1
    else:
        value = kleene_and(values) if on.kind == "every" else kleene_or(values)
    told = next((p for p in parts if p.value is value), parts[0])
    return Outcome(value, told.witnesses, told.why, told.settle, parts)


def _ordered(node: Before, rank: Rank, case: Case) -> Outcome:
    sides = [(s.signal, on_rank(case, s.signal, rank)) for s in (node.first, node.second)]
    for signal, matches in sides:
        if not matches:
            return not_seen(case, signal, rank)
    a, b = (matches[0].row for _, matches in sides)
    word = "before" if a < b else "not before"
    why = f"on {rank} the first {node.first.signal} stands {word} the first {node.second.signal}"
    return Outcome(a < b, (case.table.span(a), case.table.span(b)), why)


def count(node: Count, case: Case) -> Outcome:
    """Number of matches, all together or the most inside any window."""
    matches = matches_of(case, node.signal)
    if node.on is not None and node.on.kind in ("failing", "named"):
        rank = _single_rank(node.on, case)
        if rank is None:
            return Outcome(None, (), "the log does not tell which rank failed first", "give the logs of all nodes")
        matches = on_rank(case, node.signal, rank)
    if not matches:
        gone = not_seen(case, node.signal)
        return gone if gone.value is None else _counted(node, 0, (), "", case)
    if node.within is None:
        if node.on is None:
            return _counted(node, case.signals[node.signal].total, matches, "", case)
        return _counted(node, sum(m.count for m in matches), matches, "", case)
    timed = [(t, m) for m in matches if (t := case.table.time_of(m.row)) is not None]
    if not timed:
        return Outcome(None, (), f"the lines of {node.signal} carry no time", "start the server with log timestamps")
    most, inside = _densest(sorted(timed, key=lambda x: x[0]), node.within.value)
    return _counted(node, most, inside, f" within {node.within.text}", case)


def _counted(node: Count, number: int, matches: tuple[Match, ...], window: str, case: Case) -> Outcome:
    value = compare_values(node.op, number, node.number.value)
    spans = some_of(case.table.span(m.row) for m in matches)
    return Outcome(value, spans, f"{node.signal} was seen {_times(number)}{window}")


def _densest(timed: list[tuple[float, Match]], window: float) -> tuple[int, tuple[Match, ...]]:
    """The most matches inside any window of that many seconds."""
    best, best_range, low, held = 0, (0, 0), 0, 0
    for high, (time, match) in enumerate(timed):
        held += match.count
        while timed[low][0] < time - window:
            held -= timed[low][1].count
            low += 1
        if held > best:
            best, best_range = held, (low, high + 1)
    return best, tuple(m for _, m in timed[slice(*best_range)])


def first_failure_has(node: FirstFailureHas, case: Case) -> Outcome:
    """Whether the signal matched inside the launch's first failure."""
    failure = case.launch.failure(case.launch.first_failure)
    if failure is None:
        return Outcome(False, (), "the launch shows no failure")
    rows, blocks = set(failure.rows), set(failure.blocks)
    inside = [m for m in matches_of(case, node.signal) if m.row in rows or m.block in blocks]
    if inside or node.signal in failure.signals:
        spans = some_of(case.table.span(m.row) for m in inside) or (case.table.span(failure.row),)
        return Outcome(True, spans, f"the first failure shows {node.signal}")
    cover = coverage(case, node.signal)
    why = f"the first failure does not show {node.signal}"
    return Outcome(False if cover.covered else None, (case.table.span(failure.row),), cover.why or why, cover.settle)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _ranks(ranks: tuple[Rank, ...]) -> str:
    shown = ", ".join(str(r) for r in ranks[:6])
    return f"{shown} and {len(ranks) - 6} more" if len(ranks) > 6 else shown
