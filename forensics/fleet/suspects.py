"""Machines that fail more often than chance allows: the usual sign of bad hardware."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from forensics.fleet.chance import adjusted, binomial_tail, stratified_tail
from forensics.frozen import frozen

LIMIT = 0.05
ONLY_FAILURES = 0.95
"""Share of failed incidents from which on the dataset holds failures only: then shares say nothing, counts do."""
_REST = "\0rest"


@frozen
class Suspect:
    """`expected` failures were to be expected of its `incidents`. `p` is the exact tail, `q` the same corrected for the
    number of machines tested. `test`: share (of its incidents, each service apart) or count (of all failures)."""

    node: str
    incidents: int
    failed: int
    expected: float
    p: float
    q: float
    test: str
    causes: tuple[tuple[str, int], ...]


def suspects(rows: Sequence[dict[str, Any]], label: Callable[[dict[str, Any]], str]) -> tuple[Suspect, ...]:
    """Machines with a corrected probability below LIMIT, the least likely first."""
    by_node: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["node"]:
            by_node[str(row["node"])].append(row)
    if len(by_node) < 3:
        return ()
    named = [r for own in by_node.values() for r in own]
    failures = sum(bool(r["failed"]) for r in named)
    counting = failures >= ONLY_FAILURES * len(named)
    strata = _strata(named)
    tested = []
    for node, own in sorted(by_node.items()):
        failed = sum(bool(r["failed"]) for r in own)
        if counting:
            expected = failures / len(by_node)
            p = binomial_tail(failed, failures, 1 / len(by_node))
        else:
            expected, p = _by_share(own, failed, strata)
        tested.append((node, own, failed, expected, p))
    corrected = adjusted([t[-1] for t in tested])
    test = "count" if counting else "share"
    found = [
        Suspect(node, len(own), failed, round(expected, 2), p, q, test, _top(own, label))
        for (node, own, failed, expected, p), q in zip(tested, corrected, strict=True)
        if q < LIMIT
    ]
    return tuple(sorted(found, key=lambda s: (s.p, s.node)))


Strata = dict[str, tuple[int, int]]


def _strata(rows: Sequence[dict[str, Any]]) -> Strata:
    """Failed and all incidents of each service that runs on several machines; the others are one stratum.

    A service that fails everywhere must not accuse the machine that runs most of it."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[str(row["service"])].append(row)
    shared = {s: own for s, own in groups.items() if len({r["node"] for r in own}) > 1}
    rest = [r for s, own in groups.items() if s not in shared for r in own]
    if rest:
        shared[_REST] = rest
    return {s: (sum(bool(r["failed"]) for r in own), len(own)) for s, own in shared.items()}


def _by_share(own: Sequence[dict[str, Any]], failed: int, strata: Strata) -> tuple[float, float]:
    counts = Counter(str(r["service"]) if str(r["service"]) in strata else _REST for r in own)
    drawn = [(count, strata[s][0], strata[s][1]) for s, count in sorted(counts.items())]
    expected = sum(count * marked / total for count, marked, total in drawn)
    return expected, stratified_tail(failed, drawn)


def _top(own: Sequence[dict[str, Any]], label: Callable[[dict[str, Any]], str]) -> tuple[tuple[str, int], ...]:
    causes = Counter(label(r) for r in own if r["failed"])
    return tuple(sorted(causes.items(), key=lambda c: (-c[1], c[0]))[:3])
