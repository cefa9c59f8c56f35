"""The work on one incident, in whatever process an engine runs it: read, analyze, give the part back as bytes.

A part is a function of the incident's content, the options and the tool: no clock, no host, no local path.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import zstandard

from forensics.analysis import bundled_reports, masker, read_table, report
from forensics.engine.scan import scan
from forensics.errors import ForensicsError, InputError
from forensics.fleet.logs import Logs, opened_logs
from forensics.fleet.objects import problem_of
from forensics.fleet.plan import PART_FORMAT, Job, Settings
from forensics.fleet.rows import SURE, Rows, cause_of, empty_rows, rows_of
from forensics.fleet.spread import Reader, Spread
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge, load
from forensics.output.view import focus_of
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo, ProblemInfo, Report
from forensics.version import VERSION

SHARES = 16
"""Byte ranges of the smallest incident that is split; larger ones have more of the same size."""


@frozen
class Outcome:
    """What an engine gives back for one job. `data` is the part; `died` says why there is none; `nodes` on how many
    nodes its logs were read."""

    key: str
    data: bytes = b""
    died: str = ""
    nodes: int = 1


@lru_cache(maxsize=2)
def _knowledge(options: Options) -> Knowledge:
    """Loaded once per worker."""
    return load(options)


def run_job(job: Job, spread: Spread | None = None) -> Outcome:
    """Analyze one incident. Every failure of the incident is inside its part; nothing is raised. `spread` hands byte
    ranges of its logs to other workers, which changes nothing in the part."""
    return Outcome(job.incident.key, pack(_content(job, spread)))


def _content(job: Job, spread: Spread | None) -> dict[str, Any]:
    try:
        return _spread(job, spread) if spread else _analyzed(job)
    except ForensicsError as error:
        stated = getattr(error, "problems", None) or [problem_of(error, job.incident.name)]
        return _part(job, empty_rows(job, stated, "unreadable"), stated)
    except Exception as error:
        problem = ProblemInfo(
            message=f"internal error: {type(error).__name__}",
            path=job.incident.name,
            code="internal",
            hint="forensics analyze on this log alone writes a crash report",
        )
        return _part(job, empty_rows(job, [problem], "error"), [problem])


def _spread(job: Job, spread: Spread) -> dict[str, Any]:
    """With the help of other workers; where something is in the way (a store that stumbles, a path that only this node
    sees), alone, which also says what is wrong in the words of every engine."""
    try:
        return _analyzed(job, spread)
    except InputError:
        return _analyzed(job)


def died_part(job: Job, why: str) -> bytes:
    """The part of an incident whose worker died again and again. It is not final: a later run tries it anew."""
    hint = "too little memory is the usual reason: give a worker more, or run fewer at once"
    problem = ProblemInfo(message=why, path=job.incident.name, code="worker-died", hint=hint)
    return pack(_part(job, empty_rows(job, [problem], "error"), [problem]))


def _part(
    job: Job, rows: Rows, problems: Sequence[ProblemInfo], launch: dict[str, Any] | None = None
) -> dict[str, Any]:
    again = any(p.code.startswith("object-") or p.code in ("worker-died", "internal") for p in problems)
    return {
        "format": PART_FORMAT,
        "version": VERSION,
        "incident": job.incident.id,
        "key": job.incident.key,
        "name": job.incident.name,
        "final": not again,
        "tables": rows,
        "launch": launch,
    }


def pack(content: dict[str, Any]) -> bytes:
    """A part as bytes: JSON with a fixed order, compressed."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return zstandard.ZstdCompressor(level=3).compress(text.encode())


def unpack(data: bytes) -> dict[str, Any]:
    """A part from its bytes. ValueError where they are none."""
    try:
        found = json.loads(zstandard.ZstdDecompressor().decompress(data))
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    if not isinstance(found, dict):
        raise ValueError("not a part")
    return found


def _analyzed(job: Job, spread: Spread | None = None) -> dict[str, Any]:
    settings = job.settings
    options = replace(settings.options, processes=1 if spread else job.processes)
    knowledge = _knowledge(settings.options)
    with opened_logs(job.incident, settings, lazily=spread is not None) as logs:
        options = replace(options, env=(*options.env, *bundled_reports(logs.paths)))
        reader = _reader(spread, logs, settings) if spread else None
        table = scan(logs.sources, options, reader)
        reading = read_table(table, options, knowledge, problems=logs.problems)
        found = report(reading, options, knowledge)
        rows = rows_of(job, found, reading.cases, masker(options, knowledge.config.secrets))
    # what is wrong with the knowledge base is the same in every incident: it is told once, not in each part
    rows["problems"] = [r for r in rows["problems"] if r["path"] in {p.path for p in logs.problems}]
    return _part(job, rows, logs.problems, _unexplained(found))


def _reader(spread: Spread, logs: Logs, settings: Settings) -> Reader:
    least = max(1, settings.split_above // SHARES)
    return Reader(spread, logs.origins, least, settings.limits, settings.scratch, settings.storage)


def _unexplained(found: Report) -> dict[str, Any] | None:
    """The failed launch that no cause explains, kept so that a finding can be drafted from it later."""
    launch = focus_of(found)
    if launch is None or launch.first_failure is None:
        return None
    best = cause_of(launch)
    if best is not None and best.verdict in SURE:
        return None
    kept: LaunchInfo = launch.model_copy(update={"series": [], "timeline": None, "hypotheses": [], "next": []})
    return kept.model_dump()
