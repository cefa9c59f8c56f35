"""A plain FINDINGS.md in free prose becomes drafts: one per heading, every line kept, every draft suspected."""

from __future__ import annotations

import re

from forensics.frozen import frozen
from forensics.knowledge.draft import front_matter, slug

_HEADING = re.compile(r"^(#{1,6})\s+(\S.{0,300}?)\s{0,8}#{0,8}\s{0,8}$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LINK = re.compile(
    r"https?://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)|\b([\w.-]+/[\w.-]+#\d+)|(https?://[^\s)>\]]+)"
)


@frozen
class Draft:
    """One finding to be: `id`, file text, and the lines of the input that it holds (1-based, both included)."""

    id: str
    text: str
    lines: tuple[int, int]


def split_findings(text: str) -> list[Draft]:
    """Drafts of a document. Sections are those of the most frequent heading level; text above the first one is kept
    in a draft of its own, so that nothing is lost."""
    lines = text.replace("\r\n", "\n").split("\n")
    heads = _headings(lines)
    level = _level([depth for _, depth, _ in heads])
    cuts = [(at, title) for at, depth, title in heads if depth == level]
    if not cuts:
        return [_draft("imported-notes", "Imported notes", lines, 0, len(lines), set())] if text.strip() else []
    drafts: list[Draft] = []
    taken: set[str] = set()
    if any(line.strip() for line in lines[: cuts[0][0]]):
        drafts.append(_draft("imported-preface", "Preface of the imported notes", lines, 0, cuts[0][0], taken))
    for (at, title), end in zip(cuts, [*(c[0] for c in cuts[1:]), len(lines)], strict=True):
        drafts.append(_draft(slug(title), title, lines, at, end, taken))
    return drafts


def _headings(lines: list[str]) -> list[tuple[int, int, str]]:
    """Line index, depth and title of every heading outside of fenced blocks."""
    found, fence = [], ""
    for index, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark.group(1) else fence or mark.group(1)
            continue
        head = None if fence else _HEADING.match(line)
        if head:
            found.append((index, len(head.group(1)), head.group(2)))
    return found


def _level(depths: list[int]) -> int:
    """The level that splits best: the shallowest one that stands more than once, else the deepest there is."""
    for depth in sorted(set(depths)):
        if depths.count(depth) > 1:
            return depth
    return max(depths, default=0)


def _draft(name: str, title: str, lines: list[str], start: int, end: int, taken: set[str]) -> Draft:
    identity, number = name, 2
    while identity in taken:
        identity, number = f"{name}-{number}", number + 1
    taken.add(identity)
    body = "\n".join(lines[start:end]).strip("\n")
    sources = _sources(body) or ["run: imported notes"]
    front = front_matter(
        id=identity,
        title=title,
        category="runtime",
        status="suspected",
        must=[],
        sources=sources,
        note="imported: state `must`, the fix and the log, then take this comment out",
    )
    head = f"# {title}\n\n"
    rest = "\n".join(lines[start + 1 : end]).strip("\n") if _HEADING.match(lines[start]) else body
    text = f"{front}{head}## What one sees\n\n{_demoted(rest)}\n"
    return Draft(identity, text, (start + 1, end))


def _demoted(text: str) -> str:
    """Headings below the section's own become smaller, so that the page keeps one title."""
    lines, fence = [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fence = not fence
        head = None if fence else _HEADING.match(line)
        lines.append(f"{'#' * min(6, max(3, len(head.group(1))))} {head.group(2)}" if head else line)
    return "\n".join(lines)


def _sources(text: str) -> list[str]:
    found: list[str] = []
    for repo, number, short, address in _LINK.findall(text):
        found.append(f"{repo}#{number}" if repo else short or address.rstrip(".,;"))
    return list(dict.fromkeys(found))[:20]
