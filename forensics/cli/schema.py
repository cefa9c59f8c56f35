"""`forensics schema`: the JSON Schema of the report."""

from __future__ import annotations

import json

import typer

app = typer.Typer(add_completion=False)


@app.command(epilog="Example: forensics schema > report.schema.json")
def schema() -> None:
    """Print the JSON Schema of `forensics analyze --format json`."""
    from forensics.schema.report import Report

    typer.echo(json.dumps(Report.model_json_schema(), indent=1))
