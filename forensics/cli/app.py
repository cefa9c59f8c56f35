"""All commands as one Typer application; the module of a command is imported when that command runs."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

import typer
import typer.core
import typer.main

COMMANDS: dict[str, tuple[str, str]] = {
    "analyze": ("forensics.cli.analyze", "What failed first, why, what is ruled out, what to change."),
    "explain": ("forensics.cli.explain", "How one line was read, or why a finding holds or not."),
    "events": ("forensics.cli.events", "All events of a log as jsonl, csv, parquet or sqlite."),
    "series": ("forensics.cli.series", "Batch metrics per rank as csv or parquet."),
    "coverage": ("forensics.cli.coverage", "How much of a log was understood, and what was not."),
    "bench": ("forensics.cli.bench", "Accuracy over cases whose truth is known."),
    "kb": ("forensics.cli.kb", "Write, check, search and test the knowledge base."),
    "replay": ("forensics.cli.replay", "Relaunch the server with the fix and prove it."),
    "history": ("forensics.cli.history", "Earlier analyses, attempts and verdicts."),
    "watch": ("forensics.cli.watch", "Follow a live server's log."),
    "collect": ("forensics.cli.collect", "Bundle what a diagnosis needs, on the server's host."),
    "fleet": ("forensics.cli.fleet", "Many incidents at once."),
    "lsp": ("forensics.cli.lsp", "Language server for findings, rules and logs."),
    "mcp": ("forensics.cli.mcp", "Tools for coding agents over the model context protocol."),
    "schema": ("forensics.cli.schema", "JSON Schema of the report."),
}


def available() -> list[str]:
    """Names of the commands that this installation holds."""
    return [name for name, (module, _) in COMMANDS.items() if importlib.util.find_spec(module) is not None]


class LazyGroup(typer.core.TyperGroup):
    """Imports a command's module only when that command runs, so that start-up stays short."""

    def list_commands(self, ctx: Any) -> list[str]:
        return available()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS or cmd_name not in available():
            return None
        app = importlib.import_module(COMMANDS[cmd_name][0]).app
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in available():
            ctx.fail(f"No such command '{args[0]}'.{_meant(args[0])}")
        return super().resolve_command(ctx, args)


def _meant(word: str) -> str:
    """What a word that is no command was probably meant to be: the nearest command, or the log itself."""
    from forensics.rulebook.located import nearest

    near = nearest(word.lower(), available())
    if near:
        return f" Did you mean '{near}'?"
    return f" Did you mean 'analyze {word}'?" if Path(word).exists() else ""


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Log forensics for sglang servers: what failed first, why, what to change, and a replay that proves it.",
    epilog="Example: forensics analyze server.log",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from forensics.version import VERSION

        typer.echo(f"forensics {VERSION}")
        raise typer.Exit(0)


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Log forensics for sglang servers."""
