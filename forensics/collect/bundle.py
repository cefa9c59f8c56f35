"""Writes the bundle: a tar archive, zstd-compressed, with a manifest that says what is missing and why."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import zstandard

from forensics.collect import host
from forensics.collect.ask import Part
from forensics.collect.logs import copied, server_log, window_of
from forensics.frozen import frozen
from forensics.output.atomic import replacing
from forensics.version import VERSION


@frozen
class Wish:
    """`logs` to take along, `pid` of the server (0 unknown), its `python`, `most` bytes of one log, `masked` logs."""

    logs: tuple[Path, ...] = ()
    pid: int = 0
    python: str = "python3"
    most: int = 2 << 30
    masked: bool = True


@frozen
class Entry:
    """One line of the manifest."""

    name: str
    size: int
    how: str
    problem: str


def write_bundle(path: Path, wish: Wish, tell: Callable[[str], None] = lambda text: None) -> list[Entry]:
    """Collect everything and write it. Parts that fail are named in the manifest; only the bundle itself may raise."""
    logs = list(wish.logs)
    own = server_log(wish.pid) if wish.pid and not logs else None
    if own is not None:
        logs.append(own)
    parts = _parts(wish, logs, tell)
    entries = [Entry(p.name, len(p.text.encode()), p.how, p.problem) for p in parts]
    names = _unique(logs)
    manifest = {
        "forensics": VERSION,
        "masked": wish.masked,
        "pid": wish.pid,
        "parts": [_line(e) for e in entries],
        "logs": [{"name": n, "from": str(p)} for n, p in zip(names, logs, strict=True)],
    }
    with replacing(path) as fresh, fresh.open("wb") as raw, _archive(raw) as archive:
        _add(archive, "manifest.json", json.dumps(manifest, indent=1, ensure_ascii=False).encode() + b"\n")
        for part in parts:
            if part.text:
                _add(archive, part.name, part.text.encode("utf-8", "replace"))
        # Logs come last: whoever only wants to know about the host need not unpack them.
        for name, log in zip(names, logs, strict=True):
            entries.append(_log(archive, name, log, wish, tell))
    return entries


@contextmanager
def _archive(raw: BinaryIO) -> Iterator[tarfile.TarFile]:
    """A tar archive that is compressed on its way into a file."""
    packer = zstandard.ZstdCompressor(level=9)
    with (
        packer.stream_writer(raw, closefd=False) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        yield archive


def _line(entry: Entry) -> dict[str, object]:
    ok = entry.size > 0
    return {"name": entry.name, "ok": ok, "bytes": entry.size, "how": entry.how, "problem": entry.problem}


def _parts(wish: Wish, logs: Sequence[Path], tell: Callable[[str], None]) -> list[Part]:
    jobs: list[tuple[str, Callable[[], Part]]] = [
        ("packages", lambda: host.packages(wish.python)),
        ("sglang's environment report", lambda: host.check_env(wish.python)),
        ("GPUs", host.gpus),
        ("topology", host.topology),
        ("environment", lambda: host.environment(wish.pid)),
        ("command", lambda: host.command(wish.pid)),
        ("limits", lambda: host.limits(wish.pid)),
        ("host", host.host),
        ("kernel messages", lambda: host.kernel(window_of(list(logs)))),
    ]
    found = []
    for label, job in jobs:
        tell(label)
        try:
            part = job()
            found.append(part if part.text or part.problem else replace(part, problem="nothing to report"))
        except Exception as error:  # one part never spoils the bundle
            found.append(Part(f"{label.split()[0].lower()}.txt", "", label, f"{type(error).__name__}: {error}"))
    return found


def _unique(logs: Sequence[Path]) -> list[str]:
    """Names inside the bundle; equal file names get their folder's name in front, then a number."""
    names: list[str] = []
    for path in logs:
        name = f"logs/{path.name}"
        if name in names:
            name = f"logs/{path.absolute().parent.name}/{path.name}"
        while name in names:
            name = f"{name}.{len(names)}"
        names.append(name)
    return names


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))


def _log(archive: tarfile.TarFile, name: str, path: Path, wish: Wish, tell: Callable[[str], None]) -> Entry:
    tell(str(path))
    try:
        content, size, remark = copied(path, wish.most, wish.masked)
    except OSError as error:
        return Entry(name, 0, str(path), error.strerror or "cannot be read")
    with content:
        info = tarfile.TarInfo(name)
        info.size = size
        archive.addfile(info, content)
    return Entry(name, size, str(path), remark)
