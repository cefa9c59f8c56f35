"""The work on one incident, in whatever process an engine runs it: read, analyze, give the part back as bytes.

A part is a function of the incident's content, the options and the tool: no clock, no host, no local path.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import zstandard

from forensics.analysis import bundled_reports, masker, read_table, report
from forensics.engine.scan import scan
from forensics.errors import ForensicsError, InputError
from forensics.fleet.objects import problem_of
from forensics.fleet.plan import PART_FORMAT, Job
from forensics.fleet.rows import SURE, Rows, cause_of, empty_rows, rows_of
from forensics.ingest.bundle import SEPARATOR
from forensics.ingest.inputs import Inputs, open_inputs
from forensics.ingest.sources import Source, node_hint
from forensics.knowledge.store import Knowledge, load
from forensics.output.view import focus_of
from forensics.rulebook.case import Case
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo, ProblemInfo, Report
from forensics.version import VERSION


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine gives back for one job. `data` is the part; `died` says why there is none."""

    key: str
    data: bytes = b""
    died: str = ""


@lru_cache(maxsize=2)
def _knowledge(options: Options) -> Knowledge:
    """Loaded once per worker."""
    return load(options)


def run_job(job: Job) -> Outcome:
    """Analyze one incident. Every failure of the incident is inside its part; nothing is raised."""
    return Outcome(job.incident.key, pack(_content(job)))


def _content(job: Job) -> dict[str, Any]:
    try:
        with _fetched(job) as (shown, problems):
            return _analyzed(job, shown, problems)
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


class NothingRead(InputError):
    """No log of an incident could be read; `problems` says why, one by one."""

    def __init__(self, problems: Sequence[ProblemInfo]) -> None:
        super().__init__(problems[0].message, code=problems[0].code, hint=problems[0].hint)
        self.problems = list(problems)


@contextmanager
def _fetched(job: Job) -> Iterator[tuple[dict[str, str], list[ProblemInfo]]]:
    """Local path → shown name of every log, remote ones fetched into a folder that vanishes afterwards."""
    problems: list[ProblemInfo] = []
    shown: dict[str, str] = {}
    remote = [o for o in job.incident.objects if o.remote]
    if not remote:
        yield {o.location: o.name for o in job.incident.objects}, problems
        return
    settings = job.settings
    folder = Path(tempfile.mkdtemp(prefix="forensics-fleet-", dir=settings.scratch or None))
    try:
        from forensics.fleet.remote import fetch

        left = settings.limits.spool
        for number, item in enumerate(job.incident.objects):
            if not item.remote:
                shown[item.location] = item.name
                continue
            target = folder / str(number) / item.name.rpartition("/")[2]
            target.parent.mkdir()
            try:
                left -= fetch(item.location, item.size, settings.storage, target, replace(settings.limits, spool=left))
                shown[str(target)] = item.name
            except InputError as error:
                target.unlink(missing_ok=True)
                problems.append(problem_of(error, item.name))
        if not shown:
            raise NothingRead(problems)
        yield shown, problems
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _analyzed(job: Job, shown: dict[str, str], problems: list[ProblemInfo]) -> dict[str, Any]:
    options = replace(job.settings.options, processes=job.processes)
    knowledge = _knowledge(job.settings.options)
    opened = _opened(shown)
    try:
        options = replace(options, env=(*options.env, *bundled_reports(list(shown))))
        table = scan(opened.sources, options)
        stated = tuple(problems) + opened.problems
        reading = read_table(table, options, knowledge, problems=stated)
        found = report(reading, options, knowledge)
        rows = rows_of(job, found, reading.cases, masker(options, knowledge.config.secrets))
    finally:
        for source in opened.sources:
            source.close()
    # what is wrong with the knowledge base is the same in every incident: it is told once, not in each part
    rows["problems"] = [r for r in rows["problems"] if r["path"] in {p.path for p in stated}]
    return _part(job, rows, stated, _unexplained(found, reading.cases))


def _opened(shown: dict[str, str]) -> Inputs:
    """The logs opened and called by the names that people know."""
    try:
        inputs = open_inputs(list(shown))
    except InputError as error:
        path = next((p for p in shown if p in error.message), next(iter(shown)))
        message = error.message.replace(path, shown[path])
        raise NothingRead([ProblemInfo(message=message, path=shown[path], code=error.code, hint=error.hint)]) from None
    for source in inputs.sources:
        _rename(source, shown)
    return Inputs(inputs.sources, tuple(_renamed(p, shown) for p in inputs.problems))


def _rename(source: Source, shown: dict[str, str]) -> None:
    local, bang, member = source.name.partition(SEPARATOR) if source.name not in shown else (source.name, "", "")
    source.notes = tuple(note.replace(local, shown[local]) for note in source.notes)
    source.name = f"{shown[local]}{bang}{member}"
    if not bang:
        source.node = node_hint(source.name)


def _renamed(problem: ProblemInfo, shown: dict[str, str]) -> ProblemInfo:
    local = problem.path or ""
    name = shown.get(local, local)
    return problem.model_copy(update={"path": name, "message": problem.message.replace(local, name)})


def _unexplained(found: Report, cases: Sequence[Case]) -> dict[str, Any] | None:
    """The failed launch that no cause explains, kept so that a finding can be drafted from it later."""
    launch = focus_of(found)
    if launch is None or launch.first_failure is None:
        return None
    best = cause_of(launch)
    if best is not None and best.verdict in SURE:
        return None
    kept: LaunchInfo = launch.model_copy(update={"series": [], "timeline": None, "hypotheses": [], "next": []})
    return kept.model_dump(mode="json", by_alias=True)
