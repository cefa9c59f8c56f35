"""From the names that the user gave to opened sources: files, folders, globs, `-`, compressed and rotated files."""

from __future__ import annotations

import glob
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from forensics.errors import InputError
from forensics.frozen import frozen
from forensics.ingest.bundle import is_bundle, is_member, open_bundle, open_member
from forensics.ingest.folder import Folder, is_log_name, logs_of
from forensics.ingest.sources import Source, node_hint
from forensics.ingest.spool import compression_of, spool, unpack
from forensics.schema.options import Options

if TYPE_CHECKING:
    from forensics.schema.report import ProblemInfo

_ROTATED = re.compile(r"^(?P<stem>.+?)\.(?P<age>\d{1,3})(?:\.(?:gz|zst))?$")
_COMPRESSED = re.compile(r"\.(?:gz|zst)$")
MAX_FILES = 4096
"""Files that one glob stands for."""


@frozen
class Inputs:
    """`sources` in a stable order (rotated sets oldest first); `problems` name the inputs that were left out."""

    sources: tuple[Source, ...]
    problems: tuple[ProblemInfo, ...]


def open_inputs(names: Sequence[str | Path], options: Options | None = None) -> Inputs:
    """Open everything that the names stand for.

    `options` is taken for symmetry with the other stages. Raises InputError (exit code 2) when nothing usable is
    left; otherwise each unusable input is one ProblemInfo.
    """
    del options
    if not names:
        raise InputError("no input was named", hint="name a log file, a folder, a glob, or - for standard input")
    sources: list[Source] = []
    failures: list[InputError] = []
    paths: list[Path] = []
    problems: list[ProblemInfo] = []
    for name in dict.fromkeys(str(n) for n in names):
        try:
            if name == "-":
                sources.append(_stdin())
            elif is_member(name):
                sources.append(_checked(open_member(name)))
            else:
                found = expand(name)
                paths += found.logs
                if found.left_out is not None:
                    _note(found.left_out, name, [], problems)
        except InputError as failure:
            _note(failure, name, failures, problems)
    for path in order_rotated(list(dict.fromkeys(paths))):
        try:
            if is_bundle(path):
                sources += [_checked(source) for source in open_bundle(path, is_log_name)]
            else:
                sources.append(open_path(path))
        except InputError as failure:
            _note(failure, str(path), failures, problems)
    if not sources:
        first = failures[0]
        more = f" (and {len(failures) - 1} more inputs)" if len(failures) > 1 else ""
        raise InputError(first.message + more, hint=first.hint, code=first.code)
    return Inputs(tuple(sources), tuple(problems))


def _note(failure: InputError, path: str, failures: list[InputError], problems: list[ProblemInfo]) -> None:
    failures.append(failure)
    from forensics.schema.report import ProblemInfo  # the models take as long to load as a small log to read

    message = failure.message.removeprefix(f"{path}: ")  # beside the path, which every output puts before it
    problems.append(ProblemInfo(message=message, path=path, code=failure.code, hint=failure.hint))


def expand(name: str) -> Folder:
    """What one name stands for: itself, the log-like files of a folder, the matches of a glob, sorted."""
    path = Path(name)
    if path.is_dir():
        return logs_of(path)
    if path.exists():
        return Folder((path,))
    if any(c in name for c in "*?["):
        matches = sorted(Path(p) for p in glob.glob(name, recursive=True) if Path(p).is_file())  # noqa: PTH207
        if not matches:
            raise InputError(
                f"{name}: no file matches", code="input-missing", hint="quote the glob, or check the folder"
            )
        more = f"{name}: of {len(matches):,} files that match the first {MAX_FILES:,} were read"
        hint = "name fewer; many incidents at once: forensics fleet"
        told = InputError(more, code="input-too-many", hint=hint) if len(matches) > MAX_FILES else None
        return Folder(tuple(matches[:MAX_FILES]), told)
    raise InputError(f"{name}: no such file or folder", code="input-missing", hint="check the path")


def rotation_of(name: str) -> tuple[str, int]:
    """Stem and age of a possibly rotated name: `server.log.2.gz` is (`server.log`, 2)."""
    match = _ROTATED.match(name)
    if match:
        return match["stem"], int(match["age"])
    return _COMPRESSED.sub("", name), 0


def order_rotated(paths: list[Path]) -> list[Path]:
    """The same paths; members of one rotated set stand together, oldest (highest number) first."""
    place: dict[tuple[Path, str], int] = {}
    keys = []
    for index, path in enumerate(paths):
        stem, age = rotation_of(path.name)
        keys.append((place.setdefault((path.parent, stem), index), -age, index))
    return [path for _, path in sorted(zip(keys, paths, strict=True), key=lambda pair: pair[0])]


def open_path(path: Path) -> Source:
    """Open one file; InputError when it is missing, empty, binary or unreadable."""
    try:
        handle: BinaryIO = path.open("rb", buffering=0)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", code="input-missing", hint="check the path") from None
    except OSError as problem:
        raise InputError(
            f"{path}: cannot be read ({problem.strerror})", code="input-unreadable", hint="check the permissions"
        ) from None
    state = os.fstat(handle.fileno())
    size = state.st_size
    notes: tuple[str, ...] = ()
    if stat.S_ISFIFO(state.st_mode):  # `<(kubectl logs …)`: a stream with a name
        with handle:
            handle, size, notes = spool(handle, str(path))
        handle.seek(0)
    kind = compression_of(handle.read(4))
    if kind:
        handle.seek(0)
        with handle:
            handle, size, notes = unpack(handle, str(path), size, kind)
    source = Source(str(path), size, handle, kind, node_hint(str(path)), rotation_of(path.name)[1], notes)
    return _checked(source)


def _stdin() -> Source:
    stream = cast(IO[bytes], sys.stdin.buffer)
    handle, size, notes = spool(stream, "-")
    kind = compression_of(Source("-", size, handle).pread(0, 4))
    if kind:
        handle.seek(0)
        with handle:
            handle, size, notes = unpack(handle, "-", size, kind)
    return _checked(Source("-", size, handle, kind, notes=notes))


def _checked(source: Source) -> Source:
    if source.size == 0:
        source.close()
        what = "holds nothing readable" if source.notes else "is empty"
        raise InputError(
            f"{source.name}: {what}", code="input-empty", hint="was the server started with its output redirected here?"
        )
    head = source.pread(0, 65536)
    if looks_binary(head):
        source.close()
        raise InputError(
            f"{source.name}: is not a text file",
            code="input-binary",
            hint="name the log itself; .gz, .zst and tar are read as they are, other archives have to be unpacked",
        )
    return source


def looks_binary(head: bytes) -> bool:
    """Whether the first bytes are no log: a known container format, or control bytes all over.

    A few NUL bytes are normal (a file truncated while a writer kept its offset, a crash of the host)."""
    if head.startswith(
        (b"\x7fELF", b"PK\x03\x04", b"%PDF", b"\x89PNG", b"BZh", b"\xfd7zXZ", b"SQLite format 3", b"ustar", b"PAR1")
    ):
        return True
    body = head.lstrip(b"\x00")
    odd = sum(body.count(bytes([b])) for b in range(1, 32) if b not in (7, 8, 9, 10, 12, 13, 27))
    return odd * 30 + body.count(0) * 2 > len(body) or (not body and bool(head))
