"""Whether the files of a knowledge base are those of an earlier run, told from their folders without reading them.

A stamp covers names, sizes, inodes and both times of all files. It leads to the content key under which the parsed
files are cached; a stamp that nobody knows means that the files are read. Nothing can change a file and keep its
change time (ctime), except within one tick of the clock: so a stamp is only remembered when all changes are older.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

from forensics.frozen import frozen
from forensics.knowledge.cache import content_key, read_cache, write_cache
from forensics.knowledge.roots import Root

_PREFIX = "stamp-"
"""Names of the cache files (forensics/knowledge/cache.py)."""
_SETTLED_S = 3.0
"""Seconds after its last change from which on a file counts as settled: far more than a tick of any file system."""


@frozen
class Stamp:
    """`key` names the state of all files; `newest` is the last change of any of them, seconds since the epoch."""

    key: str
    newest: float

    def content(self) -> str | None:
        """The content key of this state, where an earlier run found it."""
        known = read_cache(self.key, _PREFIX)
        return known if isinstance(known, str) else None

    def remember(self, content: str) -> None:
        """Keep the content key for later runs."""
        if time.time() - self.newest > _SETTLED_S:
            write_cache(self.key, content, _PREFIX)


def stamp(root: Root) -> Stamp:
    """The state of a knowledge base's files: rules in all folders, pages in those that may hold some."""
    tops = [(root.rules, True)] if root.rules is not None else []
    if root.kb is not None:
        tops += [(root.kb, False), (root.kb / "findings", False), (root.kb / "deployments", False)]
    parts, newest = [f"{root.namespace}\n{root.base}"], 0.0
    for top, deep in tops:
        parts.append(str(top))
        for path, seen in _files(str(top), deep):
            newest = max(newest, seen.st_ctime, seen.st_mtime)
            parts.append(f"{path}\n{seen.st_size} {seen.st_ino} {seen.st_mtime_ns} {seen.st_ctime_ns}")
    return Stamp(content_key(part.encode("utf-8", "surrogateescape") for part in parts), newest)


def _files(top: str, deep: bool) -> Iterator[tuple[str, os.stat_result]]:
    """All files of a folder, or of all below it too, with what the system says of them; a file stands for itself."""
    left = [top]
    while left:
        folder = left.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except NotADirectoryError:
            yield folder, os.stat(folder)  # noqa: PTH116 - no Path for each of many files
            continue
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    yield entry.path, entry.stat()
            elif deep:
                left.append(entry.path)
