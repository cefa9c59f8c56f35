"""What the commands share that read a log without diagnosing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, TYPE_CHECKING

from forensics.errors import UsageError
from forensics.output.atomic import replacing

if TYPE_CHECKING:
    from forensics.engine.table import EventTable


def scan_named(names: list[str], wrapper: str | None = None) -> EventTable:
    """Open and scan; a bad file among many, and what was not read or not kept, is told on standard error."""
    from forensics.engine.scan import scan
    from forensics.ingest.inputs import open_inputs
    from forensics.output.clean import clean
    from forensics.schema.options import Options

    options = Options(wrapper=wrapper)
    inputs = open_inputs(names, options)
    for problem in inputs.problems:
        print("forensics: " + clean(f"{problem.path or ''}: {problem.message}"), file=sys.stderr)
    table = scan(inputs.sources, options)
    for info in table.infos:
        for note in info.notes:
            print("forensics: " + clean(f"{info.path}: {note}"), file=sys.stderr)
    return table


def write_rows(
    format: str, output: Path | None, known: Collection[str], write: Callable[[IO[str] | Path], int]
) -> None:
    """Call `write` with standard output or with a new file that replaces `output` once it is whole."""
    if format not in known:
        raise UsageError(f"unknown format {format!r}", hint=f"one of {', '.join(sorted(known))}")
    if output is None:
        write(sys.stdout)
        return
    with replacing(output) as path:
        write(path)
