"""The fleet's report as sections of plain tables, which text and HTML draw each in their way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forensics.fleet.summary import Share, Summary
from forensics.frozen import frozen

Cell = str | int
MANY = 1_000_000


@frozen
class Section:
    """`rows` are those shown, `more` counts the others. Numbers are cells of type int. `heat`: from this column on the
    cells are counts to be compared by eye. `empty` is said where there are no rows. `wordy` columns are left out where
    space is short; the column `below` then stands in lines of its own, which are never broken: it is to be copied."""

    id: str
    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int = 0
    heat: int = 0
    empty: str = ""
    wordy: tuple[str, ...] = ()
    below: str = ""


def headline(found: Summary) -> str:
    """The fleet in one sentence."""
    words = f"{found.failed} of {count(found.incidents, 'incident')} failed"
    if found.causes:
        known = [c for c in found.causes if c.category or not c.cause.startswith("(")]
        if known:
            words += f", most often of {known[0].cause} ({known[0].count})"
    if found.unexplained:
        words += f"; {found.unexplained} unexplained"
    if found.unread:
        words += f"; {found.unread} could not be analyzed"
    return words


def count(number: int, word: str) -> str:
    """`1 incident`, `2 incidents`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


def sections(found: Summary, limit: int = MANY, periods: int = MANY) -> tuple[Section, ...]:
    """All sections in the order of use: what hurts most, what is new to learn, what to repair, then the tables.

    `limit` bounds the rows of each, `periods` the columns over time (the latest are kept)."""
    return (
        _causes(found, limit, periods),
        _clusters(found, limit),
        _regressions(found, limit),
        _suspects(found, limit),
        _shares(found.versions, "versions", "By sglang version", "version", limit),
        _shares(found.gpus, "gpus", "By GPU", "GPU", limit),
        _shares(found.nodes, "nodes", "By node", "node", limit),
        _never(found, limit),
        _problems(found, limit),
    )


def _causes(found: Summary, limit: int, periods: int) -> Section:
    shown = found.periods[-periods:]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (c.cause, c.title, c.count, c.services, c.nodes, *c.over_time[len(c.over_time) - len(shown) :])
        for c in found.causes
    )
    year = shown[0][:5] if shown and len({p[:5] for p in shown}) == 1 and shown[0][:4].isdigit() else ""
    shown_as = tuple(p.removeprefix(year) or p for p in shown) if len(year) == 5 and len(shown[0]) > 5 else shown
    cut = f" The latest {len(shown)} of {len(found.periods)} periods." if len(shown) < len(found.periods) else ""
    cut += f" All of {year[:4]}." if shown_as != shown else ""
    note = "Causes that are established or likely; times are those of the logs' own clocks." + cut
    head = ("cause", "what it is", "incidents", "services", "nodes", *shown_as)
    made = _section("causes", "Incidents by cause over time", note, head, rows, limit, "no incident failed", heat=5)
    return replace(made, wordy=("what it is",))


def _clusters(found: Summary, limit: int) -> Section:
    rows = tuple(
        (c.count, c.text, ", ".join(c.stages), ", ".join(c.versions), f"{c.path}:{c.line}" if c.line else c.path)
        for c in found.clusters
    )
    note = "Each is the next finding to write; `--drafts FOLDER` writes a draft of each."
    head = ("incidents", "what the first of them says", "stage", "versions", "place")
    made = _section(
        "clusters", "Unexplained failures that are alike", note, head, rows, limit, "every failure is explained"
    )
    return replace(made, below="place")


def _regressions(found: Summary, limit: int) -> Section:
    rows = tuple(
        (r.service, f"{r.before} → {r.after}", r.cause, f"{r.failed_before} of {r.all_before}",
         f"{r.failed_after} of {r.all_after}", chance(r.q))
        for r in found.regressions
    )  # fmt: skip
    note = "Exact one-sided test of each version against the one seen before it, corrected for the number of tests."
    head = ("service", "versions", "cause", "before", "after", "by chance")
    return _section("regressions", "Worse after a version change", note, head, rows, limit, "nothing beyond chance")


def _suspects(found: Summary, limit: int) -> Section:
    rows = tuple(
        (s.node, f"{s.failed} of {s.incidents}", f"{s.expected:g}", chance(s.q), _top(s.causes)) for s in found.suspects
    )
    note = (
        "Exact test per machine (services apart), corrected for the number of machines; look at their hardware first."
    )
    head = ("node", "failed", "expected", "by chance", "of what")
    empty = "no machine fails beyond chance"
    if len([n for n in found.nodes if n.name != "unknown"]) < 3:
        empty = "too few machines have a name: --node-by PATTERN takes it out of the logs' names"
    return _section("suspects", "Nodes that fail more than chance allows", note, head, rows, limit, empty)


def _shares(shares: Sequence[Share], id: str, title: str, word: str, limit: int) -> Section:
    rows = tuple((s.name, s.incidents, s.failed, percent(s.failed, s.incidents), _top(s.causes)) for s in shares)
    return _section(id, title, "", (word, "incidents", "failed", "share", "of what"), rows, limit, "nothing was read")


def _never(found: Summary, limit: int) -> Section:
    note = f"{len(found.never)} of {found.findings} findings are not even possible anywhere in this dataset."
    return _section("never", "Findings that never match", note, ("finding", "title"), found.never, limit, "all match")


def _problems(found: Summary, limit: int) -> Section:
    rows = tuple((code or "other", number, example) for code, number, example in found.problems)
    return _section("problems", "What could not be read", "", ("kind", "count", "example"), rows, limit, "nothing")


def _section(
    id: str,
    title: str,
    note: str,
    head: tuple[str, ...],
    rows: Sequence[tuple[Cell, ...]],
    limit: int,
    empty: str,
    heat: int = 0,
) -> Section:
    return Section(id, title, note, head, tuple(rows[:limit]), max(0, len(rows) - limit), heat, empty)


def chance(q: float) -> str:
    """A probability as people read it."""
    return f"1 in {1 / q:,.0f}" if 0 < q < 0.01 else ("never" if q <= 0 else f"{100 * q:.1f} %")


def percent(part: int, whole: int) -> str:
    """A share in whole percent, never rounded to none or all."""
    if not whole or part in (0, whole):
        return "0 %" if not part else "100 %"
    return f"{min(99, max(1, round(100 * part / whole)))} %"


def _top(causes: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({number})" for name, number in causes)
