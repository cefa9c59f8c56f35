"""What is to be done: incidents with their keys, and the settings that all of them share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path

from forensics.fleet.objects import LogObject, Storage
from forensics.fleet.peek import Peek
from forensics.fleet.remote import Limits
from forensics.frozen import frozen
from forensics.knowledge.read_root import files_of
from forensics.knowledge.roots import load_config, roots
from forensics.schema.options import Options
from forensics.version import VERSION

PART_FORMAT = 2
"""Counts up when the content of a part changes its form: parts of older forms are made anew."""


@frozen
class Settings:
    """What every incident is analyzed with. `node_by`, `service_by`: RE2 patterns that take the machine's and the
    service's name out of a log's name ("" : by the program's own rules). `split_above`: bytes from which one incident
    is read by `split` processes, each with its own byte range."""

    options: Options = field(default_factory=Options)
    node_by: str = ""
    service_by: str = ""
    split_above: int = 2 << 30
    split: int = 2
    limits: Limits = field(default_factory=Limits)
    storage: Storage = field(default_factory=dict, compare=False, repr=False)
    scratch: str = ""


@frozen
class Incident:
    """One unit of work. `id` names its logs, `key` also their content, the options and the tool: equal keys give equal
    parts, byte for byte."""

    id: str
    key: str
    objects: tuple[LogObject, ...]

    @property
    def size(self) -> int:
        """Stored bytes of all its logs."""
        return sum(o.size for o in self.objects)

    @property
    def name(self) -> str:
        """How a person calls it: its first log."""
        return self.objects[0].name


@frozen
class Job:
    """An incident with everything that a worker needs. `processes` read it by byte ranges."""

    incident: Incident
    settings: Settings
    processes: int = 1


def portable(options: Options) -> Options:
    """Options whose paths hold wherever a worker was started; one process, no progress calls."""

    def whole(paths: Iterable[Path]) -> tuple[Path, ...]:
        return tuple(p.absolute() for p in paths)

    config = options.config or (Path("forensics.toml") if Path("forensics.toml").is_file() else None)
    return replace(
        options,
        env=whole(options.env),
        kb=whole(options.kb),
        rules=whole(options.rules),
        config=config.absolute() if config else None,
        processes=1,
        progress=None,
    )


def knowledge_digest(options: Options) -> str:
    """Digest of every rule, finding and deployment that takes part, and of what switches them on or off."""
    digest = hashlib.sha256()
    config = load_config(options)
    digest.update(repr((sorted(config.disabled), config.namespace, sorted(config.replace_ids), config.override,
                        sorted(config.secrets))).encode())  # fmt: skip
    for root in roots(options, config):
        files = files_of(root)
        for path in (*files.rules, *files.findings, *files.deployments):
            content = path.read_bytes()
            digest.update(f"{path.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def common_key(settings: Settings) -> str:
    """The part of every key that no log has a say in: tool, knowledge, options."""
    options = settings.options
    told = {k: v for k, v in _plain(options).items() if k not in ("processes", "chunk_bytes", "engine", "progress")}
    for name in ("env", "baseline", "history"):
        told[f"{name} content"] = [_content(Path(p)) for p in _paths(getattr(options, name))]
    stated = [VERSION, PART_FORMAT, told, settings.node_by, settings.service_by, knowledge_digest(options)]
    return hashlib.sha256(json.dumps(stated, sort_keys=True).encode()).hexdigest()


def _plain(options: Options) -> dict[str, object]:
    found = asdict(replace(options, progress=None))
    skipped = ("kb", "rules", "config", "env", "baseline", "history")
    return {k: v for k, v in found.items() if k not in skipped}


def _paths(value: object) -> Sequence[Path]:
    if isinstance(value, tuple):
        return value
    return [Path(str(value))] if value else []


def _content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def incident_of(objects: tuple[LogObject, ...], peeks: dict[str, Peek], common: str) -> Incident:
    """An incident with its names made."""
    names = "\n".join(o.name for o in objects)
    content = json.dumps([[o.name, o.size, o.stamp, _digest(o, peeks)] for o in objects])
    return Incident(
        id=hashlib.sha256(names.encode()).hexdigest()[:16],
        key=hashlib.sha256(f"{common}\n{content}".encode()).hexdigest()[:40],
        objects=objects,
    )


def _digest(item: LogObject, peeks: dict[str, Peek]) -> str:
    """What both ends hold, where the store's own stamp is not enough. A store that was too slow to be peeked at must
    not change the key of what its stamp identifies."""
    return "" if item.remote and item.stamp != "none" else peeks[item.location].digest


def jobs(incidents: Iterable[Incident], settings: Settings) -> list[Job]:
    """Work in the order in which it is started: the largest first, so that none is left over at the end."""
    ordered = sorted(incidents, key=lambda i: (-i.size, i.id))
    return [Job(i, settings, settings.split if i.size >= settings.split_above else 1) for i in ordered]
