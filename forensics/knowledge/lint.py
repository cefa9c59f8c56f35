"""Lint of rules, findings and deployments: one call for one file, one for a whole knowledge base."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from forensics.knowledge.deployment import check_deployment
from forensics.knowledge.finding import read_finding
from forensics.knowledge.front import read_page
from forensics.knowledge.healthy import healthy_hits, must_be_silent
from forensics.knowledge.library import Library
from forensics.knowledge.lint_finding import lint_finding
from forensics.knowledge.names import unknown_fact_hint
from forensics.rulebook.lint import lint_kinds, lint_patterns, lint_sources, pattern_places
from forensics.rulebook.located import Reader
from forensics.rulebook.problem import Problem, apply_edits
from forensics.rulebook.program import program_of
from forensics.rulebook.schema import read_rule
from forensics.schema.signal import Rule
from forensics.schema.span import Span

RULE_ENDS = (".yaml", ".yml")


def lint_file(
    path: Path, lib: Library, namespace: str = "", shown: str | None = None, shipped: bool = True
) -> list[Problem]:
    """All problems of one file, in the order of their places. What the file is follows from its name and folder."""
    name = shown or str(path)
    if path.suffix in RULE_ENDS:
        found = _rule(path, name, lib, namespace)
    elif path.parent.name == "deployments":
        found = _deployment(path, name, lib, namespace)
    else:
        found = _finding(path, name, lib, namespace, shipped)
    return sorted(found, key=lambda p: (p.span.line, p.span.column, p.code))


def fix_file(path: Path, problems: Iterable[Problem]) -> int:
    """Apply the safe edits of one file's problems; gives how many."""
    return apply_edits(path, problems)


def _rule(path: Path, name: str, lib: Library, namespace: str) -> list[Problem]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return [Problem("K001", "cannot be read", Span(name, 1), "save it as UTF-8 text")]
    reader = Reader(name, text)
    rule = read_rule(reader, path.parent.name, namespace)
    if rule is None:
        return reader.problems
    lint_patterns(reader, rule)
    lint_sources(reader, rule)
    lint_kinds(reader)
    _healthy(reader, rule)
    return reader.problems + _taken(name, lib)


def _taken(name: str, lib: Library) -> list[Problem]:
    """The complaint of the store that this file's id is taken, where it has one."""
    return [
        Problem(e.code, e.message, e.span, e.hint)
        for e in lib.knowledge.problems
        if e.code == "K008" and e.span is not None and e.span.path == name
    ]


def _healthy(reader: Reader, rule: Rule) -> None:
    """A rule that states a fault must not hit a line of a healthy log."""
    if not must_be_silent(rule):
        return
    line = healthy_hits(program_of([rule])).get(rule.id)
    at = next(pattern_places(reader), None)
    if line is not None and at is not None:
        hint = f"it hits `{line.text[:120]}` of {line.log}: say more of the message, or refuse that line under `not`"
        reader.fault("R107", "the rule hits a healthy log", at, hint)


def _finding(path: Path, name: str, lib: Library, namespace: str, shipped: bool) -> list[Problem]:
    page = read_page(path, name)
    if isinstance(page, Problem):
        return [page]
    finding, problems = read_finding(page, namespace)
    if finding is None:
        return problems
    lint_finding(page, finding, lib, shipped)
    return page.reader.problems + _taken(name, lib)


def _deployment(path: Path, name: str, lib: Library, namespace: str) -> list[Problem]:
    found, problems = check_deployment(path, namespace, name)
    page = read_page(path, name)
    if found is None or isinstance(page, Problem) or page.reader.root is None:
        return problems
    reader = page.reader
    fields = page.reader.root.fields()
    for item in fields["warnings"].items() if "warnings" in fields else ():
        if reader.text(item) not in lib.rules:
            reader.fault("F302", f"no rule is named `{reader.text(item)}`", item, "write that rule first")
    args = fields.get("args")
    for key in args.fields() if args is not None else ():
        hint = unknown_fact_hint(f"args.{key}", lib.catalog)
        if hint is not None and args is not None:
            reader.add("D501", f"sglang has no argument `{key}`", *args.key_at[key], hint.replace("args.", ""))
    facts = fields.get("facts")
    for key in facts.fields() if facts is not None else ():
        if facts is not None and ("." not in key or unknown_fact_hint(key, lib.catalog) is not None):
            reader.add("D501", f"`{key}` is no fact", *facts.key_at[key], "see docs/facts.md")
    return problems + reader.problems + _taken(name, lib)
