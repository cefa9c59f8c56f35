"""`forensics kb`: write, check, search and test the knowledge base.

Exit codes: 0 fine, 1 problems were found (or a restatement refused), 2 bad input or usage.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli.kb_show import list_entries, print_hits, print_similar, show_entry
from forensics.cli.kb_write import import_findings, new_finding

if TYPE_CHECKING:
    from forensics.knowledge.workplace import Target, Workplace
    from forensics.rulebook.problem import Problem
    from forensics.schema.options import Options

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Write, check, search and test the knowledge base.",
    epilog="Example: forensics kb search 'CUDA error: device-side assert'",
)

KB = typer.Option([], "--kb", help="A further knowledge base folder (findings/, deployments/, rules/). Repeatable.")
RULES = typer.Option([], "--rules", help="A further folder of rules. Repeatable.")
CONFIG = typer.Option(None, "--config", help="forensics.toml to use (default: the one in this folder).")
FORMAT = typer.Option("text", "--format", help="text or json.")


def options_of(kb: list[Path], rules: list[Path], config: Path | None) -> Options:
    """Options of the kb commands."""
    from forensics.schema.options import Options

    return Options(kb=tuple(kb), rules=tuple(rules), config=config)


@app.command(epilog="Examples:\n  forensics kb lint\n  forensics kb lint kb/findings/my-finding.md --fix")
def lint(
    paths: Annotated[list[Path] | None, typer.Argument(help="Files or folders (default: the whole base).")] = None,
    fix: bool = typer.Option(False, "--fix", help="Apply the safe changes."),
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
    format: str = FORMAT,
) -> int:
    """Check rules, findings and deployments. Codes: docs/lint-codes.md."""
    from forensics.knowledge.workplace import open_workplace

    place = open_workplace(paths or [], options_of(kb, rules, config))
    found = {t: _lint(t, place) for t in place.targets}
    if fix and (others := _fixed(found)) is not None:
        place = open_workplace([*paths, *others] if paths else [], options_of(kb, rules, config))
        found = {t: _lint(t, place) for t in place.targets}
    problems = [p for each in found.values() for p in each]
    if not paths:
        problems = [*_base_problems(place), *problems]
        problems += _index_problem(place, problems)
    return _tell(problems, len(place.targets), format)


def _lint(target: Target, place: Workplace) -> list[Problem]:
    from forensics.knowledge.lint import lint_file

    return lint_file(target.path, place.library, target.namespace, target.shown, target.shipped)


def _fixed(found: dict[Target, list[Problem]]) -> list[Path] | None:
    """Other files that were changed, too, and have to be checked as well; None where nothing was changed."""
    from forensics.knowledge.lint import fix_file

    done = sum(fix_file(target.path, problems) for target, problems in found.items())
    if not done:
        return None
    named = {p.edit.path for each in found.values() for p in each if p.edit is not None and p.edit.path}
    mine = {target.path.resolve() for target in found}
    others = sorted(Path(name) for name in named if Path(name).resolve() not in mine)
    also = f", also in {', '.join(map(str, others))}: checked here, too" if others else ""
    typer.echo(f"{done} changed{also}", err=True)
    return others


def _base_problems(place: Workplace) -> list[Problem]:
    """What forensics.toml names and nobody has, and linked folders, which nobody reads."""
    from forensics.rulebook.problem import Problem

    path = place.library.knowledge.config.path
    return [
        Problem(e.code, e.message, e.span, e.hint, e.excerpt)
        for e in place.library.knowledge.problems
        if e.span is not None and (e.code == "K014" or (path is not None and e.span.path == str(path)))
    ]


def _index_problem(place: Workplace, others: list[Problem]) -> list[Problem]:
    """Whether the index of the base is stale; not asked while a file is faulty, for the index would lack it."""
    from forensics.knowledge.index import BEGIN, shown_readme, stale

    root = place.root
    if any(p.severity == "error" for p in others):
        return []
    readme = root.kb / "README.md" if root.kb is not None else None
    if readme is None or not readme.is_file() or BEGIN not in readme.read_text(encoding="utf-8", errors="replace"):
        return []
    found = stale(readme, place.library, shown_readme(root), root)
    return [found] if found is not None else []


def _tell(problems: list[Problem], files: int, format: str) -> int:
    """Print problems; 1 where one is an error."""
    errors = sum(1 for p in problems if p.severity == "error")
    if format == "json":
        shown = [
            {
                "code": p.code,
                "severity": p.severity,
                "path": p.span.path,
                "line": p.span.line,
                "column": p.span.column,
                "message": p.message,
                "hint": p.hint,
                "fixable": p.edit is not None,
            }
            for p in problems
        ]
        typer.echo(json.dumps(shown, indent=1))
        return 1 if errors else 0
    for problem in problems:
        typer.echo(problem.render())
    fixable = sum(1 for p in problems if p.edit is not None)
    more = f", {fixable} can be fixed by --fix" if fixable else ""
    typer.echo(f"{files} files, {errors} errors, {len(problems) - errors} warnings{more}", err=True)
    return 1 if errors else 0


@app.command(epilog="Examples:\n  forensics kb test kb/findings/my-finding.md\n  forensics kb test --cross")
def test(
    paths: Annotated[list[Path] | None, typer.Argument(help="Findings to test (default: all).")] = None,
    cross: bool = typer.Option(False, "--cross", help="Also all findings over all samples."),
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
) -> int:
    """Run the log blocks of findings, and those of their look-alikes as near misses, through the analyzer; with --cross
    also every finding over every sample."""
    from forensics.knowledge.proof import test_findings
    from forensics.knowledge.rivals import rival_logs, test_look_alikes
    from forensics.knowledge.workplace import open_workplace

    place = open_workplace(paths or [], options_of(kb, rules, config))
    wanted = {t.shown for t in place.targets}
    findings = [f for f in place.library.knowledge.findings if f.span.path in wanted or _among(f.span.path, place)]
    problems = [
        *_unreadable(place),
        *test_findings(findings, place.library),
        *test_look_alikes(findings, place.library),
    ]
    for problem in problems:
        typer.echo(problem.render())
    blocks = sum(len(f.logs) for f in findings)
    rivals = rival_logs(findings, place.library)
    tried = f"{len(findings)} findings, {blocks} log blocks, {rivals} logs of look-alikes"
    typer.echo(f"{tried}, {len(problems)} failed", err=True)
    bad = _cross(place, frozenset(f.id for f in findings) if paths else None) if cross else 0
    return 1 if problems or bad else 0


def _unreadable(place: Workplace) -> list[Problem]:
    """Why a finding that was asked for cannot be tested."""
    from forensics.knowledge.finding import check_finding

    found: list[Problem] = []
    for target in place.targets:
        if target.path.suffix == ".md" and target.path.parent.name != "deployments":
            finding, problems = check_finding(target.path, target.namespace, target.shown)
            found += [p for p in problems if finding is None and p.severity == "error"]
    return found


def _among(shown: str, place: Workplace) -> bool:
    path = place.library.path_of(shown)
    return path is not None and path.resolve() in {t.path.resolve() for t in place.targets}


def _cross(place: Workplace, only: frozenset[str] | None) -> int:
    from forensics.knowledge.proof import cross_fire, faults

    shots = list(cross_fire(place.library, only))
    bad = faults(shots)
    for shot in shots:
        mark = "!!" if shot in bad else "ok" if shot.expected else "  "
        typer.echo(f"{mark} {shot.sample}: {shot.finding} {shot.verdict}{' [healthy]' if shot.healthy else ''}")
    seen = len({shot.sample for shot in shots})
    wrong = len({shot.sample for shot in bad})
    who = "it was a hypothesis" if only is not None and len(only) == 1 else "findings were hypotheses"
    typer.echo(f"{who} in {seen} samples; in {wrong} of them it must not be", err=True)
    return len(bad)


@app.command(epilog="Example: forensics kb hook kb/findings/my-finding.md rules/runtime/my-rule.yaml")
def hook(
    files: Annotated[list[Path] | None, typer.Argument(help="Changed files, as pre-commit passes them.")] = None,
    config: Path | None = CONFIG,
) -> int:
    """Check changed files only: lint, log blocks, restatements, the index. Meant for pre-commit."""
    from forensics.knowledge.workplace import open_workplace

    wanted = [f for f in files or [] if f.is_file() and f.suffix in (".md", ".yaml", ".yml")]
    if not wanted:
        return 0
    place = open_workplace(wanted, options_of([], [], config))
    problems: list[Problem] = []
    targets = [t for t in place.targets if t.path.name.lower() != "readme.md"]
    for target in targets:
        found = _lint(target, place)
        problems += found
        if target.path.suffix == ".md" and not any(p.severity == "error" for p in found):
            problems += _proved(target, place)
    return _tell(problems + _index_problem(place, problems), len(targets), "text")


def _proved(target: Target, place: Workplace) -> list[Problem]:
    """What the analyzer and the duplicate check say about one good-looking finding."""
    from forensics.knowledge.finding import check_finding
    from forensics.knowledge.proof import test_findings
    from forensics.knowledge.rivals import test_look_alikes
    from forensics.knowledge.similar import similar
    from forensics.rulebook.problem import Problem

    if target.path.parent.name == "deployments":
        return []
    finding, _ = check_finding(target.path, target.namespace, target.shown)
    if finding is None:
        return []
    problems = [*test_findings([finding], place.library), *test_look_alikes([finding], place.library)]
    for old in similar(finding, place.library.knowledge.findings):
        if old.restates and not finding.override:
            message = f"this restates `{old.id}` ({old.path}): {old.why}"
            problems.append(Problem("F315", message, finding.span, "add what is new to that finding instead"))
    return problems


@app.command(epilog="Example: forensics kb similar kb/findings/my-finding.md")
def similar(
    file: Annotated[Path, typer.Argument(help="A finding that is to be added.")],
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
) -> int:
    """Refuse a finding that restates an old one (exit code 1), and name those that are near."""
    from forensics.knowledge.finding import check_finding
    from forensics.knowledge.similar import similar as find_similar
    from forensics.knowledge.workplace import open_workplace

    place = open_workplace([file], options_of(kb, rules, config))
    target = place.targets[0]
    finding, problems = check_finding(file, target.namespace, target.shown)
    if finding is None:
        return _tell(problems, 1, "text")
    return print_similar(finding, find_similar(finding, place.library.knowledge.findings))


@app.command(epilog="Examples:\n  forensics kb index\n  forensics kb index --check")
def index(
    check: bool = typer.Option(False, "--check", help="Only say whether it is stale (exit code 1)."),
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
) -> int:
    """Write the generated tables of kb/README.md."""
    from forensics.knowledge.index import index_text, shown_readme, stale, with_index
    from forensics.knowledge.workplace import open_workplace

    place = open_workplace([], options_of(kb, rules, config))
    if place.root.kb is None:
        typer.echo("this knowledge base has rules only: no index")
        return 0
    readme = place.root.kb / "README.md"
    if check:
        problem = stale(readme, place.library, shown_readme(place.root), place.root)
        return _tell([problem], 1, "text") if problem is not None else 0
    text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
    readme.write_text(with_index(text, index_text(place.library, place.root)), encoding="utf-8")
    typer.echo(str(readme))
    return 0


@app.command(
    epilog="Examples:\n  forensics kb search 'device-side assert triggered'\n  forensics kb search deepgemm --limit 3"
)
def search(
    query: str = typer.Argument(..., help="Words, or a pasted log message (its numbers do not matter)."),
    limit: int = typer.Option(10, "--limit", min=1, max=100),
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
    format: str = FORMAT,
) -> int:
    """Find findings, rules and deployments."""
    from forensics.knowledge.search import search as find
    from forensics.knowledge.workplace import open_workplace

    place = open_workplace([], options_of(kb, rules, config))
    return print_hits(find(query, place.library, limit), format)


@app.command(name="list", epilog="Examples:\n  forensics kb list\n  forensics kb list rules --category memory")
def list_command(
    what: str = typer.Argument("findings", help="findings, rules or deployments."),
    category: str = typer.Option("", "--category", help="Only this category or family."),
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
    format: str = FORMAT,
) -> int:
    """List what is known."""
    from forensics.knowledge.store import load

    return list_entries(load(options_of(kb, rules, config), drafts=True), what, category, format)


@app.command(epilog="Example: forensics kb show deepgemm-scale-format-mismatch")
def show(
    identity: str = typer.Argument(..., metavar="ID", help="Id of a finding, a rule or a deployment."),
    kb: list[Path] = KB,
    rules: list[Path] = RULES,
    config: Path | None = CONFIG,
    format: str = FORMAT,
) -> int:
    """Show one finding, rule or deployment."""
    from forensics.knowledge.workplace import open_workplace

    return show_entry(open_workplace([], options_of(kb, rules, config)).library, identity, format)


@app.command(epilog="Example: forensics kb schema finding > finding.schema.json")
def schema(what: str = typer.Argument("finding", help="finding, rule or deployment.")) -> int:
    """JSON Schema of rule files and front matter, for editors."""
    from forensics.errors import UsageError
    from forensics.knowledge.json_schema import schema_of

    if what not in ("finding", "rule", "deployment"):
        raise UsageError(f"there is no schema of `{what}`", hint="finding, rule or deployment")
    typer.echo(json.dumps(schema_of(what), indent=2))
    return 0


app.command(
    name="new",
    epilog="Examples:\n  forensics kb new 'Ranks disagree'\n  forensics kb new --from report.json\n"
    "  forensics kb new --from-run forensics-runs/20261130-105603-47be87",
)(new_finding)
app.command(name="import", epilog="Example: forensics kb import FINDINGS.md --into our-kb")(import_findings)
