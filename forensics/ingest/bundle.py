"""Bundles: tar archives (plain, gz, zst) of logs and reports, as `forensics collect` writes them.

An archive is untrusted: names that climb out, links, devices, sparse members, and archives that unfold without end are
refused. Nothing is written under a name that the archive chooses.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import RawIOBase
from pathlib import Path
from typing import IO, BinaryIO, cast

import zstandard

from forensics.errors import InputError
from forensics.ingest.sources import Source, node_hint
from forensics.ingest.spool import MAX_RATIO, MAX_SPOOL, compression_of, spool, unpack

SEPARATOR = "!/"
"""Between the bundle and the member: `bundle.tar.zst!/logs/server.log`."""
MAX_MEMBERS = 2048
MAX_NAME = 400
MAX_HEADER = 1 << 20
"""Bytes that the headers of one member may take."""
_RATIO_FLOOR = 256 << 20
_BLOCK = 512
_STEP = 1 << 16
_CHECKSUM = slice(148, 156)

REPORTS = ("check_env.txt", "packages.txt", "nvidia-smi.txt", "topology.txt", "environment.txt")
"""Members that state facts of the host."""
KERNEL = "kernel.txt"
MANIFEST = "manifest.json"
OTHERS = ("host.txt", "limits.txt", "command.txt", MANIFEST)


class _Metered(RawIOBase):
    """Decompressed bytes of the archive with two bounds: all in all, and for the next headers."""

    def __init__(self, stream: IO[bytes], name: str, packed: int) -> None:
        self._stream = stream
        self._name = name
        self._packed = packed
        self.total = 0
        self.header: int | None = MAX_HEADER

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            raise InputError(f"{self._name}: a part of the archive has no length", code="bundle-bad")
        data = self._stream.read(size)
        self.total += len(data)
        if self.header is not None:
            self.header -= len(data)
            if self.header < 0:
                raise InputError(f"{self._name}: a member's header has no end", code="bundle-bomb")
        if self.total > MAX_SPOOL or (self.total > _RATIO_FLOOR and self.total > MAX_RATIO * max(self._packed, 1)):
            raise InputError(
                f"{self._name}: unfolds to more than {MAX_RATIO} times its size: this looks like a decompression bomb",
                code="bundle-bomb",
                hint="unpack it yourself and name the logs in it",
            )
        return data


class _Content(RawIOBase):
    """Content of one member; where the archive ends early it raises EOFError, as damaged compressed streams do."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        try:
            # Small steps: where the archive ends early, the step at the end is lost.
            return self._stream.read(_STEP if size < 0 else min(size, _STEP))
        except (tarfile.TarError, zlib.error, zstandard.ZstdError) as error:
            raise EOFError(str(error)) from None


def is_bundle(path: Path) -> bool:
    """Whether the content (not the name) is a tar archive, compressed or not."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as raw:
            head = raw.read(4)
            raw.seek(0)
            with _unpacked(raw, compression_of(head)) as stream:
                return _is_header(stream.read(_BLOCK))
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return False


def _is_header(block: bytes) -> bool:
    """Whether a block is a tar header: its checksum holds."""
    if len(block) < _BLOCK or not block[0]:
        return False
    try:
        stated = int(block[_CHECKSUM].split(b"\0")[0].strip() or b"-1", 8)
    except ValueError:
        return False
    return stated == sum(block[:148]) + 8 * 32 + sum(block[156:])


@contextmanager
def _unpacked(raw: BinaryIO, kind: str | None) -> Iterator[IO[bytes]]:
    if kind == "gz":
        with gzip.GzipFile(fileobj=raw) as stream:
            yield cast(IO[bytes], stream)
    elif kind == "zst":
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 31)
        with reader.stream_reader(raw, read_across_frames=True, closefd=False) as stream:
            yield cast(IO[bytes], stream)
    else:
        yield raw


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Name and content of each regular member, in order. Content has to be read before the next one."""
    try:
        with path.open("rb") as raw:
            kind = compression_of(raw.read(4))
            raw.seek(0)
            with _unpacked(raw, kind) as stream:
                metered = _Metered(stream, str(path), path.stat().st_size)
                yield from _walk(path, metered)
    except (tarfile.TarError, EOFError, zlib.error, zstandard.ZstdError, gzip.BadGzipFile) as error:
        hint = "it was cut on the way: fetch it again, or unpack it and name the logs in it"
        raise InputError(f"{path}: the archive is damaged ({error})", code="bundle-bad", hint=hint) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})", code="input-unreadable") from None


def _walk(path: Path, metered: _Metered) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=cast(IO[bytes], metered), mode="r|", bufsize=_STEP) as archive:
        count = 0
        while True:
            metered.header = MAX_HEADER
            member = archive.next()
            if member is None:
                return
            count += 1
            if count > MAX_MEMBERS:
                raise InputError(f"{path}: holds more than {MAX_MEMBERS} members", code="bundle-bomb")
            _check(path, member)
            metered.header = None
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                yield member.name.removeprefix("./"), cast(IO[bytes], _Content(content))
                while content.read(1 << 20):
                    pass
            # The archive keeps every header it has seen; a long one would fill memory.
            archive.members = []  # type: ignore[attr-defined]


def _check(path: Path, member: tarfile.TarInfo) -> None:
    """Refuse what no bundle holds."""
    name = member.name
    where = f"{path}{SEPARATOR}{name[:120]}"
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ".." in parts or "\0" in name or len(name) > MAX_NAME or ":" in parts[0]:
        raise InputError(f"{where}: its name leads out of the archive", code="bundle-name", hint=_REFUSED)
    if member.issym() or member.islnk():
        raise InputError(f"{where}: is a link", code="bundle-link", hint=_REFUSED)
    if member.sparse is not None:
        raise InputError(f"{where}: is a sparse file", code="bundle-bomb", hint=_REFUSED)
    if not member.isreg() and not member.isdir():
        raise InputError(f"{where}: is a device or a pipe", code="bundle-device", hint=_REFUSED)
    if member.size > MAX_SPOOL:
        raise InputError(f"{where}: states a size of {member.size >> 30} GiB", code="bundle-bomb", hint=_REFUSED)


_REFUSED = "a bundle holds plain files only; nothing of this one was used"


def open_bundle(path: Path, is_log: object = None) -> tuple[Source, ...]:
    """The logs of a bundle as sources named `bundle!/path`, in the archive's order, kernel messages last.

    `is_log` (a function of the file's name) decides in archives that `forensics collect` did not write. Raises
    InputError for a hostile or damaged archive, and where it holds no log.
    """
    logs: list[Source] = []
    kernel: list[Source] = []
    names: list[str] = []
    try:
        for name, content in _members(path):
            names.append(name)
            if name == KERNEL:
                kernel += _opened(path, name, content)
            elif _wanted(name, is_log):
                logs += _opened(path, name, content)
    except InputError as error:
        # What was readable before the archive breaks off is worth more than nothing; hostile ones are refused whole.
        if error.code != "bundle-bad" or not logs:
            _close(logs, kernel)
            raise
        logs[-1].notes = (*logs[-1].notes, error.message)
    except BaseException:
        _close(logs, kernel)
        raise
    if not logs:
        shown = ", ".join(names[:6]) or "nothing"
        raise InputError(
            f"{path}: holds no log (it has: {shown})", code="bundle-no-log", hint="forensics collect --log server.log"
        )
    return (*logs, *kernel)


def _close(*groups: list[Source]) -> None:
    for source in (s for group in groups for s in group):
        source.close()


def _wanted(name: str, is_log: object) -> bool:
    if name in REPORTS or name in OTHERS:
        return False
    if name.startswith("logs/"):
        return True
    return callable(is_log) and bool(is_log(name.rpartition("/")[2]))


def _opened(path: Path, name: str, content: IO[bytes]) -> list[Source]:
    """A member as a source; none where it is empty."""
    shown = f"{path}{SEPARATOR}{name}"
    handle, size, notes = spool(content, shown)
    kind = compression_of(Source(shown, size, handle).pread(0, 4))
    if kind:
        handle.seek(0)
        with handle:
            handle, size, notes = unpack(handle, shown, size, kind)
    if not size:
        handle.close()
        return []
    return [Source(shown, size, handle, kind, node_hint(name), notes=notes)]


def is_member(name: str) -> bool:
    """Whether a name means a member of a bundle."""
    archive, found, member = name.partition(SEPARATOR)
    return bool(found and member) and Path(archive).is_file()


def open_member(name: str) -> Source:
    """One log of a bundle, by its full name."""
    archive, _, wanted = name.partition(SEPARATOR)
    for member, content in _members(Path(archive)):
        if member == wanted:
            found = _opened(Path(archive), member, content)
            if found:
                return found[0]
            raise InputError(f"{name}: is empty", code="input-empty")
    raise InputError(f"{name}: the bundle has no such member", code="input-missing")


def read_member(name: str, limit: int) -> bytes:
    """The first `limit` bytes of a member, by its full name."""
    archive, _, wanted = name.partition(SEPARATOR)
    for member, content in _members(Path(archive)):
        if member == wanted:
            parts: list[bytes] = []
            while limit > 0 and (block := content.read(limit)):
                parts.append(block)
                limit -= len(block)
            return b"".join(parts)
    raise InputError(f"{name}: the bundle has no such member", code="input-missing")


def reports_of(path: Path) -> tuple[Path, ...]:
    """Full names of the host reports in a bundle, in a fixed order; of other archives none."""
    found: set[str] = set()
    for name, _ in _members(path):
        if name.startswith("logs/"):
            break
        found.add(name)
    if MANIFEST not in found:
        return ()
    return tuple(Path(f"{path}{SEPARATOR}{name}") for name in REPORTS if name in found)
