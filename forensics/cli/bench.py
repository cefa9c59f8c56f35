"""`forensics bench`: accuracy over cases whose truth is known."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)

EXAMPLES = """Examples:
  forensics bench samples/cases
  forensics bench samples/cases --leave-one-cause-out -o accuracy.md
  forensics bench samples/cases --only nan --format json"""


@app.command(epilog=EXAMPLES, no_args_is_help=True)
def bench(
    folder: Annotated[Path, typer.Argument(help="Folder of cases: each a folder with log.txt and truth.json.")],
    format: Annotated[str, typer.Option("--format", "-f", help="text, json or markdown.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here (.md: markdown, .json: JSON).")
    ] = None,
    leave_one_cause_out: Annotated[
        bool, typer.Option("--leave-one-cause-out", help="Also run each case without its own cause.")
    ] = False,
    leave_one_case_out: Annotated[
        bool, typer.Option("--leave-one-case-out", help="Also run each log of a repeated cause without its wordings.")
    ] = False,
    only: Annotated[str | None, typer.Option(help="Only cases whose id contains this.")] = None,
    kb: Annotated[list[Path] | None, typer.Option(help="Further knowledge base folder.")] = None,
    rules: Annotated[list[Path] | None, typer.Option(help="Further rules folder.")] = None,
) -> int:
    """Analyze every case under a neutral name and print accuracy, calibration, confusions and every miss.

    Exit code: 0, also with misses; 2 where no case can be read.
    """
    from forensics.bench.cases import load_cases
    from forensics.bench.left_out import hold_out
    from forensics.bench.render import Results, as_json, markdown, text
    from forensics.bench.run import run_case, run_without
    from forensics.errors import UsageError
    from forensics.knowledge.store import load
    from forensics.schema.options import Options

    if output is not None and format == "text":
        format = {".md": "markdown", ".json": "json"}.get(output.suffix, "text")
    render = {"text": text, "json": as_json, "markdown": markdown}.get(format)
    if render is None:
        raise UsageError(f"--format {format}: not text, json or markdown")
    options = Options(kb=tuple(kb or ()), rules=tuple(rules or ()))
    knowledge = load(options)
    every = load_cases(folder)
    cases = [c for c in every if only is None or only in c.id]
    if not cases:
        raise UsageError(f"--only {only}: none of {len(every)} cases has this in its id", hint=f"such as {every[0].id}")
    answers = tuple(run_case(c, knowledge, options) for c in cases)
    known = {f.id for f in knowledge.findings}
    left_out = tuple(run_without(c, knowledge, options) for c in cases if leave_one_cause_out and c.cause in known)
    held_out = hold_out(cases, knowledge, options) if leave_one_case_out else ()
    page = render(Results(answers, left_out, held_out))
    if output is None:
        sys.stdout.write(page)
    else:
        output.write_text(page, encoding="utf-8")
    return 0
