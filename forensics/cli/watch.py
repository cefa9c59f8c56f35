"""`forensics watch`: follow a live server's log."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.schema.report import Report
    from forensics.watch.follow import Follower

app = typer.Typer(add_completion=False)

LAST_WORDS_S = 30.0
"""How long a server that was interrupted may take to end."""
EXAMPLES = """Examples:
  python -m sglang.launch_server … 2>&1 | forensics watch -
  python -m sglang.launch_server … 2>&1 | forensics watch - --tee > server.log
  forensics watch server.log
  forensics watch server.log --pid 4711 --format json -o report.json
  forensics watch server.log --new --keep-going

State and warnings go to standard error, the final report to standard output.

Exit code: 0 the server stopped cleanly, 1 it failed, 2 bad input or usage or no line of a server, 130 interrupted."""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def watch(
    log: Annotated[str, typer.Argument(help="The live log, or - for standard input.")],
    format: Annotated[str, typer.Option("--format", "-f", help="Format of the final report.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the final report here instead of standard output.")
    ] = None,
    minimum: Annotated[float, typer.Option(min=0, help="Seconds to wait at least after the first error.")] = 2.0,
    quiet_time: Annotated[float, typer.Option(min=0, help="Seconds without a further error before judging.")] = 2.0,
    maximum: Annotated[float, typer.Option(min=0, help="Seconds after which to judge in any case.")] = 20.0,
    every: Annotated[float, typer.Option(min=0, help="Seconds between state lines where there is no terminal.")] = 60.0,
    silence: Annotated[float, typer.Option(min=1, help="Seconds without a line that are worth a warning.")] = 120.0,
    pid: Annotated[int, typer.Option(min=0, help="The server's process: its end is the server's death.")] = 0,
    until_failure: Annotated[
        bool, typer.Option("--until-failure", help="Also end when the server hangs but lives on.")
    ] = False,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Report each death, follow the next life.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Skip what the file holds already.")] = False,
    wait_for_file: Annotated[bool, typer.Option("--wait-for-file", help="Wait until the file is there.")] = False,
    tee: Annotated[
        bool,
        typer.Option("--tee", help="Pass standard input on; the report goes to standard error."),
    ] = False,
    keep: Annotated[str, typer.Option(help="Of standard input, keep this much on disk for the final report.")] = "1GB",
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A forensics.toml.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No state lines; warnings and the report only.")] = False,
) -> int:
    """Follow a live server: its state, early warnings, and the full report when it dies."""
    from forensics.cli.times import parse_size
    from forensics.knowledge.store import load
    from forensics.output.formats import check_format
    from forensics.schema.options import Options
    from forensics.watch.loop import Plan, Watch
    from forensics.watch.patience import Waits
    from forensics.watch.voice import Voice

    check_format(format)
    if tee and log != "-":
        raise UsageError("--tee passes standard input on", hint="forensics watch - --tee")
    options = Options(kb=tuple(kb or ()), rules=tuple(rules or ()), config=config)
    plan = Plan(
        Waits(minimum, quiet_time, maximum),
        silence=silence,
        pid=pid,
        keep_going=keep_going,
        until_failure=until_failure,
    )
    voice = Voice(sys.stderr, every, quiet)
    follower = _follower(log, new, wait_for_file, tee, parse_size(keep))
    code: int | None = None
    running = Watch(follower, options, load(options), voice, plan, lambda r: _report(r, format, output, tee))
    with _interrupts() as told:
        try:
            code = running.run()
            if not told:
                return code
        except KeyboardInterrupt:
            pass
        voice.say(f"interrupted; {running.state.line(0)}")
        if code is not None:
            return 130
    if log == "-":
        # Ctrl-C reaches the server in front of the pipe, too: its last words still come.
        try:
            running.drain(LAST_WORDS_S)
            running.finish()
        except KeyboardInterrupt:
            pass
    return 130


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Signals of Ctrl-C inside the block. Python drops an interrupt that arrives in a clean-up: the list keeps it."""
    told: list[int] = []

    def stop(number: int, _frame: object) -> None:
        told.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield told
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield told
    finally:
        signal.signal(signal.SIGINT, before)


def _follower(log: str, new: bool, wait_for_file: bool, tee: bool, keep: int) -> Follower:
    from forensics.watch.follow import FileFollower, StreamFollower

    if Path(log).is_fifo():
        return StreamFollower(os.open(log, os.O_RDONLY), keep, name=log)
    if log != "-":
        return FileFollower(Path(log), new, wait_for_file)
    return StreamFollower(sys.stdin.fileno(), keep, sys.stdout.buffer if tee else None)


def _report(found: Report, format: str, output: Path | None, tee: bool) -> None:
    from forensics.output.atomic import write_atomic
    from forensics.output.formats import render

    text = render(found, format, width=80, color=False, detail=0, brief=False, quiet=False, max_bytes=0)
    if output is not None:
        write_atomic(output, text)
        return
    out = sys.stderr if tee else sys.stdout
    out.write(text)
    out.flush()
