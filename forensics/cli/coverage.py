"""`forensics coverage`: how much of a log was understood."""

from __future__ import annotations

import json
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics coverage server.log
  forensics coverage logs/ --json"""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def coverage(
    logs: Annotated[list[str], typer.Argument(help="Files, folders, globs, or -.")],
    top: Annotated[int, typer.Option(help="How many shapes of unread lines to list.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Share of lines and bytes that have a known kind, and the most frequent lines that have none."""
    from forensics.cli.hiding import hider
    from forensics.cli.scanning import scan_named
    from forensics.engine.coverage import coverage as measure
    from forensics.output.clean import clean

    hide = hider()
    found = measure(scan_named(logs), top)
    unread = [{"shape": clean(hide(u.shape), 200), "count": u.count, "where": clean(str(u.where))} for u in found.top]
    if as_json:
        data = {
            "lines": found.lines,
            "line_share": round(found.line_share, 6),
            "bytes": found.bytes,
            "byte_share": round(found.byte_share, 6),
            "kinds": dict(sorted(found.kinds.items())),
            "unread": unread,
        }
        typer.echo(json.dumps(data, indent=1))
        return
    typer.echo(f"{found.line_share:.2%} of {found.lines:,} lines and {found.byte_share:.2%} of {found.bytes:,} bytes")
    for kind, count in sorted(found.kinds.items(), key=lambda item: (-item[1], item[0])):
        typer.echo(f"{count:>12,}  {kind}")
    if unread:
        typer.echo("\nlines of no known kind (digits masked):")
    for entry in unread:
        typer.echo(f"{entry['count']:>12,}  {entry['where']}  {entry['shape']}")
