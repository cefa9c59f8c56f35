"""What `forensics analyze` does, without the command-line library: options as text, a report written, an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path

from forensics.errors import UsageError
from forensics.schema.options import SYMPTOMS, Options

MAX_TOLD = 5
"""Problems and unread parts that `--quiet` tells on standard error."""


def write_report(
    logs: Sequence[str],
    *,
    format: str = "text",
    output: Path | None = None,
    launch: str = "last",
    since: str | None = None,
    until: str | None = None,
    symptom: str | None = None,
    env: Sequence[Path] = (),
    baseline: Path | None = None,
    history: Path | None = None,
    kb: Sequence[Path] = (),
    rules: Sequence[Path] = (),
    config: Path | None = None,
    wrapper: str | None = None,
    max_bytes: str | None = None,
    processes: int = 0,
    brief: bool = False,
    verbose: bool = False,
    quiet: bool = False,
    no_mask: bool = False,
    width: int = 0,
) -> int:
    """Analyze logs and write the report; the arguments are those of the command. Gives the exit code."""
    from forensics.cli.progress import progress_bar
    from forensics.cli.times import parse_size, parse_time
    from forensics.output.formats import check_format

    check_format(format)
    if baseline is not None and not baseline.exists() and "!/" not in str(baseline):
        raise UsageError(f"--baseline {baseline}: no such file", hint="check the path")
    options = Options(
        launch=_launch(launch),
        since=parse_time(since),
        until=parse_time(until),
        symptom=_symptom(symptom),
        env=tuple(env),
        baseline=baseline,
        history=history,
        kb=tuple(kb),
        rules=tuple(rules),
        config=config,
        wrapper=wrapper,
        processes=processes,
        mask=not no_mask,
        max_bytes=parse_size(max_bytes),
    )
    from forensics.engine.begin import begin

    with progress_bar(wanted=not quiet) as told:
        options = replace(options, progress=told)
        with begin(logs, options, ahead=True) as begun:
            # Loaded while a second process reads already.
            from forensics.analysis import analyze as run

            report = run(logs, options, begun)
    from forensics.diagnose.headline import shows_server
    from forensics.output.clean import clean
    from forensics.output.formats import render

    text = render(
        report,
        format,
        width=width or _width(output),
        color=_color(output),
        detail=int(verbose),
        brief=brief,
        quiet=quiet,
        max_bytes=options.max_bytes,
    )
    if output is None:
        if format != "text" and isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # what programs read, whatever the terminal's language is
        sys.stdout.write(text)
    else:
        from forensics.output.atomic import write_atomic

        write_atomic(output, text)
    if quiet:
        unread = [f"{p.path}: {p.message}" if p.path else p.message for p in report.problems]
        unread += [note for source in report.sources for note in source.notes]
        for line in unread[:MAX_TOLD]:
            sys.stderr.write(f"forensics: {clean(line)}\n")
    usable = report.symptom is not None or any(shows_server(launch) for launch in report.launches)
    return int(report.failed()) if usable else 2


def _launch(text: str) -> str:
    if text in ("last", "all") or (text.isascii() and text.isdigit() and int(text) > 0):
        return text
    raise UsageError(
        f"--launch {text}: not last, all or a number from 1 on", hint="the report lists the launches by number"
    )


def _symptom(text: str | None) -> str | None:
    if text is None or text in SYMPTOMS:
        return text
    raise UsageError(
        f"--symptom {text}: not one of {', '.join(SYMPTOMS)}", hint="say what you saw from outside, not the cause"
    )


def _terminal(output: Path | None) -> bool:
    return output is None and sys.stdout.isatty()


def _width(output: Path | None) -> int:
    if not _terminal(output):
        return 80
    return max(40, min(160, os.get_terminal_size().columns))


def _color(output: Path | None) -> bool:
    return _terminal(output) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
