"""What a dataset says about the fleet, asked of its SQLite summary."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlite_utils

from forensics.errors import InputError
from forensics.fleet.clusters import Cluster, clusters
from forensics.fleet.dataset import SUMMARY, Dataset
from forensics.fleet.regress import Regression, regressions
from forensics.fleet.suspects import Suspect, suspects
from forensics.frozen import frozen

UNEXPLAINED = "(unexplained)"
_OLDEST = datetime(1990, 1, 1, tzinfo=UTC).timestamp()
"""Stamps before it come from logs whose lines hold no date."""


@frozen
class Cause:
    """One cause over the fleet. `over_time` pairs with `Summary.periods`; `nodes` counts machines."""

    cause: str
    title: str
    category: str
    count: int
    services: int
    nodes: int
    over_time: tuple[int, ...]


@frozen
class Share:
    """How many incidents of one version, GPU or machine failed, and of what most often."""

    name: str
    incidents: int
    failed: int
    causes: tuple[tuple[str, int], ...]


@frozen
class Summary:
    """Everything of `forensics fleet report`. `unread` incidents could not be analyzed and count nowhere else."""

    dataset: str
    incidents: int
    failed: int
    unexplained: int
    unread: int
    bytes: int
    periods: tuple[str, ...]
    causes: tuple[Cause, ...]
    versions: tuple[Share, ...]
    gpus: tuple[Share, ...]
    nodes: tuple[Share, ...]
    clusters: tuple[Cluster, ...]
    regressions: tuple[Regression, ...]
    suspects: tuple[Suspect, ...]
    never: tuple[tuple[str, str], ...]
    findings: int
    problems: tuple[tuple[str, int, str], ...]


def summarize(folder: Path) -> Summary:
    """Read the summary of a dataset. Raises InputError where the folder holds none."""
    Dataset(folder, create=False)
    try:
        uri = f"{(folder / SUMMARY).absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as connection:
            return _summary(folder, sqlite_utils.Database(connection))
    except (sqlite3.Error, KeyError) as error:
        raise InputError(f"{folder / SUMMARY}: cannot be read ({error})", hint="run forensics fleet again") from None


def label(row: dict[str, Any]) -> str:
    """The cause under which an incident that failed is counted."""
    return str(row["cause"]) if row["explained"] else UNEXPLAINED


def _summary(folder: Path, db: Any) -> Summary:
    rows = list(db["incidents"].rows_where(order_by="incident"))
    read = [r for r in rows if r["status"] == "ok"]
    failed = [r for r in read if r["failed"]]
    lost = [r for r in failed if not r["explained"]]
    findings = {r["id"]: r["title"] for r in db["findings"].rows_where(order_by="id")}
    matched = {r["finding"] for r in db.query("select distinct finding from hypotheses where verdict != 'ruled-out'")}
    periods, owner = _periods(failed)
    return Summary(
        dataset=folder.name or str(folder),
        incidents=len(rows),
        failed=len(failed),
        unexplained=len(lost),
        unread=len(rows) - len(read),
        bytes=sum(int(r["bytes"] or 0) for r in rows),
        periods=periods,
        causes=_causes(failed, findings, periods, owner),
        versions=_shares(read, "version"),
        gpus=_shares(read, "gpu"),
        nodes=_shares(read, "node"),
        clusters=clusters(lost),
        regressions=regressions(read, label),
        suspects=suspects(read, label),
        never=tuple((i, str(t)) for i, t in findings.items() if i not in matched),
        findings=len(findings),
        problems=_problems(db),
    )


def _causes(
    failed: Sequence[dict[str, Any]], titles: dict[str, Any], periods: tuple[str, ...], owner: dict[str, str]
) -> tuple[Cause, ...]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in failed:
        groups[label(row)].append(row)
    found = []
    for cause, rows in groups.items():
        when = Counter(owner[r["incident"]] for r in rows)
        known = cause != UNEXPLAINED
        found.append(
            Cause(
                cause=cause,
                title=str(titles.get(cause) or rows[0]["title"] or "") if known else "no cause that is at least likely",
                category=str(rows[0]["category"] or "") if known else "",
                count=len(rows),
                services=len({r["service"] for r in rows}),
                nodes=len({r["node"] for r in rows if r["node"]}),
                over_time=tuple(when[p] for p in periods),
            )
        )
    return tuple(sorted(found, key=lambda c: (-c.count, c.cause)))


def _periods(failed: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Hours, days, weeks or months, whichever gives few enough columns; and the period of every incident."""
    times = sorted(t for t in (r["time"] for r in failed) if t is not None and t >= _OLDEST)
    span = times[-1] - times[0] if times else 0.0
    step = "hour" if span <= 12 * 3600 else "day" if span <= 14 * 86400 else "week" if span <= 98 * 86400 else "month"
    owner = {r["incident"]: _period(r["time"], step) for r in failed}
    return tuple(sorted(set(owner.values()), key=lambda p: (p == _NO_DATE, p))), owner


_NO_DATE = "no date"


def _period(time: float | None, step: str) -> str:
    if time is None or time < _OLDEST:
        return _NO_DATE
    when = datetime.fromtimestamp(time, UTC)
    if step == "hour":
        return when.strftime("%Y-%m-%d %H:00")
    if step == "month":
        return when.strftime("%Y-%m")
    day = when - timedelta(days=when.weekday()) if step == "week" else when
    return day.strftime("%Y-%m-%d")


def _shares(read: Sequence[dict[str, Any]], column: str) -> tuple[Share, ...]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in read:
        groups[str(row[column] or "unknown")].append(row)
    found = []
    for name, rows in groups.items():
        causes = Counter(label(r) for r in rows if r["failed"])
        top = sorted(causes.items(), key=lambda c: (-c[1], c[0]))[:3]
        found.append(Share(name, len(rows), sum(causes.values()), tuple(top)))
    return tuple(sorted(found, key=lambda s: (-s.failed, -s.incidents, s.name)))


def _problems(db: Any) -> tuple[tuple[str, int, str], ...]:
    """Kinds of problems: code, how often, one example."""
    found = db.query(
        "select coalesce(code, '') as code, count(*) as count, min(message) as example from problems "
        "group by 1 order by 2 desc, 1"
    )
    return tuple((str(r["code"]), int(r["count"]), str(r["example"])) for r in found)
