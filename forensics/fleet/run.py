"""A fleet from names to dataset: list, peek, group, analyze what is not done yet, make the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from forensics.engine.forked import cores
from forensics.fleet.dataset import Dataset, parquet_library
from forensics.fleet.engine import Engine
from forensics.fleet.group import Seen, compiled_pattern, group, group_by
from forensics.fleet.job import died_part
from forensics.fleet.objects import Listing, list_objects
from forensics.fleet.peek import Peek, peek_all
from forensics.fleet.plan import Incident, Settings, common_key, incident_of, jobs, portable
from forensics.fleet.progress import Meter
from forensics.frozen import frozen
from forensics.knowledge.store import load
from forensics.version import VERSION


@frozen
class Planned:
    """What was found and how it falls into incidents."""

    listing: Listing
    incidents: tuple[Incident, ...]
    settings: Settings


@frozen
class Result:
    """Counts of a run. `skipped` were finished by an earlier one, `bad` could not be analyzed, `spread` were read on
    several nodes at once."""

    incidents: int
    analyzed: int
    skipped: int
    failed: int
    bad: int
    problems: int
    spread: int = 0


def plan(names: Sequence[str], settings: Settings, by: str = "") -> Planned:
    """List and group everything. Raises InputError where nothing was found, UsageError for a bad pattern."""
    for pattern, flag in ((by, "--group-by"), (settings.node_by, "--node-by"), (settings.service_by, "--service-by")):
        if pattern:
            compiled_pattern(pattern, flag)
    settings = replace(settings, options=portable(settings.options))
    listing = list_objects(names, settings.storage)
    remote = any(o.remote for o in listing.objects)
    threads = 32 if remote else 1
    peeks = peek_all(listing.objects, settings.storage, settings.limits.stall, threads, cores())
    seen = [Seen(o, p) for o, p in zip(listing.objects, peeks, strict=True)]
    groups = group_by(seen, by) if by else group(seen)
    by_location: dict[str, Peek] = {s.item.location: s.peek for s in seen}
    common = common_key(settings)
    incidents = tuple(incident_of(objects, by_location, common) for objects in groups)
    return Planned(listing, incidents, settings)


def run(planned: Planned, folder: Path, engine: Engine, parquet: bool = True, quiet: bool = False) -> Result:
    """Analyze what no earlier run finished, then make the tables. Interrupted at any place, the same call goes on."""
    if parquet:
        parquet_library()
    dataset = Dataset(folder)
    knowledge = load(planned.settings.options)
    todo = [i for i in planned.incidents if not dataset.finished(i)]
    by_key = {job.incident.key: job for job in jobs(todo, planned.settings)}
    spread = 0
    with Meter(len(todo), sum(i.size for i in todo), quiet) as meter:
        for outcome in engine.run(list(by_key.values())):
            job = by_key[outcome.key]
            data = outcome.data or died_part(job, outcome.died)
            dataset.write_part(outcome.key, data)
            spread += outcome.nodes > 1
            meter.tell(job.incident.size, bool(outcome.died))
    about = {"tool": "forensics", "version": VERSION, "incidents": len(planned.incidents),
             "logs": len(planned.listing.objects), "bytes": sum(o.size for o in planned.listing.objects)}  # fmt: skip
    dataset.finish(planned.incidents, knowledge.findings, planned.listing.problems, about, parquet)
    return replace(_result(dataset, planned, len(todo)), spread=spread)


def _result(dataset: Dataset, planned: Planned, analyzed: int) -> Result:
    failed, bad, problems = dataset.counts()
    count = len(planned.incidents)
    return Result(count, analyzed, count - analyzed, failed, bad, problems)
