"""One knowledge base from its folders: parsed from its files, or from the cache where they did not change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from forensics.errors import FindingError, ForensicsError, RuleError
from forensics.frozen import frozen
from forensics.grammar.conditions import parse_condition, prime
from forensics.knowledge.cache import content_key, read_cache, write_cache
from forensics.knowledge.codec import decode, encode
from forensics.knowledge.roots import Root
from forensics.knowledge.stamps import stamp
from forensics.rulebook.literals import Verdict, prime_literals, verdict
from forensics.rulebook.load import linked_folders, rule_files
from forensics.rulebook.problem import Problem
from forensics.schema.finding import Deployment, Finding
from forensics.schema.signal import Rule
from forensics.schema.span import Span

NOT_FINDINGS = frozenset({"readme.md", "index.md"})


@frozen
class Content:
    """What one knowledge base holds. `drafts`: ids of findings that nobody filled in, each with what is to be told."""

    rules: tuple[Rule, ...] = ()
    findings: tuple[Finding, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    problems: tuple[ForensicsError, ...] = ()
    drafts: tuple[tuple[str, ForensicsError], ...] = ()

    def finished(self) -> Content:
        """The same without its drafts, which become problems."""
        ids = {identity for identity, _ in self.drafts}
        return replace(
            self,
            findings=tuple(f for f in self.findings if f.id not in ids),
            problems=(*self.problems, *(problem for _, problem in self.drafts)),
            drafts=(),
        )


@frozen
class Files:
    """The files of one knowledge base, sorted. `linked`: links to folders, which are not followed: a base may come from
    anywhere, and its links lead anywhere."""

    rules: tuple[Path, ...]
    findings: tuple[Path, ...]
    deployments: tuple[Path, ...]
    linked: tuple[Path, ...] = ()


def files_of(root: Root) -> Files:
    """All files of a knowledge base. A kb folder has findings/ and deployments/, or lies flat with findings only."""
    rules = tuple(rule_files(root.rules)) if root.rules is not None else ()
    linked = tuple(linked_folders(root.rules)) if root.rules is not None else ()
    if root.kb is None:
        return Files(rules, (), (), linked)
    if root.kb.is_file():
        return Files(rules, (root.kb,), (), linked)
    nested, deployments = root.kb / "findings", root.kb / "deployments"
    pages = nested if nested.is_dir() else root.kb
    known = {root.rules, nested, deployments}
    links = (p for folder in (pages, deployments) if folder.is_dir() for p in folder.iterdir() if p not in known)
    linked += tuple(sorted(p for p in links if p.is_symlink() and p.is_dir()))
    return Files(rules, _pages(pages), _pages(deployments), linked)


def _pages(folder: Path) -> tuple[Path, ...]:
    if not folder.is_dir():
        return ()
    return tuple(sorted(p for p in folder.glob("*.md") if p.is_file() and p.name.lower() not in NOT_FINDINGS))


def shown(path: Path, root: Root) -> str:
    """A path as messages and reports give it: shipped files relative to their root, own files as named."""
    if root.base is not None:
        return path.relative_to(root.base).as_posix()
    return str(path)


def read_root(root: Root) -> Content:
    """Everything of one knowledge base; faulty files are problems."""
    state = stamp(root)
    known = state.content()
    found = _cached(known) if known is not None else None
    if found is not None:
        return found
    files = files_of(root)
    key = content_key(_parts(root, files))
    found = _cached(key)
    if found is None:
        found = _parse(root, files)
        write_cache(key, _stored(found))
    state.remember(key)
    return found


def _cached(key: str) -> Content | None:
    stored = read_cache(key)
    return None if stored is None else _restored(stored)


def _parts(root: Root, files: Files) -> Iterable[bytes]:
    yield f"{root.namespace}\n{root.base is not None}".encode()
    for path in (*files.rules, *files.findings, *files.deployments):
        yield shown(path, root).encode("utf-8", "replace")
        try:
            yield path.read_bytes()
        except OSError:
            yield b"unreadable"
    for path in files.linked:
        yield f"link {shown(path, root)}".encode("utf-8", "replace")


def _parse(root: Root, files: Files) -> Content:
    from forensics.knowledge.deployment import check_deployment
    from forensics.knowledge.finding import check_finding
    from forensics.rulebook.load import check_rule, not_followed

    problems: list[ForensicsError] = [not_followed(shown(path, root)).error(RuleError) for path in files.linked]
    rules = _each(files.rules, root, check_rule, RuleError, problems)
    findings = _each(files.findings, root, check_finding, FindingError, problems)
    deployments = _each(files.deployments, root, check_deployment, FindingError, problems)
    return Content(
        tuple(rules), tuple(findings), tuple(deployments), tuple(problems), tuple(_drafts(findings, files, root))
    )


def _drafts(findings: Iterable[Finding], files: Files, root: Root) -> Iterable[tuple[str, ForensicsError]]:
    from forensics.knowledge.unfilled import unfilled

    paths = {shown(path, root): path for path in files.findings}
    for finding in findings:
        problem = unfilled(finding, paths.get(finding.span.path, Path(finding.span.path)))
        if problem is not None:
            yield finding.id, problem


def _each(
    paths: Iterable[Path],
    root: Root,
    check: Callable[[Path, str, str], tuple[Any, list[Problem]]],
    kind: type[ForensicsError],
    problems: list[ForensicsError],
) -> list[Any]:
    good = []
    for path in paths:
        found, faults = check(path, root.namespace, shown(path, root))
        problems += [p.error(kind) for p in faults if p.severity == "error"]
        if found is not None:
            good.append(found)
    return good


def _stored(content: Content) -> dict[str, Any]:
    texts = {c.text for f in content.findings for c in (*f.applies, *f.grounds)}
    return {
        "rules": encode(content.rules),
        "findings": encode(content.findings),
        "deployments": encode(content.deployments),
        "literals": {p: _sorted(verdict(p)) for r in content.rules for p in (*r.patterns, *r.absent)},
        "conditions": {text: encode(parse_condition(text)) for text in sorted(texts)},
        "problems": [_told(p) for p in content.problems],
        "drafts": [[identity, _told(p)] for identity, p in content.drafts],
    }


def _told(problem: ForensicsError) -> list[Any]:
    p = problem
    return [type(p).__name__, p.message, encode(p.span), p.hint, p.code, p.excerpt]


def _sorted(found: Verdict) -> list[Any]:
    needs, blind = found
    return [None if needs is None else sorted(needs), blind]


def _restored(stored: Any) -> Content | None:
    """What a cache file holds, None where it is damaged."""
    try:
        prime({str(text): tree for text, tree in stored["conditions"].items()}, decode)
        prime_literals(
            {p: (None if n is None else frozenset(n), b is True) for p, (n, b) in stored["literals"].items()}
        )
        found = Content(
            decode(stored["rules"]),
            decode(stored["findings"]),
            decode(stored["deployments"]),
            tuple(_problem(p) for p in stored["problems"]),
            tuple((str(identity), _problem(p)) for identity, p in stored["drafts"]),
        )
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return None
    parts = ((found.rules, Rule), (found.findings, Finding), (found.deployments, Deployment))
    whole = all(isinstance(items, tuple) and all(isinstance(x, kind) for x in items) for items, kind in parts)
    return found if whole else None


def _problem(stored: list[Any]) -> ForensicsError:
    name, message, span, hint, code, excerpt = stored
    kind = RuleError if name == "RuleError" else FindingError
    place = decode(span)
    return kind(message, span=place if isinstance(place, Span) else None, hint=hint, code=code, excerpt=excerpt)
