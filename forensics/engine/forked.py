"""Work in a child process that is made by fork and hands its result back through memory."""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar

from forensics.errors import InputError

T = TypeVar("T")
_NO_ROOM = 75
"""Exit code of a child that could not hand its result over (a limit on files, a full disk): the parent works itself."""
_ALIGN = 64
"""Arrays begin at multiples of this."""


def spare_core() -> bool:
    """Whether a child can run beside this process."""
    return cores() > 1 and hasattr(os, "fork")


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Forked(Generic[T]):
    """A call that runs in a child. `result` waits for it; `close` ends a child that nobody waits for.

    Arrays in the result are not copied: they lie in a file without a name that both processes map."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._file = _nameless()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # None where it was closed from the start
                stream.flush()
        self._pid = os.fork()
        if self._pid == 0:
            _run(work, self._file)

    def result(self) -> T:
        """What the call returned; raises what it raised."""
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        if code == _NO_ROOM:
            return self._work()
        if code:
            raise InputError(
                f"the process that reads a part of the input was ended ({code})",
                hint="`--processes 1` needs less memory",
            )
        done, value = _load(self._file)
        self._file.close()
        if not done:
            raise value
        return value  # type: ignore[no-any-return]

    def close(self) -> None:
        """End the child if it still runs."""
        if self._pid:
            with suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0
            self._file.close()


def _nameless() -> BinaryIO:
    """A file in memory where the system has such files, else in the folder of temporary ones."""
    if hasattr(os, "memfd_create"):
        with suppress(OSError):
            return os.fdopen(os.memfd_create("forensics"), "w+b")
    return tempfile.TemporaryFile()


def _run(work: Callable[[], Any], file: BinaryIO) -> NoReturn:
    """The child's whole life: nothing of the parent's is unwound, flushed or cleaned up here."""
    status = 1
    try:
        try:
            answer = (True, work())
        except Exception as error:
            answer = (False, error)
        try:
            _dump(answer, file)
            status = 0
        except OSError:
            status = _NO_ROOM
    finally:
        os._exit(status)


def _dump(value: Any, file: BinaryIO) -> None:
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    raws = [b.raw() for b in buffers]
    sizes = [len(head), *(len(r) for r in raws)]
    file.write(len(sizes).to_bytes(8, "little") + b"".join(s.to_bytes(8, "little") for s in sizes))
    parts: list[bytes | memoryview] = [head, *raws]
    for part in parts:
        file.seek(-file.tell() % _ALIGN, os.SEEK_CUR)
        file.write(part)
    file.truncate()
    file.flush()


def _load(file: BinaryIO) -> Any:
    # Private: who changes an array changes a copy of its pages.
    view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    count = int.from_bytes(view[:8], "little")
    sizes = [int.from_bytes(view[8 + 8 * i : 16 + 8 * i], "little") for i in range(count)]
    at, parts = 8 + 8 * count, []
    for size in sizes:
        at += -at % _ALIGN
        parts.append(view[at : at + size])
        at += size
    return pickle.loads(parts[0], buffers=parts[1:])
