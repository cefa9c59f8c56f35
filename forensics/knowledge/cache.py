"""The cache of parsed knowledge and parser tables: one JSON file per content, in the user's cache folder; never a
reason to fail."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

KEEP = 16
"""Cache files of one sort kept; the oldest go first."""
_PREFIX = "knowledge-"


def cache_folder() -> Path | None:
    """Where cache files live; None where the environment switches them off (`FORENSICS_CACHE=off`)."""
    chosen = os.environ.get("FORENSICS_CACHE", "")
    if chosen.lower() in ("off", "0", "none"):
        return None
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    with suppress(RuntimeError):
        return (Path(base) if base else Path.home() / ".cache") / "sglang-forensics"
    return None


def content_key(parts: Iterable[bytes]) -> str:
    """Key of a content: also changes with the code that reads it."""
    digest = hashlib.sha256(_code_key())
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:40]


@cache
def _code_key() -> bytes:
    """Fingerprint of the modules whose change makes old cache files wrong."""
    digest = hashlib.sha256(b"2")
    root = Path(__file__).parent.parent
    for folder, names in _READERS.items():
        for name in names:
            with suppress(OSError):
                digest.update((root / folder / name).read_bytes())
    return digest.digest()


_READERS = {
    "knowledge": (
        "finding.py",
        "deployment.py",
        "fix_steps.py",
        "front.py",
        "codec.py",
        "read_root.py",
        "unfilled.py",
        "draft.py",
    ),
    "rulebook": ("schema.py", "located.py", "words.py", "patterns.py", "load.py", "literals.py"),
    "grammar": ("conditions.lark", "conditions.py", "condition_build.py", "condition_tree.py"),
    "schema": ("finding.py", "signal.py", "span.py"),
}


def read_cache(key: str, prefix: str = _PREFIX) -> Any:
    """The stored value, None where there is none or it cannot be read."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        return json.loads((folder / f"{prefix}{key}.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def write_cache(key: str, value: Any, prefix: str = _PREFIX) -> None:
    """Store a value atomically; an unwritable folder is fine."""
    folder = cache_folder()
    if folder is None:
        return
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        put(folder / f"{prefix}{key}.json", text.encode("utf-8"))
        _prune(folder, prefix)


def put(path: Path, data: bytes) -> None:
    """A cache file that is old or new, never half, and its owner's alone. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _prune(folder: Path, prefix: str) -> None:
    files = sorted(folder.glob(f"{prefix}*.json"), key=lambda p: p.stat().st_mtime, reverse=True)
    for old in files[KEEP:]:
        old.unlink(missing_ok=True)
