"""Entry point: finds the command, runs it, turns every error into a message and an exit code."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from io import TextIOWrapper
from itertools import pairwise

from forensics.errors import ForensicsError
from forensics.output import own


def main() -> None:
    """Run and exit. Exit codes: those of the command; 2 for bad input or usage; 70 for a bug; 130 for Ctrl-C."""
    # Few of the objects of one run form cycles; looking for them time and again takes a fifth of a short run.
    gc.set_threshold(500_000, 50, 50)
    # Plug-ins of other packages have no business here, and looking for them takes as long as reading a small log.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _streams()
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
    # The system takes everything back at once; to look through it for cycles first takes a tenth of a short run.
    gc.freeze()
    sys.exit(code)


def _streams() -> None:
    """Streams that are there, whatever the caller closed, and that take every character: a terminal that knows few of
    them shows `?` for the others."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - for the whole run
        elif name == "stdout" and isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def run(argv: list[str]) -> int:
    """Run one command line and give its exit code; errors are printed, never raised."""
    own.use(lambda: _own_secrets(argv))
    try:
        plain = _plain(argv)
        return plain() if plain is not None else _any(argv)
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


def _any(argv: list[str]) -> int:
    """Any command line."""
    import typer.main

    from forensics.cli.app import app

    command = typer.main.get_command(app)
    result = command.main(args=list(argv), prog_name="forensics", standalone_mode=False)
    return result if isinstance(result, int) else 0


def _plain(argv: list[str]) -> Callable[[], int] | None:
    """The commonest call, `analyze LOG… [--format NAME]`, without the command-line library, which takes as long to load
    as a log of many megabytes to read. None: another call."""
    logs: list[str] = []
    chosen = "text"
    words = iter(argv[1:])
    for word in words:
        if word in ("-f", "--format"):
            chosen = next(words, "-")
        elif word == "-" or not word.startswith("-"):
            logs.append(word)
        else:
            return None
    if argv[:1] != ["analyze"] or not logs or chosen.startswith("-"):
        return None

    from forensics.cli.report import write_report

    return partial(write_report, logs, format=chosen)


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
    from forensics.cli.app import COMMANDS

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
    words = ("--format=json", "-fjson")
    return any(word in argv for word in words) or any(
        pair in (("--format", "json"), ("-f", "json")) for pair in pairwise(argv)
    )
