"""Failures that no finding explains, gathered by what they say: each cluster is the next finding to write."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from rapidfuzz import fuzz, process

from forensics.frozen import frozen

ALIKE = 82.0
"""From which likeness on (0 to 100, of masked texts) two failures count as one kind."""
MAX_SHAPES = 5000
_VARYING = re.compile(
    r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|(?:/[\w.+-]+){2,}|'[^']{0,200}'|\"[^\"]{0,200}\"|\d+(?:\.\d+)*", re.I
)


@frozen
class Cluster:
    """`shape`: the commonest text of it with what varies left open. `incidents` oldest first, by id; `text`, `path`,
    `line` are those of the first. `guesses`: causes that are no more than possible in some of them."""

    shape: str
    count: int
    stages: tuple[str, ...]
    versions: tuple[str, ...]
    guesses: tuple[str, ...]
    incidents: tuple[str, ...]
    text: str
    path: str
    line: int


def shape_of(text: str) -> str:
    """A failure's text with numbers, paths, hashes and quoted texts left open."""
    return " ".join(_VARYING.sub("#", text[:400]).lower().split())


def clusters(rows: Sequence[dict[str, Any]]) -> tuple[Cluster, ...]:
    """Clusters of incident rows (unexplained ones only), the largest first."""
    by_shape: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_shape[shape_of(str(row["failure"] or row["mechanism"] or f"hung at {row['reached']}"))].append(row)
    ordered = sorted(by_shape, key=lambda s: (-len(by_shape[s]), s))
    leaders: list[str] = []
    members: dict[str, list[str]] = {}
    for shape in ordered[:MAX_SHAPES]:
        best = process.extractOne(shape, leaders, scorer=fuzz.token_sort_ratio, score_cutoff=ALIKE)
        leader = best[0] if best else shape
        if best is None:
            leaders.append(shape)
        members.setdefault(leader, []).append(shape)
    found = [_cluster(leader, [r for s in shapes for r in by_shape[s]]) for leader, shapes in members.items()]
    return tuple(sorted(found, key=lambda c: (-c.count, c.shape)))


def _cluster(shape: str, rows: list[dict[str, Any]]) -> Cluster:
    rows.sort(key=lambda r: (r["time"] is None, r["time"] or 0.0, r["incident"]))
    first = rows[0]
    return Cluster(
        shape=shape,
        count=len(rows),
        stages=_common(r["stage"] for r in rows),
        versions=_common(r["version"] for r in rows),
        guesses=_common(r["cause"] for r in rows),
        incidents=tuple(r["incident"] for r in rows),
        text=str(first["failure"] or first["headline"] or ""),
        path=str(first["path"] or first["name"]),
        line=int(first["line"] or 0),
    )


def _common(values: Iterable[Any], limit: int = 4) -> tuple[str, ...]:
    counts = Counter(str(v) for v in values if v)
    return tuple(sorted(counts, key=lambda v: (-counts[v], v))[:limit])
