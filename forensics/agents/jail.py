"""The one folder below which agents may read: every name is resolved, links included, before a file is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from forensics.errors import InputError, UsageError
from forensics.ingest.inputs import expand

MAX_FILES = 256


class Jail:
    """`root` is a folder. Names are relative to it, or absolute inside it."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UsageError(f"--root {root}: no such folder", hint="name the folder that holds the logs")
        self.root = Path(os.path.realpath(root))

    def files(self, names: Sequence[str]) -> list[Path]:
        """The files that the names (files, folders, globs) stand for. Raises InputError for anything outside, and for
        what is no regular file."""
        if not names:
            raise InputError("no log was named", hint="give `paths`, relative to the root folder")
        found: list[Path] = []
        for name in names:
            found += [self.file(str(path)) for path in expand(str(self._inside(name))).logs]
        if len(found) > MAX_FILES:
            raise InputError(f"{len(found)} files are named, more than {MAX_FILES}", hint="name fewer of them")
        return list(dict.fromkeys(found))

    def file(self, name: str) -> Path:
        """One regular file below the root, as its real path."""
        path = self._inside(name)
        try:
            mode = path.stat().st_mode
        except OSError:
            raise InputError(f"{self.shown(name)}: no such file or folder", code="input-missing") from None
        if not stat.S_ISREG(mode):
            raise InputError(f"{self.shown(name)}: is no regular file", code="input-not-a-file")
        return path

    def _inside(self, name: str) -> Path:
        """Real path of a name. Links are followed first and judged by where they lead."""
        if "\x00" in name:
            raise InputError("a file name with a NUL byte", code="input-outside")
        real = Path(os.path.realpath(self.root / name))
        if real != self.root and self.root not in real.parents:
            raise InputError(
                f"{name}: lies outside the root folder",
                code="input-outside",
                hint="only files below the folder that was given as --root may be read",
            )
        return real

    def shown(self, text: str) -> str:
        """Text with real paths made relative to the root, so that replies do not tell where it lies."""
        return text.replace(f"{self.root}{os.sep}", "").replace(str(self.root), ".")
