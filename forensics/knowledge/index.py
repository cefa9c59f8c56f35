"""The generated tables of kb/README.md: every finding and deployment, and how well each is proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from forensics.frozen import frozen
from forensics.grammar.condition_tree import names
from forensics.grammar.conditions import parse_condition
from forensics.knowledge.library import Library
from forensics.knowledge.read_root import read_root
from forensics.knowledge.roots import Root, builtin_root
from forensics.rulebook.problem import Problem
from forensics.schema.finding import Deployment, Finding
from forensics.schema.signal import Rule
from forensics.schema.span import Span

BEGIN = "<!-- index: made by `forensics kb index`, do not edit below -->"
END = "<!-- end of index -->"


@frozen
class _Own:
    """What one base holds itself."""

    findings: tuple[Finding, ...]
    rules: tuple[Rule, ...]
    deployments: tuple[Deployment, ...]


def index_text(lib: Library, root: Root | None = None) -> str:
    """All tables, from marker to marker: of the shipped files where `root` is the shipped base, of a team's own files
    where it is theirs (None: of everything that the library holds)."""
    own = _own(lib, root)
    parts = [BEGIN, "", *_summary(own), ""]
    for category in sorted({f.category for f in own.findings}):
        parts += [f"### {category}", "", *_findings(f for f in own.findings if f.category == category), ""]
    if own.deployments:
        parts += ["### Deployments known to work", "", *_deployments(own.deployments), ""]
    parts += ["### Rules", "", *_rules(own), "", END]
    return "\n".join(parts)


def _own(lib: Library, root: Root | None) -> _Own:
    known = _Own(lib.knowledge.findings, tuple(lib.rules.values()), lib.knowledge.deployments)
    if root is None:
        return known
    content = read_root(builtin_root())
    entries: tuple[Finding | Rule | Deployment, ...] = (*content.findings, *content.rules, *content.deployments)
    shipped = {(type(x), x.id): x for x in entries}

    def of(entry: Finding | Rule | Deployment) -> bool:
        return (shipped.get((type(entry), entry.id)) == entry) is (root.base is not None)

    return _Own(
        tuple(f for f in known.findings if of(f)),
        tuple(r for r in known.rules if of(r)),
        tuple(d for d in known.deployments if of(d)),
    )


def _summary(lib: _Own) -> list[str]:
    findings = lib.findings
    evidence = Counter(f.log_evidence for f in findings)
    status = Counter(f.status for f in findings)
    return [
        f"{len(findings)} findings ({_counts(status, ('confirmed', 'suspected', 'refuted'))}), "
        f"{len(lib.rules)} rules, {len(lib.deployments)} deployments.",
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
        named = d.gpu or ("GPU, type not stated" if d.gpu_count else "")
        hardware = _cell(f"{count}{named}{nodes}")
        method, versions = _cell(d.quantization) or "–", _cell(d.versions) or "any"
        rows.append(f"| {link} | {hardware} | {method} | {versions} | {d.strength} |")
    return rows


def _rules(lib: _Own) -> list[str]:
    rows = ["| family | rules | asked for by findings |", "|---|---|---|"]
    families = Counter(r.family for r in lib.rules)
    asked = {
        signal
        for finding in lib.findings
        for condition in (*finding.applies, *finding.grounds)
        for signal, _ in names(parse_condition(condition.text)).signals
    }
    used = Counter(r.family for r in lib.rules if r.id in asked)
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


def stale(readme: Path, lib: Library, shown: str | None = None, root: Root | None = None) -> Problem | None:
    """A problem where the generated part is not what the knowledge base gives."""
    name = shown or str(readme)
    try:
        text = readme.read_text(encoding="utf-8")
    except OSError:
        return Problem("X501", "there is no index", Span(name, 1), "run `forensics kb index`")
    wanted = with_index(text, index_text(lib, root))
    if wanted == text:
        return None
    for number, (have, want) in enumerate(zip(text.split("\n"), [*wanted.split("\n"), ""], strict=False), 1):
        if have != want:
            return Problem("X501", "the index is stale", Span(name, number), "run `forensics kb index`", have)
    return Problem("X501", "the index is stale", Span(name, 1), "run `forensics kb index`")
