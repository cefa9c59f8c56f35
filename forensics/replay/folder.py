"""The run folder: journal, logs, plan and evidence of one replay. Every file is either old or new, never half."""

from __future__ import annotations

import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.output.atomic import write_atomic
from forensics.output.mask import LineMasker
from forensics.replay.sealed import Sealed, masked_tree

_JOURNAL = "run.json"


@frozen
class RunFolder:
    """`path` holds run.json (the journal) and one `<step>.log` for each launched server. Everything in it is masked;
    what it takes to run a command again stands aside (sealed.py), and only the owner can read the folder."""

    path: Path

    @classmethod
    def create(cls, root: Path, now: datetime | None = None) -> RunFolder:
        """A new folder below `root`, named by time and chance."""
        stamp = (now or datetime.now(UTC)).strftime("%Y%m%d-%H%M%S")
        path = root / f"{stamp}-{secrets.token_hex(3)}"
        try:
            path.mkdir(parents=True, mode=0o700)
        except OSError as error:
            raise ReplayError(
                f"cannot make the run folder {path}: {error.strerror}", hint="choose another with --runs"
            ) from None
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """An existing run folder. Raises ReplayError where `path` is none."""
        if not (path / _JOURNAL).is_file():
            raise ReplayError(
                f"{path} is no run folder", hint="it holds a run.json; `forensics replay` prints its name"
            )
        return cls(path)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def mark(self) -> str:
        """What the started processes carry in their environment."""
        return f"forensics-{self.name}"

    def read(self) -> dict[str, Any]:
        """The journal."""
        try:
            data: dict[str, Any] = json.loads((self.path / _JOURNAL).read_text())
        except (OSError, ValueError) as error:
            raise ReplayError(f"{self.path / _JOURNAL} cannot be read: {error}") from None
        whole: dict[str, Any] = Sealed(self.path).whole(_JOURNAL, data)
        return whole

    def write(self, journal: dict[str, Any]) -> None:
        """Replace the journal."""
        self.keep(_JOURNAL, journal)

    def update(self, **values: Any) -> dict[str, Any]:
        """Merge values into the journal and give it."""
        journal = {**self.read(), **values} if (self.path / _JOURNAL).exists() else values
        self.write(journal)
        return journal

    def keep(self, name: str, tree: dict[str, Any]) -> None:
        """Write a tree that is needed as it is until the replay ends; the file shows no secret of it."""
        write_atomic(self.path / name, _json(Sealed(self.path).hide(name, tree)))

    def kept(self, name: str) -> Any:
        """The tree that `keep` was given. Raises OSError and ValueError where there is none."""
        return Sealed(self.path).whole(name, json.loads((self.path / name).read_text(encoding="utf-8")))

    def save(self, name: str, text: str) -> Path:
        """Keep a piece of evidence that is masked already."""
        path = self.path / name
        write_atomic(path, text)
        return path

    def save_tree(self, name: str, tree: Any) -> None:
        """Keep a tree of JSON as evidence, without secrets and user text."""
        self.save(name, _json(masked_tree(tree)))

    def save_lines(self, name: str, text: str) -> None:
        """Keep a text as evidence, masked line by line."""
        hide = LineMasker()
        self.save(name, "\n".join(hide(line) for line in text.split("\n")))

    def finished(self) -> None:
        """Nothing of this run will be launched again: let go of what that would take."""
        Sealed(self.path).forget()

    def log(self, step: str) -> Path:
        """The local copy of the log of one launched server."""
        return self.path / f"{step}.log"


def _json(tree: Any) -> str:
    return json.dumps(tree, indent=1, sort_keys=True) + "\n"


def unfinished(root: Path) -> list[RunFolder]:
    """Run folders below `root` whose journal says that a server may still be running, oldest first."""
    found = []
    for entry in sorted(os.scandir(root), key=lambda e: e.name) if root.is_dir() else []:
        folder = RunFolder(Path(entry.path))
        if (folder.path / _JOURNAL).is_file() and folder.read().get("state") == "running":
            found.append(folder)
    return found
