"""`forensics kb new` and `forensics kb import`: drafts of findings. Nothing that exists is overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from forensics.knowledge.draft import NewFile
    from forensics.knowledge.workplace import Workplace
    from forensics.schema.report import Report


def new_finding(
    title: str = typer.Argument("", help="What goes wrong, in one line (not needed with --from)."),
    source: Annotated[Path | None, typer.Option("--from", help="A JSON report to draft from.")] = None,
    run: Annotated[
        Path | None, typer.Option("--from-run", help="A run folder of forensics replay, for the fix and its proof.")
    ] = None,
    line: Annotated[
        int | None, typer.Option("--line", min=1, help="The line that states the fault (default: the first failure).")
    ] = None,
    identity: str = typer.Option("", "--id", help="Id and file name (default: made from the title)."),
    category: str = typer.Option("", "--category", help="What it is about: memory, network … (default: guessed)."),
    into: Annotated[Path | None, typer.Option("--into", help="Knowledge base folder (default: the project's).")] = None,
) -> int:
    """Draft a finding; from a report with its signals, grounds and log blocks cut and masked; from a replay with its
    fix, confirmed only where a control failed and the changed command passed."""
    from forensics.errors import UsageError
    from forensics.knowledge.draft import empty, slug
    from forensics.knowledge.workplace import nearest_config, open_workplace, project_kb
    from forensics.rulebook.words import CATEGORIES
    from forensics.schema.options import Options

    identity = identity.rpartition("/")[2]
    if identity and slug(identity) != identity:
        raise UsageError(f"`{identity}` is no id", hint=f"lower-case words joined by hyphens: `{slug(identity)}`")
    if category and category not in CATEGORIES:
        raise UsageError(f"there is no category `{category}`", hint=", ".join(CATEGORIES))
    place = open_workplace(options=Options(config=nearest_config()))
    kb = into or project_kb(place)
    if source is None and run is None:
        if not title:
            raise UsageError("give a title, --from or --from-run", hint='forensics kb new "Ranks disagree about …"')
        files = [empty(identity or slug(title), title, category or "runtime")]
    else:
        own = place.root.kb is not None and kb.resolve() == place.root.kb.resolve()
        namespace = place.root.namespace if own else ""
        files = _drafts(source, run, place, title, identity, category, namespace, line)
    return _write(files, kb)


def _drafts(
    source: Path | None, run: Path | None, place: Workplace, title: str, identity: str, category: str,
    namespace: str, line: int | None,
) -> list[NewFile]:  # fmt: skip
    from forensics.errors import UsageError
    from forensics.knowledge.draft_report import focus_of, from_report
    from forensics.knowledge.draft_run import failing_report, proof_of

    proof = None if run is None else proof_of(run, None)
    report = _report(source) if source is not None else failing_report(run) if run is not None else None
    if report is None:
        hint = "add the log that failed: `forensics analyze LOG --format json -o report.json`, then --from report.json"
        raise UsageError(f"{run}: the run holds no failing log, for no control was run", hint=hint)
    if run is not None:
        proof = proof_of(run, focus_of(report))
    try:
        return from_report(report, place.library.rules, title, identity, category, namespace, line, proof)
    except ValueError as error:
        raise UsageError(f"{source or run}: {error}") from None


def _report(path: Path) -> Report:
    from pydantic import ValidationError

    from forensics.errors import InputError
    from forensics.schema.report import Report

    try:
        return Report.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        hint = "write one with `forensics analyze LOG --format json`"
        raise InputError(f"{path} is no report: {place}: {first['msg']}", hint=hint) from None


def _write(files: list[NewFile], kb: Path) -> int:
    from forensics.errors import UsageError

    rules = kb / "rules" if (kb / "rules").is_dir() or not (kb.parent / "rules").is_dir() else kb.parent / "rules"
    paths = [(kb / "findings" if f.kind == "finding" else rules) / f.name for f in files]
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} exists already", hint="choose another id with --id")
    for path, file in zip(paths, files, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
        typer.echo(str(path))
        if file.warning:
            typer.echo(f"warning: {file.warning}", err=True)
    if all(f.kind == "finding" for f in files) and len(files) > 1:
        typer.echo(f"next: fill in each draft, then `forensics kb lint {kb / 'findings'}`", err=True)
        return 0
    own, more = [
        [str(p) for p, f in zip(paths, files, strict=True) if f.kind == "rule" and f.aside is x] for x in (False, True)
    ]
    rule = f", shorten the pattern of {' '.join(own)}" if own else ""
    rule += f", delete what does not fit of {' '.join(more)}" if more else ""
    typer.echo(f"next: fill in the sections{rule}, then", err=True)
    for command in (f"lint --fix {' '.join(map(str, paths))}", f"test {paths[0]}", f"similar {paths[0]}", "index"):
        typer.echo(f"    forensics kb {command}", err=True)
    return 0


def import_findings(
    file: Annotated[Path, typer.Argument(help="Free prose, one heading a finding.")],
    into: Annotated[Path, typer.Option("--into", help="Knowledge base folder that the drafts go to.")] = Path("kb"),
) -> int:
    """Split a FINDINGS.md by its headings into drafts, all marked suspected; no line is lost."""
    from forensics.errors import InputError
    from forensics.knowledge.draft import NewFile
    from forensics.knowledge.importer import split_findings

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file}: not UTF-8", hint="save it as UTF-8 text") from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    drafts = split_findings(text)
    if not drafts:
        raise InputError(f"{file}: nothing to import", hint="the file is empty")
    return _write([NewFile("finding", f"{d.id}.md", d.text) for d in drafts], into)
