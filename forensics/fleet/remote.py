"""The rim to object storage: listing, peeking and fetching through fsspec, every failure in plain words.

fsspec is part of the extra `fleet`; nothing here is imported unless a URL was named.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from forensics.errors import InputError, UsageError
from forensics.fleet.objects import LogObject, Storage
from forensics.frozen import frozen
from forensics.ingest.folder import is_log_name

T = TypeVar("T")
MISSING, DENIED, SLOW, BROKEN, LARGE = (
    "object-missing", "object-denied", "object-slow", "object-unreadable", "object-large",
)  # fmt: skip
BLOCK = 16 << 20
"""Bytes asked for at once."""
ATTEMPTS = 3
_STAMPS = ("VersionId", "ETag", "etag", "md5Hash", "mtime", "LastModified", "Last-Modified", "updated", "created")
"""What stores call the mark that changes with the content, the surest first."""
_ASKERS = 16
"""Threads that ask a web server about its files."""
_PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "http": "aiohttp", "https": "aiohttp",
             "az": "adlfs", "abfs": "adlfs"}  # fmt: skip


@frozen
class Limits:
    """`stall`: seconds without one byte after which a read is given up. `spool`: most bytes that one incident may take
    on the local disk."""

    stall: float = 60.0
    spool: int = 64 << 30


def file_system(url: str, storage: Storage) -> tuple[Any, str]:
    """The file system of a URL and the path in it; UsageError where a package is missing."""
    try:
        import fsspec
    except ImportError:
        raise UsageError(f"{url}: URLs need fsspec", hint="pip install 'sglang-forensics[fleet]'") from None
    protocol = url.partition("://")[0].lower()
    try:
        found, path = fsspec.core.url_to_fs(url, **storage.get(protocol, {}))
    except ImportError as error:
        package = _PACKAGES.get(protocol, "a further package")
        hint = f"pip install 'sglang-forensics[fleet]' {package}"
        raise UsageError(f"{protocol}:// needs {package} ({error})", hint=hint) from None
    except ValueError as error:
        raise UsageError(f"{url}: {error}", hint="known to fsspec are s3, gs, http, https, az and others") from None
    except TypeError as error:
        raise UsageError(f"the storage options of {protocol} are wrong: {error}", hint="--storage FILE") from None
    return found, str(path)


def expand_url(url: str, storage: Storage) -> list[LogObject]:
    """Objects that a URL stands for: itself, the log-like ones below a prefix, the matches of a glob."""
    system, path = file_system(url, storage)
    found = guarded(url, lambda: _entries(system, path))
    objects = [_object(system, entry) for entry in found]
    if not objects:
        raise InputError(
            f"{url}: no log is there", code=MISSING, hint="check the prefix; *.log, *.txt and rotated names"
        )
    return objects


def _entries(system: Any, path: str) -> list[dict[str, Any]]:
    if any(c in path for c in "*["):
        matches = system.glob(path, detail=True)
        return _sized(system, [e for e in _values(matches) if e.get("type") != "directory"])
    try:
        entry = system.info(path)
    except PermissionError:
        # rights on the logs below a prefix are none on an object of the prefix's own name
        entry = {"type": "directory"}
    # a web server tells its listing from a file by the slash at the end alone
    if entry.get("type") != "directory" and not path.endswith("/"):
        return [entry]
    found = system.find(path, detail=True)
    return _sized(system, [e for e in _values(found) if is_log_name(str(e["name"]).rpartition("/")[2])])


def _sized(system: Any, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries with sizes and stamps: the listing of a web server has names only, so each is asked for."""
    if all(e.get("size") is not None for e in entries):
        return entries
    with ThreadPoolExecutor(_ASKERS) as pool:
        return list(pool.map(lambda e: {**e, **_told(system, e)}, entries))


def _told(system: Any, entry: dict[str, Any]) -> dict[str, Any]:
    """What the store says about one object; nothing where it says nothing (its reading will say why)."""
    try:
        return {k: v for k, v in system.info(entry["name"]).items() if v is not None and k != "name"}
    except (OSError, ValueError):
        return {}


def _values(found: Any) -> list[dict[str, Any]]:
    return [dict(entry) for _, entry in sorted(found.items())]


def _object(system: Any, entry: dict[str, Any]) -> LogObject:
    name = str(system.unstrip_protocol(entry["name"]))
    stamp = next((f"{k} {entry[k]}" for k in _STAMPS if entry.get(k)), "none")
    return LogObject(name, name, int(entry.get("size") or 0), stamp)


def guarded(url: str, call: Callable[[], T], stall: float = 60.0) -> T:
    """Run one storage call; its failures become InputErrors with a code, and one that hangs is given up."""
    answers: queue.Queue[tuple[T | None, Exception | None]] = queue.Queue()

    def run() -> None:
        try:
            answers.put((call(), None))
        except Exception as error:
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    try:
        value, error = answers.get(timeout=stall)
    except queue.Empty:
        raise _slow(url, stall) from None
    if error is not None:
        raise in_words(url, error) from None
    return value  # type: ignore[return-value]


def _slow(url: str, stall: float) -> InputError:
    hint = "the store hangs or throttles: run the same command again later, or raise --stall"
    return InputError(f"{url}: the store sent nothing for {stall:g} s", code=SLOW, hint=hint)


def in_words(url: str, error: Exception) -> InputError:
    """A storage error as what it means for the reader. Texts of the service are not passed on: they may hold keys."""
    name = type(error).__name__
    text = f"{name} {error}"
    status = getattr(error, "status", None)
    if isinstance(error, FileNotFoundError) or status == 404 or "NoSuch" in text or "Not Found" in text:
        return InputError(f"{url}: no such object", code=MISSING, hint="it was moved or deleted after it was listed")
    denied = ("Forbidden", "AccessDenied", "Access Denied", "Unauthorized", "NoCredentials", "InvalidAccessKey",
              "SignatureDoesNotMatch", "ExpiredToken")  # fmt: skip
    if isinstance(error, PermissionError) or status in (401, 403) or any(word in text for word in denied):
        hint = "give the credentials the right to list and to read it (--storage FILE, or the store's own environment)"
        return InputError(f"{url}: reading it is not allowed", code=DENIED, hint=hint)
    if isinstance(error, TimeoutError) or "Timeout" in text:
        return InputError(f"{url}: the store timed out", code=SLOW, hint="run the same command again later")
    return InputError(
        f"{url}: cannot be read ({name})", code=BROKEN, hint="run the same command again; is the store up?"
    )


def read_ends(url: str, size: int, storage: Storage, count: int, stall: float = 60.0) -> tuple[bytes, bytes]:
    """The first and the last `count` bytes of an object (the last ones empty where the first hold all of it)."""
    system, path = file_system(url, storage)
    head = guarded(url, lambda: bytes(system.cat_file(path, start=0, end=min(count, size) or 1)), stall)
    if size <= len(head):
        return head, b""
    tail = guarded(url, lambda: bytes(system.cat_file(path, start=max(len(head), size - count), end=size)), stall)
    return head, tail


def fetch(url: str, size: int, storage: Storage, target: Path, limits: Limits) -> int:
    """Copy an object to `target`, block by block; gives its bytes. Blocks that fail are asked for again a few times.

    Raises InputError with a code: missing, denied, slow, unreadable, or larger than the spool may be."""
    if size > limits.spool:
        hint = "raise --spool-bytes, or cut the part of interest out of it first"
        raise InputError(f"{url}: has {size} bytes, the spool may take {limits.spool}", code=LARGE, hint=hint)
    system, path = file_system(url, storage)
    done = 0
    with target.open("wb") as out:
        for block in _blocks(system, path, url, size, limits):
            done += len(block)
            if done > limits.spool:
                raise InputError(f"{url}: grows beyond {limits.spool} bytes", code=LARGE, hint="raise --spool-bytes")
            out.write(block)
    if done < size:
        raise InputError(f"{url}: ends after {done} of {size} bytes", code=BROKEN, hint="run the same command again")
    return done


def range_reader(url: str, storage: Storage, stall: float) -> Callable[[int, int], bytes]:
    """What reads bytes [start, stop) of an object, asking again where the store stumbles; InputError with a code."""
    system, path = file_system(url, storage)
    return lambda start, stop: _again(url, lambda: bytes(system.cat_file(path, start=start, end=stop)), stall)


def _blocks(system: Any, path: str, url: str, size: int, limits: Limits) -> Iterator[bytes]:
    """Ranges where the store states a size; else (some web servers) the whole object as one stream."""
    if not size:
        yield guarded(url, lambda: bytes(system.cat_file(path)), limits.stall)
        return
    at = 0
    while at < size:
        start, stop = at, min(at + BLOCK, size)
        block = _again(url, lambda a=start, b=stop: bytes(system.cat_file(path, start=a, end=b)), limits.stall)  # type: ignore[misc]
        if not block:
            return
        yield block
        at += len(block)


def _again(url: str, call: Callable[[], bytes], stall: float) -> bytes:
    for attempt in range(1, ATTEMPTS):
        try:
            return guarded(url, call, stall)
        except InputError as error:
            if error.code != BROKEN:
                raise
            time.sleep(0.2 * attempt)
    return guarded(url, call, stall)
