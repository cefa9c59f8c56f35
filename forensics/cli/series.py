"""`forensics series`: batch metrics per rank."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics series server.log > series.csv
  forensics series server.log --format parquet -o series.parquet"""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def series(
    logs: Annotated[list[str], typer.Argument(help="Files, folders, globs, or -.")],
    format: Annotated[str, typer.Option("--format", "-f", help="csv, jsonl, parquet or sqlite.")] = "csv",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
    wrapper: Annotated[str | None, typer.Option(help="Force a wrapper.")] = None,
) -> None:
    """Write throughput, token usage, running and queued requests, accept length … of every batch line."""
    from forensics.cli.scanning import scan_named, write_rows
    from forensics.engine.export import EVENT_FORMATS, export_series

    table = scan_named(logs, wrapper)
    write_rows(format, output, EVENT_FORMATS, lambda out: export_series(table, format, out))
