"""Small logs through the real stages: which signals they show, and what conditions come to."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from forensics.engine.scan import scan
from forensics.grammar.blocks import find_blocks
from forensics.ingest.sources import Source
from forensics.rulebook.case import Case
from forensics.rulebook.match import match_rules
from forensics.schema.options import Options
from forensics.schema.signal import Rule
from forensics.timeline.failures import find_failures
from forensics.timeline.launches import find_launches


@contextmanager
def text_source(text: str, name: str = "log") -> Iterator[Source]:
    """A log text as an opened input."""
    data = text.encode("utf-8", "replace")
    with tempfile.TemporaryFile() as handle:
        handle.write(data)
        handle.flush()
        yield Source(name, len(data), cast("BinaryIO", handle))


@contextmanager
def cases_of(text: str, rules: Mapping[str, Rule], symptom: str | None = None) -> Iterator[tuple[Case, ...]]:
    """The launches of a log text, with signals and failures, as conditions see them."""
    options = Options(launch="all", symptom=symptom, processes=1)
    with text_source(text) as source:
        table = scan([source], options)
        blocks = find_blocks(table)
        cases: list[Case] = []
        for launch in find_launches(table, blocks, options):
            signals = match_rules(rules, table, blocks, launch)
            full = find_failures(table, blocks, launch, signals, dict(rules))
            cases.append(Case(table, blocks, full, signals, dict(rules), symptom, tuple(cases)))
        yield tuple(cases)


def read_log(path: Path) -> str:
    """The text of a sample."""
    return path.read_bytes().decode("utf-8", "replace")
