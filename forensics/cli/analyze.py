"""`forensics analyze`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forensics.schema.options import SYMPTOMS

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
    processes: Annotated[int, typer.Option(min=0, help="Worker processes; 0 chooses.")] = 0,
    brief: Annotated[bool, typer.Option("--brief", help="One screen.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="All grounds, facts and differences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="One line.")] = False,
    issue: Annotated[bool, typer.Option("--issue", help="What an upstream bug report needs: --format issue.")] = False,
    no_mask: Annotated[
        bool, typer.Option("--no-mask", help="Show secrets and user text as they stand in the log.")
    ] = False,
    width: Annotated[int, typer.Option(min=0, help="Columns of the text report; 0 asks the terminal.")] = 0,
) -> int:
    """Say what failed first, why, what is ruled out and what to change."""
    from forensics.cli.report import write_report

    return write_report(
        logs,
        format="issue" if issue else format,
        env=env or (),
        kb=kb or (),
        rules=rules or (),
        output=output,
        launch=launch,
        since=since,
        until=until,
        symptom=symptom,
        baseline=baseline,
        history=history,
        config=config,
        wrapper=wrapper,
        max_bytes=max_bytes,
        processes=processes,
        brief=brief,
        verbose=verbose,
        quiet=quiet,
        no_mask=no_mask,
        width=width,
    )
