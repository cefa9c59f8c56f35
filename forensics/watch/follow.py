"""New bytes of a growing input: a file that may be rotated or truncated, or standard input."""

from __future__ import annotations

import os
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from forensics.errors import InputError
from forensics.ingest.inputs import looks_binary
from forensics.ingest.sources import Source
from forensics.ingest.spool import compression_of

STEP = 4 << 20
"""Bytes handed on at once: a long file that exists already is read in pieces of this size."""
MAX_OLD = 8
"""Rotated-away files that stay open for the final report."""


class Follower(Protocol):
    """A growing input. `name` as the user gave it. `events` are remarks since the last call (`rotated` …)."""

    name: str

    def read(self, wait: float) -> bytes:
        """Bytes that are new since the last call, at most STEP; waits up to `wait` seconds for the first one."""
        ...

    def ended(self) -> bool:
        """Whether nothing can come any more."""
        ...

    def notices(self) -> list[str]: ...

    def sources(self) -> tuple[Source, ...] | None:
        """Everything that was read, in order, for the final report; None where it is not all at hand any more."""
        ...


@dataclass(slots=True)
class _Open:
    handle: BinaryIO
    at: int
    file: tuple[int, int]


class FileFollower:
    """Follows a path. A new inode means rotation: the old file is read to its end first. A size below what was read
    means truncation: reading begins again at the top."""

    def __init__(self, path: Path, only_new: bool = False, wait_for_file: bool = False) -> None:
        self.name = str(path)
        self.path = path
        self.old: list[Source] = []
        self.lost = False
        self._notices: list[str] = []
        self._current: _Open | None = None
        self._open(required=not wait_for_file)
        if only_new and self._current is not None:
            self._current.at = os.fstat(self._current.handle.fileno()).st_size
            self.lost = True

    def _open(self, required: bool = False) -> bool:
        try:
            handle = cast(BinaryIO, self.path.open("rb", buffering=0))
        except FileNotFoundError:
            if required:
                hint = "start the server with its output redirected there, or pass --wait-for-file"
                raise InputError(f"{self.name}: no such file", code="input-missing", hint=hint) from None
            return False
        except OSError as error:
            if required:
                raise InputError(f"{self.name}: cannot be read ({error.strerror})", code="input-unreadable") from None
            return False
        info = os.fstat(handle.fileno())
        if self.path.is_dir():
            handle.close()
            raise InputError(f"{self.name}: is a folder", hint="watch follows one log file, or - for standard input")
        head = os.pread(handle.fileno(), 65536, 0)
        if compression_of(head) or looks_binary(head):
            handle.close()
            raise InputError(f"{self.name}: is not a text file", code="input-binary", hint="name the live log itself")
        self._current = _Open(handle, 0, (info.st_dev, info.st_ino))
        return True

    def read(self, wait: float) -> bytes:
        data = self._new_bytes()
        if not data:
            time.sleep(wait)
            data = self._new_bytes()
        return data

    def _new_bytes(self) -> bytes:
        if self._current is None and not self._open():
            return b""
        current = self._current
        if current is None:
            return b""
        size = os.fstat(current.handle.fileno()).st_size
        if size < current.at:
            self._notices.append(f"{self.name} was truncated: reading it from the top")
            self.lost = True
            current.at = 0
        data = os.pread(current.handle.fileno(), STEP, current.at)
        current.at += len(data)
        if not data and self._rotated(current):
            self._notices.append(f"{self.name} was rotated: following the new file")
            self._retire(current)
            self._current = None
        return data

    def _rotated(self, current: _Open) -> bool:
        """Whether the name stands for another file now. A name that is gone keeps the old file: it may still grow."""
        try:
            info = self.path.stat()
        except OSError:
            return False
        return (info.st_dev, info.st_ino) != current.file

    def _retire(self, current: _Open) -> None:
        age = len(self.old) + 1
        self.old.append(Source(f"{self.name} (before, part {age})", current.at, current.handle))
        while len(self.old) > MAX_OLD:
            self.old.pop(0).close()
            self.lost = True

    def ended(self) -> bool:
        return False

    def notices(self) -> list[str]:
        found, self._notices = self._notices, []
        return found

    def sources(self) -> tuple[Source, ...] | None:
        if self.lost:
            return None
        current = self._current
        here = () if current is None or not current.at else (Source(self.name, current.at, current.handle),)
        old = tuple(s for s in self.old if s.size)
        return (*old, *here) or None


class StreamFollower:
    """Follows standard input, or a named pipe. What passes is kept in an unnamed temporary file up to `keep` bytes, so
    that the final report sees the whole log; `tee` gets every byte at once."""

    def __init__(self, descriptor: int, keep: int, tee: BinaryIO | None = None, name: str = "-") -> None:
        import tempfile

        self.name = name
        self._in = descriptor
        self._keep = keep
        self._tee = tee
        self._spool = cast(BinaryIO, tempfile.TemporaryFile(prefix="forensics-watch-"))  # noqa: SIM115
        self._size = 0
        self._lost = False
        self._closed = False

    def read(self, wait: float) -> bytes:
        ready, _, _ = select.select([self._in], [], [], wait)
        if not ready:
            return b""
        data = os.read(self._in, 1 << 20)
        if not data:
            self._closed = True
            return b""
        if self._tee is not None:
            self._pass_on(data)
        self._store(data)
        return data

    def _pass_on(self, data: bytes) -> None:
        try:
            assert self._tee is not None
            self._tee.write(data)
            self._tee.flush()
        except BrokenPipeError:
            # The reader behind us went away; the server's output must be taken all the same.
            self._tee = None

    def _store(self, data: bytes) -> None:
        if self._lost or self._size + len(data) > self._keep:
            self._lost = True
            return
        try:
            self._spool.write(data)
            self._size += len(data)
        except OSError:
            self._lost = True

    def ended(self) -> bool:
        return self._closed

    def notices(self) -> list[str]:
        return []

    def sources(self) -> tuple[Source, ...] | None:
        if self._lost or not self._size:
            return None
        self._spool.flush()
        return (Source(self.name, self._size, self._spool),)
