"""One incident's report as rows of the dataset's tables."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from forensics.engine.table import Series
from forensics.fleet.group import captured, compiled_pattern, service_of
from forensics.fleet.plan import Job
from forensics.ingest.sources import node_hint
from forensics.output.clean import clean
from forensics.output.view import focus_of, main_place
from forensics.rulebook.case import Case
from forensics.schema.report import HypothesisInfo, LaunchInfo, ProblemInfo, Report, Where

Row = dict[str, Any]
Rows = dict[str, list[Row]]
SURE = ("established", "likely")
_TEXT = 500
_NUMBER = re.compile(r"\b\d[\d.,]*\b")


def rows_of(job: Job, report: Report, cases: Sequence[Case], mask: Callable[[str], str]) -> Rows:
    """Rows of every table. `cases` are the launches as read: times and series come from them."""
    incident = job.incident.id
    by_id = {c.launch.id: c for c in cases}
    out: Rows = {name: [] for name in ("launches", "hypotheses", "failures", "facts", "series")}
    for launch in report.launches:
        case = by_id[launch.id]
        out["launches"].append(_launch(incident, launch, case))
        out["hypotheses"] += [_hypothesis(incident, launch, h, i) for i, h in enumerate(launch.hypotheses, 1)]
        out["failures"] += _failures(incident, launch, case)
        out["facts"] += _facts(incident, launch, mask)
    out["series"] = _series(incident, cases)
    out["incidents"] = [_incident(job, report, out["launches"])]
    out["problems"] = problem_rows(incident, report.problems)
    return out


def empty_rows(job: Job, problems: Sequence[ProblemInfo], status: str) -> Rows:
    """Rows of an incident of which nothing could be read."""
    row = {**_named(job), "status": status, "launches": 0, "failed_launches": 0, "failed": False, "explained": False}
    return {"incidents": [row], "problems": problem_rows(job.incident.id, problems)}


def problem_rows(incident: str, problems: Sequence[ProblemInfo]) -> list[Row]:
    """Problems as rows."""
    return [
        {"incident": incident, "message": _short(p.message), "path": p.path, "line": p.line, "code": p.code,
         "hint": p.hint}
        for p in problems
    ]  # fmt: skip


def cause_of(launch: LaunchInfo) -> HypothesisInfo | None:
    """The best hypothesis that is not ruled out."""
    return next((h for h in launch.hypotheses if h.verdict != "ruled-out"), None)


def _label(found: HypothesisInfo | None) -> str | None:
    if found is None:
        return None
    title = _short(found.title, 120)
    # an unknown failure is named by its own words: numbers in them would part incidents that belong together
    return found.finding or f"{found.kind}: {_NUMBER.sub('N', title) if found.kind == 'engine' else title}"


def _named(job: Job) -> Row:
    """What is known of an incident before it is read."""
    incident, settings = job.incident, job.settings
    names = [o.name for o in incident.objects]
    nodes = sorted({n for n in (machine_of(name, settings.node_by) for name in names) if n})
    service = ""
    if settings.service_by:
        service = captured(compiled_pattern(settings.service_by, "--service-by"), names[0])
    return {
        "incident": incident.id,
        "part": incident.key,
        "name": incident.name,
        "service": service or service_of(incident.name),
        "node": nodes[0] if len(nodes) == 1 else None,
        "nodes": " ".join(nodes),
        "files": len(names),
        "bytes": incident.size,
    }


def machine_of(name: str, pattern: str) -> str:
    """The machine that a log comes from: what `--node-by` takes out of its name, else `node3` where it says so."""
    if pattern:
        return captured(compiled_pattern(pattern, "--node-by"), name)
    return node_hint(name) or ""


def _incident(job: Job, report: Report, launches: Sequence[Row]) -> Row:
    launch = focus_of(report)
    row = {
        **_named(job),
        "status": "ok",
        "lines": sum(s.lines for s in report.sources),
        "launches": len(report.launches),
        "failed_launches": sum(bool(x["failed"]) for x in launches),
        "failed": report.failed() or any(x["failed"] for x in launches),
        "headline": _short(report.headline),
    }
    if launch is None:
        return {**row, "explained": False}
    own = next(x for x in launches if x["launch"] == launch.id)
    first, best = launch.first_failure, cause_of(launch)
    failure = next((f for f in launch.failures if first and f.id == first.failure), None)
    facts = {name: f.value for name, f in launch.facts.items()}
    if first is not None:
        row["node"] = machine_of(first.where.path, job.settings.node_by) or row["node"]
    count = facts.get("gpu.count")
    return {
        **row,
        **{k: own[k] for k in ("begin", "time", "ended", "reached", "cause", "verdict", "explained", "failure",
                               "stage", "rank", "version")},
        "title": _short(best.title) if best else None,
        "category": best.category if best else None,
        "mechanism": _short(failure.mechanism) if failure else None,
        "component": first.component if first else None,
        **_place(first.where if first else None),
        "version_low": launch.version.low,
        "version_high": launch.version.high,
        "gpu": _text(facts.get("gpu.name") or (f"sm{facts['gpu.sm']}" if facts.get("gpu.sm") else None)),
        "gpu_count": int(count) if isinstance(count, int | float) else None,
        "model": _text(facts.get("model.name")),
    }  # fmt: skip


def _launch(incident: str, launch: LaunchInfo, case: Case) -> Row:
    best, first = cause_of(launch), launch.first_failure
    failed = first is not None or launch.ended == "hung"
    begin, time = launch_times(case)
    return {
        "incident": incident,
        "launch": launch.id,
        "path": launch.path,
        "first_line": launch.lines[0],
        "last_line": launch.lines[1],
        "begin": begin,
        "time": time,
        "reached": launch.reached,
        "ended": launch.ended,
        "failed": failed,
        "cause": _label(best),
        "verdict": best.verdict if best else None,
        "explained": best is not None and best.verdict in SURE,
        "failure": _short(first.text) if first else None,
        "stage": first.stage if first else None,
        "rank": first.rank if first else None,
        "version": launch.version.exact or _interval(launch.version.low, launch.version.high),
    }


def _interval(low: str | None, high: str | None) -> str | None:
    """An inferred version as it is shown: `0.5.9`, `0.5.7..0.5.9`, `>=0.5.7`."""
    if low and high:
        return low if low == high else f"{low}..{high}"
    return f">={low}" if low else (f"<={high}" if high else None)


def launch_times(case: Case) -> tuple[float | None, float | None]:
    """When a launch began, and when it first failed (its begin where it did not), in the log's own clock."""
    times = case.table.time[case.launch.rows]
    times = times[~np.isnan(times)]
    begin = float(times.min()) if len(times) else None
    failure = case.launch.failure(case.launch.first_failure)
    return begin, (case.table.time_of(failure.row) if failure else None) or begin


def _hypothesis(incident: str, launch: LaunchInfo, found: HypothesisInfo, position: int) -> Row:
    return {
        "incident": incident,
        "launch": launch.id,
        "hypothesis": found.id,
        "position": position,
        "kind": found.kind,
        "finding": found.finding,
        "title": _short(found.title),
        "category": found.category,
        "verdict": found.verdict,
        "explains": " ".join(found.explains),
        "why": _short(found.why),
        **_place(main_place(found, launch)),
    }


def _failures(incident: str, launch: LaunchInfo, case: Case) -> list[Row]:
    rows_by_id = {f.id: f.row for f in case.launch.failures}
    first = launch.first_failure.failure if launch.first_failure else None
    return [
        {
            "incident": incident,
            "launch": launch.id,
            "failure": f.id,
            "role": f.role,
            "outcome": f.outcome,
            "count": f.count,
            "ranks": ", ".join(f.ranks),
            "stage": f.stage,
            "component": f.component,
            "mechanism": _short(f.mechanism),
            "signals": " ".join(f.signals),
            "text": _short(f.text),
            **_place(f.where),
            "time": case.table.time_of(rows_by_id[f.id]) if f.id in rows_by_id else None,
            "first": f.id == first,
        }
        for f in launch.failures
    ]


def _facts(incident: str, launch: LaunchInfo, mask: Callable[[str], str]) -> list[Row]:
    rows = []
    for name, fact in sorted(launch.facts.items()):
        value = fact.value
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        if number is not None and not math.isfinite(number):
            number = None
        rows.append({"incident": incident, "launch": launch.id, "name": name, "value": _short(mask(text)),
                     "number": number, "how": fact.how, **_place(fact.where)})  # fmt: skip
    return rows


def _series(incident: str, cases: Sequence[Case]) -> list[Row]:
    """Batch metrics per launch and rank, as five numbers and their count."""
    if not cases:
        return []
    table = cases[0].table
    starts = np.array([int(c.launch.rows[0]) if len(c.launch.rows) else 0 for c in cases], np.int64)
    rows = []
    for kind, series in sorted(table.series.items()):
        owner = np.maximum(np.searchsorted(starts, series.row, side="right") - 1, 0)
        for number, case in enumerate(cases):
            for rank in sorted(set(series.rank[owner == number].tolist())):
                pick = (owner == number) & (series.rank == rank)
                shown = str(table.ranks[rank]) if rank >= 0 else ""
                rows += _metrics({"incident": incident, "launch": case.launch.id, "kind": kind, "rank": shown},
                                 series, pick)  # fmt: skip
    return rows


def _metrics(head: Row, series: Series, pick: Any) -> list[Row]:
    rows = []
    for metric, column in sorted(series.columns.items()):
        values = column[pick]
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        low, middle, p95, high = (float(v) for v in np.percentile(values, (0, 50, 95, 100)))
        mean = math.fsum(values.tolist()) / len(values)
        rows.append({**head, "metric": metric, "count": len(values), "low": low, "median": middle, "p95": p95,
                     "high": high, "mean": mean})  # fmt: skip
    return rows


def _place(where: Where | None) -> Row:
    return {"path": where.path, "line": where.line} if where else {"path": None, "line": None}


def _text(value: Any) -> str | None:
    return _short(str(value), 200) if value not in (None, "") else None


def _short(text: str, limit: int = _TEXT) -> str:
    return clean(text, limit)
