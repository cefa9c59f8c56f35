"""Which file is what, and the knowledge around it. Files are checked as typed, before they are saved."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from forensics.errors import ForensicsError
from forensics.knowledge.library import Library, library
from forensics.knowledge.lint import lint_file
from forensics.knowledge.store import load
from forensics.knowledge.workplace import Target, open_workplace
from forensics.rulebook.problem import Problem
from forensics.schema.options import Options

WORD = re.compile(r"--[\w-]+|[\w$][\w./$-]*")
MAX_TEXT = 1 << 20
LINTED = ("finding", "deployment", "rule")


def kind_of(path: Path, text: str = "") -> str:
    """`finding`, `deployment`, `rule`, `truth` (of a sample), `log` or nothing."""
    if path.name == "truth.json" or path.name.endswith(".truth.json"):
        return "truth"
    if path.suffix in (".yaml", ".yml"):
        return "rule" if "rules" in path.parts else ""
    if path.suffix == ".md":
        if path.name.lower() in ("readme.md", "index.md") or (text and not text.startswith(("---", "\ufeff---"))):
            return ""
        return "deployment" if path.parent.name == "deployments" else "finding"
    names = (".log", ".out", ".err")
    return "log" if path.suffix in names or path.name in ("log.txt", "stdout.txt", "stderr.txt") else ""


def word_at(line: str, column: int) -> tuple[str, int]:
    """The word around a 1-based column, without trailing points, and its own 1-based column; empty where none is."""
    for found in WORD.finditer(line):
        if found.start() < column <= found.end() + 1:
            word = found.group().rstrip("./-")
            return word, found.start() + 1
    return "", column


@dataclass
class Desk:
    """Knowledge bases by folder, loaded once and again after a file was saved."""

    options: Options = field(default_factory=Options)
    _open: dict[Path, Library] = field(default_factory=dict)
    _plain: Library | None = None

    def library(self, path: Path) -> Library:
        """The library that a file belongs to: the base around it, with the shipped one below."""
        found = self._open.get(path.parent)
        if found is None:
            found = self._open[path.parent] = self._load(path)
        return found

    def _load(self, path: Path) -> Library:
        try:
            return open_workplace([path if path.exists() else path.parent], self.options).library
        except ForensicsError:
            return self.plain()

    def plain(self) -> Library:
        """The shipped knowledge and what the options add."""
        if self._plain is None:
            self._plain = library(load(self.options))
        return self._plain

    def saved(self) -> None:
        """A file of a knowledge base changed on disk."""
        self._open.clear()
        self._plain = None

    def problems(self, path: Path, text: str) -> list[Problem]:
        """What lint says about a text that would stand in a file."""
        if kind_of(path, text) not in LINTED or len(text) > MAX_TEXT:
            return []
        target = self._target(path)
        with tempfile.TemporaryDirectory(prefix="forensics-lsp-") as folder:
            # Lint knows a file by its name and its folder: both stay.
            copy = Path(folder) / path.parent.name / path.name
            copy.parent.mkdir()
            copy.write_text(text, encoding="utf-8", newline="")
            return lint_file(copy, self.library(path), target.namespace, target.shown, target.shipped)

    def _target(self, path: Path) -> Target:
        try:
            targets = open_workplace([path], self.options).targets if path.exists() else ()
        except ForensicsError:
            targets = ()
        return targets[0] if targets else Target(path, "", str(path), False)
