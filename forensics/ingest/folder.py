"""The logs of a folder: what is walked, what is taken for a log, and what of a huge folder is left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from forensics.errors import InputError
from forensics.frozen import frozen
from forensics.ingest.spool import compression_of, unfolded

MAX_ENTRIES = 100_000
"""Files and folders below a folder that are looked at, upper ones first."""
MAX_LOGS = 256
"""Logs of one folder that are read together: one incident has fewer. With more files of a log's name a disk was named,
perhaps, or a fleet's store: then only those count that show a server's words."""
_LOG_NAME = re.compile(
    r"(?:\.(?:log|txt|out|err|jsonl?)|^(?:stdout|stderr|server|log)[^/]*)(?:[.-]\d[\w-]*)?(?:\.(?:gz|zst))?$", re.I
)
_KERNEL = frozenset({"proc", "sys", "dev"})
_SOFTWARE = frozenset({"site-packages", "dist-packages", "node_modules"})
_END = 32 << 10
"""Bytes at either end of a file in which a server's words are looked for."""
_WORDS = re.compile(
    rb"sglang|sgl_kernel|server_args=|\b[TDEP]P\d|NCCL (?:INFO|WARN)|CUDA (?:error|out of)|HIP error|NVRM: Xid"
    rb"|Traceback \(most recent call last\)|torch\.distributed"
)


@frozen
class Folder:
    """`logs` sorted by their paths; `left_out` says what was not looked at or not read (None: nothing)."""

    logs: tuple[Path, ...]
    left_out: InputError | None = None


def logs_of(folder: Path) -> Folder:
    """The log-like files below a folder. Raises InputError where there is none."""
    named, whole = _walk(folder)
    named = sorted(path for path in named if is_log_file(path))
    found = named if len(named) <= MAX_LOGS else [path for path in named if _speaks(path)]
    said = (
        [] if whole else [f"the folder is huge: of what is below it, {MAX_ENTRIES:,} files and folders were looked at"]
    )
    if len(found) < len(named):
        shown = f"{len(found):,} show" if found else "none shows"
        said.append(f"of {len(named):,} files with a log's name {shown} a server's words, and the others were not read")
    if len(found) > MAX_LOGS:
        said.append(f"of {len(found):,} logs the first {MAX_LOGS:,} were read")
    hint = "name the folder of one incident, or its files with a glob; many incidents at once: forensics fleet"
    if not found:
        hint = (
            hint if said else "name the files themselves; *.log, *.txt, *.out, *.err and rotated names are found alone"
        )
        what = "; ".join(said) or "the folder holds no log-like file"
        raise InputError(f"{folder}: {what}", code="input-empty-folder", hint=hint)
    told = InputError(f"{folder}: {'; '.join(said)}", code="input-huge-folder", hint=hint) if said else None
    return Folder(tuple(found[:MAX_LOGS]), told)


def is_log_name(name: str) -> bool:
    """Whether a file of this name in a folder or an archive is taken for a log."""
    return _LOG_NAME.search(name) is not None


def is_log_file(path: Path) -> bool:
    """Whether a file of a folder is taken: by its name, and a `.json` only where each line is an object of its own
    (an export of journald or a container engine; not a configuration, not a report that lies beside the log)."""
    if not is_log_name(path.name) or path.suffix.lower() != ".json":
        return is_log_name(path.name)
    try:
        with path.open("rb") as handle:
            head = handle.read(1 << 16)
    except OSError:
        return True  # opening it will say what is wrong
    first, newline, _ = head.lstrip().partition(b"\n")
    return first.startswith(b"{") and (first.rstrip().endswith(b"}") or not newline)


def _walk(folder: Path) -> tuple[list[Path], bool]:
    """Files of a log's name, and whether all of the folder was looked at. Level by level, so that what is left out of
    a huge folder lies deep; hidden files and folders, and what cannot be read or goes away meanwhile, are passed over.
    """
    found: list[Path] = []
    level, left = [str(folder)], MAX_ENTRIES
    while level:
        below: list[str] = []
        for here in level:
            for entry in _entries(here, left):
                if not left:
                    return found, False
                left -= 1
                with suppress(OSError):  # a link that leads where this user may not look
                    if entry.is_dir(follow_symlinks=False):
                        if not _elsewhere(entry):
                            below.append(entry.path)
                    elif is_log_name(entry.name) and entry.is_file():
                        found.append(Path(entry.path))
        level = below
    return found, True


def _elsewhere(entry: os.DirEntry[str]) -> bool:
    """A folder of the kernel, or of installed packages: no server writes its log there."""
    return entry.name in _SOFTWARE or (entry.name in _KERNEL and str(Path(entry.path).absolute().parent) == "/")


def _entries(here: str, left: int) -> Iterator[os.DirEntry[str]]:
    """What is in a folder, sorted, but little more than may still be looked at."""
    with suppress(OSError), os.scandir(here) as entries:
        shown = (entry for entry in entries if not entry.name.startswith("."))
        yield from sorted(islice(shown, left + 1), key=lambda entry: entry.name)


def _speaks(path: Path) -> bool:
    """Whether one of the ends of a file shows words of a server, of its libraries or of the driver below them."""
    with suppress(OSError), path.open("rb") as file:
        head = file.read(_END)
        if compression_of(head):
            return _WORDS.search(unfolded(head)) is not None
        if _WORDS.search(head):
            return True
        file.seek(max(len(head), path.stat().st_size - _END))
        return _WORDS.search(file.read(_END)) is not None
    return False
