"""`forensics replay`: relaunch the server with the fix and prove it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics replay server.log
  forensics replay server.log --fix 'set --dtype=bfloat16' --control --yes
  forensics replay server.log --host ssh://me@blackwell --launch-file run.sh
  forensics replay server.log --ladder --budget 3h --yes
  forensics replay --resume forensics-runs/20261130-105603-47be87 --yes
  forensics replay --cleanup

Without --yes a terminal is asked, and anything else stays a dry run.

Exit code: 0 fixed, passes or dry run; 1 any other verdict; 2 refused or bad usage; 130 interrupted."""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def replay(
    logs: Annotated[list[str] | None, typer.Argument(help="The failing log.")] = None,
    hypothesis: Annotated[str | None, typer.Option(help="Id in the report (L1.H2) or a finding's id.")] = None,
    fix: Annotated[
        list[str] | None, typer.Option(help="A change: 'set --flag=value', 'remove --flag', 'set K=V'.")
    ] = None,
    launch: Annotated[str | None, typer.Option(help="The launch command.")] = None,
    launch_file: Annotated[Path | None, typer.Option(help="A script that holds the launch command.")] = None,
    python: Annotated[
        str, typer.Option(help="The server's Python, for a command that comes out of the log.")
    ] = "python3",
    host: Annotated[str, typer.Option(help="local or ssh://user@host.")] = "local",
    ssh_config: Annotated[Path | None, typer.Option(help="OpenSSH configuration instead of your own.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run without asking.")] = False,
    control: Annotated[
        bool, typer.Option("--control", help="First run the unchanged command: proves the fix.")
    ] = False,
    ladder: Annotated[bool, typer.Option("--ladder", help="Try the ranked hypotheses in order.")] = False,
    budget: Annotated[str, typer.Option(help="Time for --ladder and --minimise (90m, 3h).")] = "6h",
    minimise: Annotated[
        bool, typer.Option("--minimise", help="Find the smallest set of changes that still works.")
    ] = False,
    concurrency: Annotated[int, typer.Option(help="Requests in flight; 0: as many as when it failed.")] = 0,
    requests: Annotated[
        int, typer.Option(help="Requests of the load; 0: enough to pass the point of the failure.")
    ] = 0,
    tokens: Annotated[int, typer.Option(help="New tokens for each request.")] = 64,
    seconds: Annotated[float, typer.Option(help="Bound on one part of the probe.")] = 600.0,
    settle: Annotated[float, typer.Option(help="Seconds that the server must stay alive after the load.")] = 5.0,
    requests_file: Annotated[Path | None, typer.Option(help="Recorded requests (JSONL) to replay as load.")] = None,
    crash_dump: Annotated[
        Path | None, typer.Option(help="sglang's own crash dump (pickle); needs --trust-dump.")
    ] = None,
    trust_dump: Annotated[bool, typer.Option("--trust-dump", help="I wrote that pickle: it may run code.")] = False,
    limit: Annotated[list[str] | None, typer.Option(help="Time for a stage: load=3600.")] = None,
    allow_env: Annotated[list[str] | None, typer.Option(help="A further variable that a fix may set.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Start although preflight advises against it.")] = False,
    runs: Annotated[Path, typer.Option(help="Where run folders go.")] = Path("forensics-runs"),
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Continue this run folder with the options it was begun with; finished steps are not repeated."
        ),
    ] = None,
    cleanup: Annotated[bool, typer.Option("--cleanup", help="End what a dead replay left running.")] = False,
    db: Annotated[Path | None, typer.Option(help="History file; default: the user's own.")] = None,
    history: Annotated[
        Path | None, typer.Option(help="History whose verdicts count: refuted fixes are left out.")
    ] = None,
    symptom: Annotated[str | None, typer.Option(help="What was seen, for logs without an error line.")] = None,
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
) -> int:
    """Relaunch the server with the fix and say whether it is proved. A dry run unless --yes is given or you agree."""
    from forensics.errors import UsageError
    from forensics.replay.command import run_cleanup, run_replay
    from forensics.replay.request import Request

    if cleanup:
        return run_cleanup(Request(runs=runs, host=host, ssh_config=ssh_config))
    if not logs and launch is None and launch_file is None and resume is None and crash_dump is None:
        raise UsageError("no log and no launch command", hint="forensics replay server.log, or --launch '…' --fix '…'")
    return run_replay(
        Request(
            logs=tuple(logs or ()),
            hypothesis=hypothesis,
            fixes=tuple(fix or ()),
            launch=launch,
            launch_file=launch_file,
            python=python,
            host=host,
            ssh_config=ssh_config,
            yes=yes,
            control=control,
            ladder=ladder,
            budget=budget,
            minimise=minimise,
            concurrency=concurrency,
            requests=requests,
            tokens=tokens,
            seconds=seconds,
            settle=settle,
            requests_file=requests_file,
            crash_dump=crash_dump,
            trust_dump=trust_dump,
            limits=tuple(limit or ()),
            allow_env=tuple(allow_env or ()),
            force=force,
            runs=runs,
            resume=resume,
            db=db,
            history=history,
            symptom=symptom,
            kb=tuple(kb or ()),
        )
    )
