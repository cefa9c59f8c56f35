"""What lint and the kb tools look things up in: all knowledge, compiled rules, the catalog, the samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from forensics.knowledge.read_root import read_root
from forensics.knowledge.roots import builtin_root
from forensics.knowledge.store import Knowledge
from forensics.rulebook.program import Program, program_of
from forensics.schema.finding import Finding
from forensics.schema.signal import Rule
from forensics.timeline.catalog import Catalog, catalog

if TYPE_CHECKING:
    from forensics.schema.report import Report


@dataclass
class Library:
    """`knowledge` as analyses use it. `samples` is the folder with cases/ and healthy/, None where there is none.
    `trials` keeps what the analyzer said about a log block (text, symptom): a look-alike's block is asked again."""

    knowledge: Knowledge
    samples: Path | None = None
    trials: dict[tuple[str, str | None], Report | None] = field(default_factory=dict, repr=False)

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        return self.knowledge.rules

    @cached_property
    def findings(self) -> dict[str, Finding]:
        return {f.id: f for f in self.knowledge.findings}

    @cached_property
    def program(self) -> Program:
        return program_of(self.knowledge.rules)

    @cached_property
    def shipped(self) -> frozenset[str]:
        """Ids of the findings that come with the program: no team can change those."""
        return frozenset(f.id for f in read_root(builtin_root()).findings)

    @property
    def catalog(self) -> Catalog:
        return catalog()

    def path_of(self, shown: str) -> Path | None:
        """The file behind a path as messages give it; None where it is not at hand."""
        base = builtin_root().base
        for path in (Path(shown), *([base / shown] if base is not None else [])):
            if path.is_file():
                return path
        return None

    def sample(self, case: str) -> Path | None:
        """The log of a case: `<id>` or `saga/<file>`, also without the id's first part (`a-`, `run-`)."""
        if self.samples is None or ".." in case:
            return None
        cases = self.samples / "cases"
        for path in (cases / case / "log.txt", cases / case, self.samples / "healthy" / case / "log.txt"):
            if path.is_file():
                return path
        return None


def library(knowledge: Knowledge, samples: Path | None = None) -> Library:
    """A library over this knowledge; the samples of a checkout are found by themselves."""
    base = builtin_root().base
    found = samples or (base / "samples" if base is not None else None)
    return Library(knowledge, found if found is not None and found.is_dir() else None)
