"""`forensics kb new` and `forensics kb import`: drafts of findings. Nothing that exists is overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from forensics.knowledge.draft import NewFile
    from forensics.schema.report import Report


def new_finding(
    title: str = typer.Argument("", help="What goes wrong, in one line (not needed with --from)."),
    source: Annotated[Path | None, typer.Option("--from", help="A JSON report to draft from.")] = None,
    identity: str = typer.Option("", "--id", help="Id and file name (default: made from the title)."),
    category: str = typer.Option("", "--category"),
    into: Annotated[Path | None, typer.Option("--into", help="Knowledge base folder (default: the own one).")] = None,
) -> int:
    """Draft a finding; from a report with its signals, grounds and log blocks cut and masked."""
    from forensics.errors import UsageError
    from forensics.knowledge.draft import empty, from_report, slug
    from forensics.knowledge.workplace import open_workplace

    kb = into or open_workplace().root.kb or Path("kb")
    if source is None:
        if not title:
            raise UsageError("a title or --from is needed", hint='forensics kb new "Ranks disagree about …"')
        files = [empty(identity or slug(title), title, category or "runtime")]
    else:
        try:
            files = from_report(_report(source), title, identity, category)
        except ValueError as error:
            raise UsageError(f"{source}: {error}") from None
    return _write(files, kb)


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
    typer.echo(f"next: fill in the sections, then `forensics kb lint {paths[0]}`", err=True)
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
