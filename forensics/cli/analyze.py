"""`forensics analyze`: the main job."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from forensics.errors import UsageError
from forensics.schema.options import SYMPTOMS, Options

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics analyze server.log
  kubectl logs pod/sglang-0 | forensics analyze -
  forensics analyze node0.log node1.log.gz --env check_env.txt
  forensics analyze server.log --symptom garbage --baseline good.log
  forensics analyze server.log --format json -o report.json
  forensics analyze server.log --format html -o report.html

Exit code: 0 no failure, 1 a failure or a stated symptom, 2 nothing usable or bad usage, 70 a bug."""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def analyze(
    logs: Annotated[
        list[str], typer.Argument(help="Files, folders, globs, .gz, .zst, bundles, or - for standard input.")
    ],
    format: Annotated[
        str, typer.Option("--format", "-f", help="text, json, html, md, issue, sarif, gcc, github or junit.")
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of standard output.")
    ] = None,
    launch: Annotated[str, typer.Option(help="last (the last failed one), all, or a number.")] = "last",
    since: Annotated[str | None, typer.Option(help="Only lines from this time on (log's clock).")] = None,
    until: Annotated[str | None, typer.Option(help="Only lines up to this time.")] = None,
    symptom: Annotated[str | None, typer.Option(help=f"What was seen: {', '.join(SYMPTOMS)}.")] = None,
    env: Annotated[list[Path] | None, typer.Option(help="Output of sglang.check_env or nvidia-smi.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="A good run to compare with.")] = None,
    history: Annotated[Path | None, typer.Option(help="History database to use as evidence.")] = None,
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A forensics.toml.")] = None,
    wrapper: Annotated[str | None, typer.Option(help="Force a wrapper (compose, cri, journald, ray, none …).")] = None,
    max_bytes: Annotated[str | None, typer.Option(help="Bound on the JSON report (64k, 2MB).")] = None,
    processes: Annotated[int, typer.Option(help="Worker processes; 0 chooses.")] = 0,
    brief: Annotated[bool, typer.Option("--brief", help="One screen.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="All grounds, facts and differences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="One line.")] = False,
    issue: Annotated[bool, typer.Option("--issue", help="What an upstream bug report needs: --format issue.")] = False,
    no_mask: Annotated[
        bool, typer.Option("--no-mask", help="Show secrets and user text as they stand in the log.")
    ] = False,
    width: Annotated[int, typer.Option(help="Columns of the text report; 0 asks the terminal.")] = 0,
) -> int:
    """Say what failed first, why, what is ruled out and what to change."""
    from forensics.cli.progress import progress_bar
    from forensics.cli.times import parse_size, parse_time
    from forensics.output.formats import check_format, render

    if issue:
        format = "issue"
    check_format(format)
    if baseline is not None and not baseline.exists() and "!/" not in str(baseline):
        raise UsageError(f"--baseline {baseline}: no such file", hint="check the path")
    options = Options(
        launch=_launch(launch),
        since=parse_time(since),
        until=parse_time(until),
        symptom=_symptom(symptom),
        env=tuple(env or ()),
        baseline=baseline,
        history=history,
        kb=tuple(kb or ()),
        rules=tuple(rules or ()),
        config=config,
        wrapper=wrapper,
        processes=processes,
        mask=not no_mask,
        max_bytes=parse_size(max_bytes),
    )
    from forensics.analysis import analyze as run

    with progress_bar(wanted=not quiet) as told:
        report = run(logs, replace(options, progress=told))
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
        sys.stdout.write(text)
    else:
        from forensics.output.atomic import write_atomic

        write_atomic(output, text)
    return int(report.failed())


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
