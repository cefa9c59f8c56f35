"""`forensics events`: all events of a log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics events server.log > events.jsonl
  forensics events server.log --format csv -o events.csv
  forensics events node0.log node1.log --format sqlite -o events.db"""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def events(
    logs: Annotated[list[str], typer.Argument(help="Files, folders, globs, or -.")],
    format: Annotated[str, typer.Option("--format", "-f", help="jsonl, csv, parquet or sqlite.")] = "jsonl",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
    no_mask: Annotated[
        bool, typer.Option("--no-mask", help="Show secrets and user text as they stand in the log.")
    ] = False,
    wrapper: Annotated[str | None, typer.Option(help="Force a wrapper.")] = None,
) -> None:
    """Write every event: place, time, rank, kind, text. Batch and access lines are in `forensics series`."""
    from forensics.cli.hiding import hider
    from forensics.cli.scanning import scan_named, write_rows
    from forensics.engine.export import EVENT_FORMATS, export_events

    hide = hider(no_mask)
    table = scan_named(logs, wrapper)
    write_rows(format, output, EVENT_FORMATS, lambda out: export_events(table, format, out, hide))
