"""Entry point: finds the command, runs it, turns every error into a message and an exit code."""

from __future__ import annotations

import errno
import gc
import importlib
import importlib.util
import os
import sys
from itertools import pairwise
from typing import Any

import typer
import typer.core
import typer.main

from forensics.errors import ForensicsError
from forensics.output import own

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


def main() -> None:
    """Run and exit. Exit codes: those of the command; 2 for bad input or usage; 70 for a bug; 130 for Ctrl-C."""
    # Few of the objects of one run form cycles; looking for them time and again takes a fifth of a short run.
    gc.set_threshold(100_000, 50, 50)
    # Plug-ins of other packages have no business here, and looking for them takes as long as reading a small log.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        code = run(sys.argv[1:])
        try:
            if not sys.stdout.closed:  # the language server closes it at its end
                sys.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            code = _full(error)
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except BrokenPipeError:
        # the reader (head, less) went away: nothing is wrong on our side
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def run(argv: list[str]) -> int:
    """Run one command line and give its exit code; errors are printed, never raised."""
    command = typer.main.get_command(app)
    own.use(lambda: _own_secrets(argv))
    try:
        result = command.main(args=list(argv), prog_name="forensics", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except ForensicsError as error:
        _show(error.render(), argv, error)
        return error.exit_code
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _other(error, argv)


def _own_secrets(argv: list[str]) -> tuple[str, ...]:
    """Patterns of secrets of the forensics.toml that the command line names, else of the one in the current folder."""
    from pathlib import Path

    from forensics.knowledge.roots import load_config
    from forensics.schema.options import Options

    named = [after for word, after in pairwise(argv) if word == "--config"]
    named += [word.partition("=")[2] for word in argv if word.startswith("--config=")]
    return load_config(Options(config=Path(named[-1]) if named else None)).secrets


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def _full(error: OSError) -> int:
    """No room for what is to be written, or for the temporary copy of a compressed input."""
    print(
        f"forensics: cannot write: {error.strerror}\n  hint: free some space (TMPDIR names where copies are unfolded)",
        file=sys.stderr,
    )
    return 2


def _other(error: Exception, argv: list[str]) -> int:
    """Usage errors and exits of the command-line library, then real bugs."""
    if type(error).__name__ == "Abort":
        print("interrupted", file=sys.stderr)
        return 130
    if isinstance(error, OSError) and error.errno in _FULL:
        return _full(error)
    code = getattr(error, "exit_code", None)
    if isinstance(code, int):
        message = getattr(error, "format_message", None)
        text = message() if message is not None else ""
        if text:  # without words the command has printed its help
            _show(f"{text}\n  hint: {_named(error, argv)} --help lists what it takes", argv, error)
        return code
    from forensics.cli.crash import report_bug

    return report_bug(error, argv)


def _named(error: Exception, argv: list[str]) -> str:
    """The command whose use was wrong, sub-commands included."""
    path = getattr(getattr(error, "ctx", None), "command_path", "")
    return str(path) or ("forensics " + argv[0] if argv and argv[0] in COMMANDS else "forensics")


def _show(text: str, argv: list[str], error: Exception) -> None:
    if wants_json(argv):
        from forensics.output.json import render_error

        span = getattr(error, "span", None)
        place = {"path": span.path, "line": span.line, "column": span.column} if span else {}
        message = getattr(error, "message", None) or text
        hint = getattr(error, "hint", "")
        sys.stdout.write(render_error(str(message), **place, hint=hint or ""))
    else:
        print(f"forensics: {text}", file=sys.stderr)


def wants_json(argv: list[str]) -> bool:
    """Whether the command line asks for JSON (errors are JSON then, too)."""
    return "--format=json" in argv or any(pair == ("--format", "json") for pair in pairwise(argv))
