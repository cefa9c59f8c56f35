"""Files that are either old or new, never half."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forensics.errors import UsageError


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write `data` to a neighbour of `path`, flush it to disk, then rename it over `path`.

    Raises UsageError (exit 2) when the folder is missing, read-only or full; the old file is then untouched.
    """
    with replacing(path) as fresh:
        fresh.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new, empty neighbour of `path` to write into; it takes the place of `path` when the block ends well. A device
    or a pipe (`/dev/null`, `/dev/stdout`) is written to itself: what replaced it would be a plain file for everybody.

    Raises UsageError (exit 2) when the folder is missing, read-only or full; the old file is then untouched.
    """
    name = ""
    try:
        if _special(path):
            yield path
            return
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(handle)
        yield Path(name)
        with Path(name).open("rb") as file:
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
        name = ""
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}",
            hint="choose another place with -o, or free some space; an older file of that name is unchanged",
        ) from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def _special(path: Path) -> bool:
    """Whether something stands there that is no file and no folder, or a name of an open file of this process."""
    open_file = path.is_symlink() and os.readlink(path).startswith("/proc/")  # noqa: PTH115 - as it is written
    return open_file or (path.exists() and not path.is_file() and not path.is_dir())
