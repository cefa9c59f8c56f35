"""The logs of one incident, opened under the names that people know: local ones where they lie, remote ones in a folder
that vanishes afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from forensics.errors import InputError
from forensics.fleet.objects import LogObject, problem_of
from forensics.fleet.plan import Incident, Settings
from forensics.frozen import frozen
from forensics.ingest.bundle import SEPARATOR
from forensics.ingest.inputs import open_inputs
from forensics.ingest.sources import Source, node_hint
from forensics.schema.report import ProblemInfo

Fetch = Callable[[int, int], bytes]
"""Bytes [start, stop) of an object."""


@frozen
class Logs:
    """`paths` are the local files. `origins`: location and stored size of every source that is an object of its own, by
    its name; another worker can open that."""

    sources: tuple[Source, ...]
    problems: tuple[ProblemInfo, ...]
    paths: tuple[str, ...]
    origins: Mapping[str, tuple[str, int]]


class NothingRead(InputError):
    """No log of an incident could be read; `problems` says why, one by one."""

    def __init__(self, problems: Sequence[ProblemInfo]) -> None:
        super().__init__(problems[0].message, code=problems[0].code, hint=problems[0].hint)
        self.problems = list(problems)


@dataclass(slots=True)
class _Spool:
    """What lies on the local disk: `shown` local path → shown name, `hollow` those that fill themselves."""

    shown: dict[str, str] = field(default_factory=dict)
    hollow: dict[str, Fetch] = field(default_factory=dict)
    problems: list[ProblemInfo] = field(default_factory=list)


@contextmanager
def opened_logs(incident: Incident, settings: Settings, lazily: bool = False) -> Iterator[Logs]:
    """Every log that can be opened; what cannot be is a problem. Raises InputError where none can.

    `lazily`: remote logs are read where somebody looks, and the first trouble is raised."""
    remote = any(o.remote for o in incident.objects)
    folder = Path(tempfile.mkdtemp(prefix="forensics-fleet-", dir=settings.scratch or None)) if remote else Path()
    sources: tuple[Source, ...] = ()
    try:
        spool = _fetched(incident, settings, folder, lazily)
        sources, problems = _opened(spool)
        origins = {o.name: (o.location, o.size) for o in incident.objects}
        yield Logs(sources, (*spool.problems, *problems), tuple(spool.shown), origins)
    finally:
        for source in sources:
            source.close()
        if remote:
            shutil.rmtree(folder, ignore_errors=True)


def _fetched(incident: Incident, settings: Settings, folder: Path, lazily: bool) -> _Spool:
    spool = _Spool()
    left = settings.limits.spool
    for number, item in enumerate(incident.objects):
        if not item.remote:
            spool.shown[item.location] = item.name
            continue
        target = folder / str(number) / item.name.rpartition("/")[2]
        target.parent.mkdir()
        try:
            left -= _put(item, target, replace(settings, limits=replace(settings.limits, spool=left)), spool, lazily)
        except InputError as error:
            if lazily:
                raise
            target.unlink(missing_ok=True)
            spool.problems.append(problem_of(error, item.name))
    if not spool.shown:
        raise NothingRead(spool.problems)
    return spool


def _put(item: LogObject, target: Path, settings: Settings, spool: _Spool, lazily: bool) -> int:
    """One remote log onto the disk; gives the bytes that it takes there."""
    if lazily:
        from forensics.fleet.lazy import hollow

        read = hollow(item.location, item.size, settings.storage, target, settings.limits)
        if read is not None:
            spool.hollow[str(target)] = read
        size = item.size
    else:
        from forensics.fleet.remote import fetch

        size = fetch(item.location, item.size, settings.storage, target, settings.limits)
    spool.shown[str(target)] = item.name
    return size


def _opened(spool: _Spool) -> tuple[tuple[Source, ...], tuple[ProblemInfo, ...]]:
    """The logs opened and called by the names that people know."""
    shown = spool.shown
    try:
        inputs = open_inputs(list(shown))
    except InputError as error:
        path = next((p for p in shown if p in error.message), next(iter(shown)))
        message = error.message.replace(path, shown[path])
        raise NothingRead([ProblemInfo(message=message, path=shown[path], code=error.code, hint=error.hint)]) from None
    sources = tuple(_filling(source, spool) for source in inputs.sources)
    for source in sources:
        _rename(source, shown)
    return sources, tuple(_renamed(p, shown) for p in inputs.problems)


def _filling(source: Source, spool: _Spool) -> Source:
    read = spool.hollow.get(source.name)
    if read is None:
        return source
    from forensics.fleet.lazy import filled

    return filled(source, Path(source.name), read)


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
