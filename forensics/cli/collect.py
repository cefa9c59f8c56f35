"""`forensics collect`: bundle what a diagnosis needs, on the server's host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from forensics.errors import UsageError

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics collect --log server.log
  forensics collect --pid 4711 --python /opt/venv/bin/python -o incident.tar.zst
  forensics analyze forensics-bundle.tar.zst

Exit code: 0 written (parts may be missing, the manifest says which), 2 bad usage or the bundle cannot be written."""


@app.command(epilog=EXAMPLES)
def collect(
    output: Annotated[Path, typer.Option("--output", "-o", help="The bundle.")] = Path("forensics-bundle.tar.zst"),
    log: Annotated[list[Path] | None, typer.Option(help="A log to take along. Repeatable.")] = None,
    pid: Annotated[
        int, typer.Option(min=0, help="The server's process: its environment, limits, command and log.")
    ] = 0,
    python: Annotated[str, typer.Option(help="The server's Python.")] = "python3",
    max_log: Annotated[str, typer.Option(help="Of a longer log only its head and tail are taken.")] = "2GB",
    no_mask: Annotated[
        bool, typer.Option("--no-mask", help="Copy logs as they are, with secrets and user text.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")] = False,
) -> None:
    """Bundle versions, GPUs, topology, environment, kernel messages, limits and the log, secrets masked."""
    from forensics.cli.times import parse_size
    from forensics.collect.bundle import Wish, write_bundle

    logs = tuple(log or ())
    for path in logs:
        if not path.is_file():
            raise UsageError(f"--log {path}: no such file", hint="name the server's log")
    if pid and not Path(f"/proc/{pid}").is_dir():
        raise UsageError(f"--pid {pid}: no such process", hint="pgrep -f sglang")
    if output.exists() and not force:
        raise UsageError(f"{output} exists already", hint="choose another name with -o, or pass --force")
    live = sys.stderr.isatty()
    wish = Wish(logs, pid, python, parse_size(max_log), not no_mask)
    entries = write_bundle(output, wish, lambda text: print(f"… {text}", file=sys.stderr) if live else None)
    for entry in entries:
        mark = "ok     " if entry.size else "missing"
        typer.echo(
            f"{mark} {entry.name:<18} {entry.size:>12,} bytes" + (f"  ({entry.problem})" if entry.problem else "")
        )
    if not any(e.name.startswith("logs/") and e.size for e in entries):
        typer.echo("note: there is no log in it; pass --log server.log", err=True)
    typer.echo(str(output))
