"""The logs of a bundle: copied line by line with secrets masked, and cut in the middle where they are too long."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, cast

from forensics.output.mask import mask

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_HEAD = 4 << 20
_MARGIN = timedelta(minutes=2)


def window_of(paths: list[Path]) -> tuple[datetime, datetime] | None:
    """From the first stamp in the logs to their last change, with a margin; local time, as sglang stamps."""
    starts, ends = [], []
    for path in paths:
        try:
            with path.open("rb") as file:
                found = _STAMP.search(file.read(_HEAD))
            ends.append(datetime.fromtimestamp(path.stat().st_mtime))
            if found:
                starts.append(datetime.fromisoformat(f"{found[1].decode()}T{found[2].decode()}"))
        except (OSError, ValueError):
            continue
    return (min(starts) - _MARGIN, max(ends) + _MARGIN) if starts else None


def server_log(pid: int) -> Path | None:
    """The file that a process writes its output to, if it is one."""
    for descriptor in (1, 2):
        try:
            target = Path(f"/proc/{pid}/fd/{descriptor}").readlink()
        except OSError:
            continue
        if target.is_file():
            return target
    return None


def copied(path: Path, most: int, masked: bool) -> tuple[BinaryIO, int, str]:
    """A copy of a log for the bundle: file, size, and a remark. Beyond `most` bytes its middle is left out."""
    size = path.stat().st_size
    target = cast(BinaryIO, tempfile.TemporaryFile(prefix="forensics-collect-"))  # noqa: SIM115 (read by the caller)
    with path.open("rb") as file:
        for line in _lines(file, size, most):
            target.write(_masked(line) if masked else line)
    written = target.tell()
    target.seek(0)
    remark = f"{size - most} bytes in its middle were left out" if size > most else ""
    return target, written, remark


def _lines(file: BinaryIO, size: int, most: int) -> Iterator[bytes]:
    if size <= most:
        yield from _until(file, size)
        return
    yield from _until(file, most // 2)
    file.seek(size - most // 2)
    file.readline(1 << 20)
    yield f"… {size - most} bytes left out by forensics collect …\n".encode()
    yield from _until(file, size)


def _until(file: BinaryIO, end: int) -> Iterator[bytes]:
    """Lines (long ones in pieces) up to an offset: the log may still grow."""
    while file.tell() < end:
        line = file.readline(1 << 20)
        if not line:
            return
        yield line


def _masked(line: bytes) -> bytes:
    text = line.decode("utf-8", "surrogateescape")
    hidden = mask(text)
    return line if hidden == text else hidden.encode("utf-8", "surrogateescape")
