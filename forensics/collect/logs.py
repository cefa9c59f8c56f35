"""The logs of a bundle: copied line by line with secrets masked, and cut in the middle where they are too long."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, cast

from forensics.frozen import frozen
from forensics.output.mask_bytes import ByteMasker

_STAMP = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)")
_HEAD = 4 << 20
_TAIL = 64 << 10
_MARGIN = timedelta(minutes=2)
_QUARTER = timedelta(minutes=15)


@frozen
class Window:
    """The time of the logs, by their own clock. `shift` is how far the host's local clock is ahead of it: servers in
    containers often stamp in UTC on a host that does not."""

    start: datetime
    end: datetime
    shift: timedelta = timedelta()


def window_of(paths: list[Path]) -> Window | None:
    """From the first stamp to the last change, with a margin; None where no log has a stamp."""
    starts: list[datetime] = []
    ends: list[datetime] = []
    shifts: list[timedelta] = []
    for path in paths:
        try:
            changed = datetime.fromtimestamp(path.stat().st_mtime)
            first, last = _stamps(path)
        except (OSError, ValueError):
            continue
        shift = _shift(changed, last)
        starts.append(first)
        ends.append(changed - shift)
        shifts.append(shift)
    if not starts:
        return None
    return Window(min(starts) - _MARGIN, max(ends) + _MARGIN, shifts[0])


def _stamps(path: Path) -> tuple[datetime, datetime]:
    """First and last stamp of a log. ValueError where it has none."""
    with path.open("rb") as file:
        first = _STAMP.search(file.read(_HEAD))
        file.seek(max(0, path.stat().st_size - _TAIL))
        last = list(_STAMP.finditer(file.read(_TAIL)))[-1:]
    if first is None:
        raise ValueError("no stamp")
    return _time(first), _time(last[0] if last else first)


def _time(found: re.Match[bytes]) -> datetime:
    return datetime.fromisoformat(f"{found[1].decode()}T{found[2].decode()}")


def _shift(changed: datetime, last: datetime) -> timedelta:
    """The time zone between the last change of a file and its last stamp: a whole number of quarter hours, give or
    take two minutes; else the file was merely copied or touched later, and nothing can be said."""
    quarters = round((changed - last) / _QUARTER)
    whole = quarters * _QUARTER
    near = abs((changed - last) - whole) <= _MARGIN
    return whole if near and abs(whole) <= timedelta(hours=14) else timedelta()


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
    hide = ByteMasker()
    with path.open("rb") as file:
        for line in _lines(file, size, most):
            target.write(hide(line) if masked else line)
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
