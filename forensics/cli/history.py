"""`forensics history`: what was analysed, tried and proved here before."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics history
  forensics history fp16-overflow --verdicts
  forensics history --db team.db --json"""


@app.command(epilog=EXAMPLES)
def history(
    text: Annotated[str, typer.Argument(help="Words that must occur (finding, model, change, headline, path …).")] = "",
    db: Annotated[Path | None, typer.Option(help="History file; default: the user's own.")] = None,
    verdicts: Annotated[bool, typer.Option("--verdicts", help="Only verdicts of replays.")] = False,
    limit: Annotated[int, typer.Option(help="At most so many rows of each kind.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """List and search earlier analyses and verdicts. Exit code: 0, or 2 where there is no history."""
    import dataclasses
    import json

    from forensics.history import History, default_path
    from forensics.output.clean import clean

    store = History(db or default_path(), create=False)
    proved = [
        v
        for v in store.verdicts()
        if text in f"{v.finding} {v.model} {v.run} {v.failure} {' '.join(v.changes)} {v.outcome}"
    ][-limit:]
    tried = () if verdicts else store.attempts(text, limit)
    analysed = [] if verdicts else store.analyses(text, limit)
    if as_json:
        kept = [dataclasses.asdict(verdict) for verdict in proved]
        launched = [dataclasses.asdict(one) for one in tried]
        typer.echo(json.dumps({"verdicts": kept, "attempts": launched, "analyses": analysed}, indent=1))
        return
    for verdict in reversed(proved):
        changes = " ".join(verdict.changes)
        line = f"{_date(verdict.at)}  {verdict.outcome:<18} {verdict.finding or '-'}  {changes}  [{verdict.run}]"
        typer.echo(clean(line))
    for one in tried:
        what = f"launch {one.ended:<11} {one.step} in {one.stage or '-'}: {one.failure or one.why}"
        typer.echo(clean(f"{_date(one.at)}  {what}  [{one.run}]"))
    for row in analysed:
        typer.echo(
            clean(f"{_date(row['at'])}  {row['verdict'] or 'analysed':<18} {row['finding'] or '-'}  {row['headline']}")
        )
    if not proved and not analysed and not tried:
        typer.echo("nothing matches")


def _date(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
