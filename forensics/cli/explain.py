"""`forensics explain`: how one line was read, or why a finding holds or not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.rulebook.case import Case
    from forensics.schema.options import Options

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics explain server.log:2080
  forensics explain fp8-kv-cache-without-scales --log server.log"""

_PLACE = re.compile(r"(.+?):(\d+)(?::\d+)?")
_MARK = {"held": "+", "failed": "-", "unknown": "?"}


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def explain(
    what: Annotated[str, typer.Argument(help="LOG:LINE, or the id of a finding.")],
    log: Annotated[list[str] | None, typer.Option(help="The log on which to try the finding.")] = None,
    launch: Annotated[str, typer.Option(help="last (the last failed one), or a number.")] = "last",
    symptom: Annotated[str | None, typer.Option(help="What was seen.")] = None,
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
    config: Annotated[Path | None, typer.Option(help="A forensics.toml.")] = None,
    wrapper: Annotated[str | None, typer.Option(help="Force a wrapper.")] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also the grammar's and the rules' own names, shape and row.")
    ] = False,
) -> None:
    """Say how one line was read, or print every condition of a finding with held, failed or unknown and where."""
    from forensics.schema.options import Options

    options = Options(symptom=symptom, kb=tuple(kb or ()), rules=tuple(rules or ()), config=config, wrapper=wrapper)
    place = _PLACE.fullmatch(what)
    if log is None and place is not None:
        _line(place.group(1), int(place.group(2)), options, verbose)
    elif log is None:
        raise UsageError(
            f"{what}: which line, or on which log?",
            hint="forensics explain LOG:LINE, or forensics explain FINDING --log LOG; or kb show FINDING",
        )
    else:
        _finding(what, log, launch, options, verbose)


def _line(path: str, line: int, options: Options, verbose: bool) -> None:
    from forensics.analysis import masker, read
    from forensics.engine.explain import explain_line
    from forensics.knowledge.store import load
    from forensics.output.clean import clean

    knowledge = load(options)
    reading = read([path], options, knowledge)
    mask = masker(options, knowledge.config.secrets)
    found = explain_line(reading.table, line)
    typer.echo(f"{clean(found.path)}:{found.line}" + (f"  byte {found.byte_start}" if verbose else ""))
    typer.echo(f"  {clean(mask(found.raw), 300)}")
    for part in found.parts:
        inner = f" (rule {part.rule}, decided by {part.terminal}), {part.kept}" if verbose else ""
        typer.echo(f"  column {part.column}: kind {part.kind}{inner}")
        typer.echo(f"    wrapper: {', '.join(part.wrappers) or 'none'}")
        typer.echo(
            f"    header: {clean(part.header) or 'none'}, time {part.timestamp or 'none'}, level {part.level or 'none'}"
        )
        typer.echo(f"    rank: {part.rank or 'none on the line'}")
        if verbose:
            typer.echo(f"    shape: {clean(mask(part.shape), 200)}")
        for name, value in part.fields.items():
            typer.echo(f"    {name} = {value:g}")
    for case in reading.cases:
        for text in _signals(case, line):
            typer.echo(f"  signal: {clean(mask(text), 300)}")


def _signals(case: Case, line: int) -> list[str]:
    found = []
    for name, signal in sorted(case.signals.items()):
        for match in signal.matches:
            if int(case.table.line[match.row]) == line:
                captures = ", ".join(f"{k}={v}" for k, v in match.captures)
                found.append(f"{name} ({signal.role}) in {case.launch.id}" + (f": {captures}" if captures else ""))
    return found


def _finding(name: str, logs: list[str], launch: str, options: Options, verbose: bool) -> None:
    from forensics.analysis import masker, read
    from forensics.diagnose.explain import explain_finding
    from forensics.diagnose.places import Places
    from forensics.diagnose.wording import readable
    from forensics.knowledge.store import load
    from forensics.output.clean import clean

    knowledge = load(options)
    reading = read(logs, options, knowledge)
    case = _choose(reading.cases, launch)
    places = Places((reading.table,), masker(options, knowledge.config.secrets))
    found = explain_finding(name, case, reading.cases, knowledge, places)
    typer.echo(f"{found.finding} on {found.launch}: {found.verdict}")
    rules = {} if verbose else case.rules
    typer.echo(f"  {clean(readable(found.why, rules))}")
    for step in found.steps:
        where = f"  {step.where[0].path}:{step.where[0].line}:{step.where[0].column}" if step.where else ""
        indent = "  " * (step.depth + 1)
        strength = f"{step.strength}: " if step.depth == 0 else ""
        asked = f"{step.text}: " if step.text else ""
        why = readable(step.why, rules, step.text)
        typer.echo(clean(f"{indent}{_MARK[step.state]} {strength}{asked}{step.state}; {why}{where}"))
        if step.state == "unknown" and step.settle:
            typer.echo(clean(f"{indent}  to settle: {step.settle}"))


def _choose(cases: tuple[Case, ...], launch: str) -> Case:
    if not cases:
        raise UsageError("the log holds no launch", hint="forensics coverage LOG says what was read")
    if launch == "last":
        failed = [case for case in cases if case.launch.first_failure is not None]
        return (failed or list(cases))[-1]
    if launch.isdigit() and 1 <= int(launch) <= len(cases):
        return cases[int(launch) - 1]
    raise UsageError(f"--launch {launch}: the log has {len(cases)} launches", hint="give last or a number")
