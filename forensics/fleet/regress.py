"""What became worse with a change of the sglang version: in one service as it was upgraded, and over the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from forensics.fleet.chance import adjusted, fisher_tail
from forensics.frozen import frozen

LIMIT = 0.05
FLEET = "all services"
ANY = "any failure"


@frozen
class Regression:
    """Incidents with this cause: `failed_before` of `all_before` on the version before, `failed_after` of `all_after`
    on the version after. `q` is the exact one-sided probability, corrected for the number of comparisons."""

    service: str
    before: str
    after: str
    cause: str
    failed_before: int
    all_before: int
    failed_after: int
    all_after: int
    p: float
    q: float


@frozen
class _Compared:
    service: str
    before: str
    after: str
    cause: str
    counts: tuple[int, int, int, int]

    @property
    def p(self) -> float:
        return fisher_tail(*self.counts)


def regressions(rows: Sequence[dict[str, Any]], label: Callable[[dict[str, Any]], str]) -> tuple[Regression, ...]:
    """Changes of version after which a cause is more frequent than chance allows, the least likely first."""
    known = [r for r in rows if r["version"] and r["time"] is not None]
    tested = [c for service, own in _scopes(known) for c in _compare(service, own, label)]
    values = [c.p for c in tested]
    found = []
    for compared, p, q in zip(tested, values, adjusted(values), strict=True):
        if q >= LIMIT:
            continue
        k_after, n_after, k_before, n_before = compared.counts
        found.append(
            Regression(compared.service, compared.before, compared.after, compared.cause, k_before, n_before, k_after,
                       n_after, p, q)
        )  # fmt: skip
    return tuple(sorted(found, key=lambda r: (r.p, r.service, r.after, r.cause)))


def _scopes(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The whole fleet, then each service that ran more than one version."""
    yield FLEET, list(rows)
    services: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        services[str(row["service"])].append(row)
    for service, own in sorted(services.items()):
        if len(services) > 1 and len({r["version"] for r in own}) > 1:
            yield service, own


def _compare(service: str, rows: list[dict[str, Any]], label: Callable[[dict[str, Any]], str]) -> Iterator[_Compared]:
    """Each version with the one that was seen first before it."""
    versions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda r: (r["time"], r["incident"])):
        versions[str(row["version"])].append(row)
    for (old, before), (new, after) in pairwise(versions.items()):
        causes = sorted({label(r) for r in after if r["failed"]})
        for cause in (*causes, ANY) if len(causes) > 1 else causes:
            yield _Compared(
                service,
                old,
                new,
                cause,
                (_count(after, cause, label), len(after), _count(before, cause, label), len(before)),
            )


def _count(rows: Sequence[dict[str, Any]], cause: str, label: Callable[[dict[str, Any]], str]) -> int:
    return sum(bool(r["failed"]) and (cause == ANY or label(r) == cause) for r in rows)
