"""The generated tables of kb/README.md: every finding and deployment, and how well each is proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from forensics.grammar.condition_tree import names
from forensics.grammar.conditions import parse_condition
from forensics.knowledge.library import Library
from forensics.knowledge.roots import Root
from forensics.rulebook.problem import Problem
from forensics.schema.finding import Deployment, Finding
from forensics.schema.span import Span

BEGIN = "<!-- index: made by `forensics kb index`, do not edit below -->"
END = "<!-- end of index -->"


def index_text(lib: Library) -> str:
    """All tables, from marker to marker."""
    findings = lib.knowledge.findings
    parts = [BEGIN, "", *_summary(lib), ""]
    for category in sorted({f.category for f in findings}):
        parts += [f"### {category}", "", *_findings(f for f in findings if f.category == category), ""]
    parts += ["### Deployments known to work", "", *_deployments(lib.knowledge.deployments), ""]
    parts += ["### Rules", "", *_rules(lib), "", END]
    return "\n".join(parts)


def _summary(lib: Library) -> list[str]:
    findings = lib.knowledge.findings
    evidence = Counter(f.log_evidence for f in findings)
    status = Counter(f.status for f in findings)
    return [
        f"{len(findings)} findings ({_counts(status, ('confirmed', 'suspected', 'refuted'))}), "
        f"{len(lib.rules)} rules, {len(lib.knowledge.deployments)} deployments.",
        "",
        f"Evidence of the findings' logs: {_counts(evidence, ('real', 'rendered', 'none'))}. "
        "A finding without a log can never be more than possible.",
    ]


def _counts(found: Counter[str], order: Sequence[str]) -> str:
    return ", ".join(f"{found[word]} {word}" for word in order)


def _findings(findings: Iterable[Finding]) -> list[str]:
    rows = ["| finding | title | status | versions | log | sources |", "|---|---|---|---|---|---|"]
    for f in findings:
        link = f"[{f.id}](findings/{Path(f.span.path).name})"
        versions = _cell(f.versions) or "any"
        cells = (link, _cell(f.title), f.status, versions, f.log_evidence, str(len(f.sources)))
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _deployments(deployments: Iterable[Deployment]) -> list[str]:
    rows = ["| deployment | hardware | quantization | versions | strength |", "|---|---|---|---|---|"]
    for d in deployments:
        count = f"{d.gpu_count} × " if d.gpu_count else ""
        nodes = f", {d.nodes} nodes" if d.nodes > 1 else ""
        link = f"[{d.id}](deployments/{Path(d.span.path).name})"
        hardware = _cell(f"{count}{d.gpu}{nodes}")
        method, versions = _cell(d.quantization) or "–", _cell(d.versions) or "any"
        rows.append(f"| {link} | {hardware} | {method} | {versions} | {d.strength} |")
    return rows


def _rules(lib: Library) -> list[str]:
    rows = ["| family | rules | asked for by findings |", "|---|---|---|"]
    families = Counter(r.family for r in lib.rules.values())
    asked = {
        signal
        for finding in lib.knowledge.findings
        for condition in (*finding.applies, *finding.grounds)
        for signal, _ in names(parse_condition(condition.text)).signals
    }
    used = Counter(r.family for r in lib.rules.values() if r.id in asked)
    return rows + [f"| {family} | {families[family]} | {used[family]} |" for family in sorted(families)]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def with_index(readme: str, index: str) -> str:
    """The README with its generated part replaced, or added at the end."""
    start, end = readme.find(BEGIN), readme.find(END)
    if start < 0 or end < start:
        return readme.rstrip("\n") + "\n\n## Index\n\n" + index + "\n" if readme.strip() else index + "\n"
    return readme[:start] + index + readme[end + len(END) :]


def shown_readme(root: Root) -> str:
    """The README of a base as messages name it."""
    path = (root.kb or Path("kb")) / "README.md"
    return path.relative_to(root.base).as_posix() if root.base is not None else str(path)


def stale(readme: Path, lib: Library, shown: str | None = None) -> Problem | None:
    """A problem where the generated part is not what the knowledge base gives."""
    name = shown or str(readme)
    try:
        text = readme.read_text(encoding="utf-8")
    except OSError:
        return Problem("X501", "there is no index", Span(name, 1), "run `forensics kb index`")
    wanted = with_index(text, index_text(lib))
    if wanted == text:
        return None
    for number, (have, want) in enumerate(zip(text.split("\n"), [*wanted.split("\n"), ""], strict=False), 1):
        if have != want:
            return Problem("X501", "the index is stale", Span(name, number), "run `forensics kb index`", have)
    return Problem("X501", "the index is stale", Span(name, 1), "run `forensics kb index`")
