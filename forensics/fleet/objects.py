"""From the names that the user gave to the objects of a fleet: folders, globs and URLs, listed but not read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from forensics.errors import ForensicsError, InputError
from forensics.frozen import frozen
from forensics.ingest.folder import is_log_file
from forensics.ingest.inputs import expand
from forensics.schema.report import ProblemInfo

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)
_FILE_URL = "file://"
MAX_OBJECTS = 2_000_000

Storage = dict[str, dict[str, Any]]
"""Options of each fsspec protocol (`{"s3": {"endpoint_url": …}}`). Never written to a dataset: they hold keys."""


@frozen
class LogObject:
    """One log of the fleet. `name` is how it is shown, `location` where it is read (an absolute path, or a URL),
    `size` its stored bytes, `stamp` what changes when its content does (modification time, ETag, version)."""

    name: str
    location: str
    size: int
    stamp: str

    @property
    def remote(self) -> bool:
        """Whether it has to be fetched before it can be read at random."""
        return is_url(self.location)


@frozen
class Listing:
    """`objects` sorted by name, each once; `problems` name what could not be listed."""

    objects: tuple[LogObject, ...]
    problems: tuple[ProblemInfo, ...] = field(default=())


def is_url(name: str) -> bool:
    """Whether a name is a URL that fsspec has to open (`file://` is a path like any other)."""
    return _URL.match(name) is not None and not name.lower().startswith(_FILE_URL)


def list_objects(names: Sequence[str], storage: Storage | None = None) -> Listing:
    """All logs that the names stand for. Raises InputError where nothing at all was found, UsageError where a URL needs
    a package that is not installed."""
    if not names:
        raise InputError("no input was named", hint="name folders, globs or URLs of logs")
    found: dict[str, LogObject] = {}
    problems: list[ProblemInfo] = []
    for name in dict.fromkeys(names):
        try:
            for item in _remote(name, storage or {}) if is_url(name) else _local(name):
                found.setdefault(item.location, item)
        except InputError as error:
            problems.append(problem_of(error, name))
        if len(found) > MAX_OBJECTS:
            raise InputError(f"more than {MAX_OBJECTS} logs", hint="name a smaller part, such as one day")
    if not found:
        first = problems[0]
        raise InputError(first.message, code=first.code, hint=first.hint)
    return Listing(tuple(sorted(found.values(), key=lambda o: o.name)), tuple(problems))


def _local(name: str) -> list[LogObject]:
    plain = name[len(_FILE_URL) :] if name.lower().startswith(_FILE_URL) else name
    items = []
    for path in _walk(plain):
        state = path.stat()
        items.append(LogObject(str(path), str(path.absolute()), state.st_size, f"mtime {state.st_mtime_ns}"))
    return items


def _walk(name: str) -> list[Path]:
    """As `analyze` finds them, but without its bound on the number of files of one incident."""
    path = Path(name)
    if not path.is_dir():
        return list(expand(name).logs)
    found = [
        p
        for p in path.rglob("*")
        if p.is_file() and is_log_file(p) and not any(s.startswith(".") for s in p.relative_to(path).parts)
    ]
    return sorted(found) or list(expand(name).logs)


def _remote(name: str, storage: Storage) -> list[LogObject]:
    from forensics.fleet.remote import expand_url

    return expand_url(name, storage)


def problem_of(error: ForensicsError, path: str) -> ProblemInfo:
    """An error as a report lists it."""
    return ProblemInfo(message=error.message, path=path, code=error.code, hint=error.hint)
