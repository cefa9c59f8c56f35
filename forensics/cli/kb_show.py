"""What `forensics kb list`, `show`, `search` and `similar` print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forensics.knowledge.library import Library
    from forensics.knowledge.search import Hit
    from forensics.knowledge.similar import Likeness
    from forensics.knowledge.store import Knowledge
    from forensics.schema.finding import Finding
    from forensics.schema.signal import Rule


def list_entries(knowledge: Knowledge, what: str, category: str, format: str) -> int:
    """One line an entry: id, category, status, title."""
    from forensics.errors import UsageError

    rows: list[tuple[str, str, str, str]]
    if what == "findings":
        rows = [(f.id, f.category, f.status, f.title) for f in knowledge.findings]
    elif what == "rules":
        rows = [(r.id, r.family, r.role, r.title) for r in knowledge.rules.values()]
    elif what == "deployments":
        rows = [(d.id, d.quantization or "none", d.strength, d.title) for d in knowledge.deployments]
    else:
        raise UsageError(f"there are no `{what}`", hint="findings, rules or deployments")
    words = sorted({r[1] for r in rows})
    rows = [r for r in rows if not category or r[1] == category]
    if category and not rows:
        raise UsageError(f"no {what} of `{category}`", hint=f"one of {', '.join(words)}")
    if format == "json":
        keys = ("id", "category", "status", "title")
        typer.echo(json.dumps([dict(zip(keys, r, strict=True)) for r in rows], indent=1))
        return 0
    widths = [max((len(r[i]) for r in rows), default=0) for i in range(3)]
    for row in rows:
        typer.echo(_lines("  ".join(cell.ljust(w) for cell, w in zip(row, [*widths, 0], strict=True)).rstrip()))
    return 0


def show_entry(lib: Library, identity: str, format: str) -> int:
    """A finding as its file says it; a rule with the findings that ask for it; a deployment."""
    from forensics.errors import UsageError
    from forensics.rulebook.located import nearest

    finding, rule = lib.findings.get(identity), lib.rules.get(identity)
    known = next((d for d in lib.knowledge.deployments if d.id == identity), None)
    entry = finding or rule or known
    if entry is None:
        near = nearest(identity, [*lib.findings, *lib.rules, *(d.id for d in lib.knowledge.deployments)], 60.0)
        hint = f"did you mean `{near}`?" if near else "forensics kb search WORDS"
        raise UsageError(f"nothing is named `{identity}`", hint=hint)
    if format == "json":
        typer.echo(json.dumps(_plain(entry), indent=1))
        return 0
    path = lib.path_of(entry.span.path)
    typer.echo(f"{entry.span.path}\n")
    typer.echo(json.dumps(_plain(entry), indent=1) if path is None else _lines(path.read_text(encoding="utf-8")))
    if rule is not None and finding is None:
        _users(rule, lib)
    return 0


def _lines(text: str) -> str:
    """A file's text as a terminal may show it: line by line without control characters."""
    from forensics.output.clean import clean

    return "\n".join(clean(line) for line in text.splitlines())


def _users(rule: Rule, lib: Library) -> None:
    from forensics.knowledge.search import asking

    users = asking(rule.id, lib)
    typer.echo("asked for by: " + (", ".join(f.id for f in users) or "no finding"))


def _plain(entry: object) -> Any:
    from dataclasses import asdict

    return asdict(entry)  # type: ignore[call-overload]


def print_hits(hits: Sequence[Hit], format: str) -> int:
    """Hits, best first; exit code 1 where there is none."""
    if format == "json":
        rows = [{"kind": h.kind, "id": h.id, "title": h.title, "score": round(h.score, 1), "why": h.why} for h in hits]
        typer.echo(json.dumps(rows, indent=1))
        return 0 if hits else 1
    from forensics.knowledge.search import SURE

    if hits and hits[0].score < SURE:
        typer.echo("nothing states this message; the nearest by words:", err=True)
    for hit in hits:
        said = f"{_printable(hit.title)}\n       {_printable(hit.why)}"
        typer.echo(f"{hit.score:5.1f}  {hit.kind:<10} {hit.id}\n       {said}")
    if not hits:
        typer.echo("nothing found", err=True)
    return 0 if hits else 1


def print_similar(finding: Finding, found: Sequence[Likeness]) -> int:
    """Near findings; exit code 1 where the new one restates one of them."""
    for old in found:
        word = "restates" if old.restates else "is near"
        typer.echo(f"{finding.id} {word} {old.id} ({old.path}): {old.why or f'{old.score:.0%} alike'}")
    if any(old.restates for old in found):
        typer.echo("refused: add what is new to the finding that is there", err=True)
        return 1
    typer.echo("nothing restates it" if not found else "different enough; say how to tell them apart", err=True)
    return 0


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
