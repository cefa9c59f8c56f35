"""Files that are either old or new, never half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from forensics.errors import UsageError


def write_atomic(path: Path, data: str | bytes) -> None:
    """Write `data` to a neighbour of `path`, flush it to disk, then rename it over `path`.

    Raises UsageError (exit 2) when the folder is missing, read-only or full; the old file is then untouched.
    """
    raw = data.encode() if isinstance(data, str) else data
    name = ""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent or Path())
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}",
            hint="choose another place with -o, or free some space; an older file of that name is unchanged",
        ) from None
