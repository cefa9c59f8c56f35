"""Does a new finding restate an old one? Compared by what it demands of a log, and by what it says."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz

from forensics.frozen import frozen
from forensics.grammar.condition_text import format_condition
from forensics.grammar.condition_tree import names
from forensics.grammar.conditions import parse_condition
from forensics.schema.finding import Finding

RESTATES = 0.8
RELATED = 0.45
_WORDS = re.compile(r"[a-z][a-z0-9_-]{3,}")
_COMMON = frozenset(
    [
        "that",
        "this",
        "with",
        "from",
        "have",
        "when",
        "then",
        "than",
        "them",
        "they",
        "what",
        "which",
        "sees",
        "happens",
        "tell",
        "look-alikes",
        "history",
        "sglang",
        "release",
        "releases",
        "server",
        "launch",
        "rank",
        "ranks",
        "error",
        "line",
        "lines",
        "case",
        "cases",
    ]
)


@frozen
class Likeness:
    """`score` from 0 to 1; `restates`: the new finding says nothing that the old one does not say."""

    id: str
    title: str
    path: str
    score: float
    why: str
    restates: bool


@frozen
class Profile:
    """What is compared of a finding."""

    finding: Finding
    demands: frozenset[str]
    signals: frozenset[str]
    words: frozenset[str]
    fix: frozenset[str]


def profile(finding: Finding) -> Profile:
    """The comparable parts of a finding."""
    return Profile(finding, _demands(finding), _signals(finding), _words(finding), _fix(finding))


def similar(new: Finding, others: Iterable[Finding], limit: int = 5) -> list[Likeness]:
    """The most similar findings, best first; only those that are worth reading beside the new one."""
    return nearest_profiles(profile(new), (profile(old) for old in others), limit)


def nearest_profiles(new: Profile, others: Iterable[Profile], limit: int = 5) -> list[Likeness]:
    """The same over profiles that were made before."""
    found = [likeness(new, old) for old in others if old.finding.id != new.finding.id]
    return sorted((x for x in found if x.score >= RELATED), key=lambda x: (-x.score, x.id))[:limit]


def likeness(new: Profile, old: Profile) -> Likeness:
    """How much two findings demand the same and say the same."""
    demands = _jaccard(new.demands, old.demands)
    signals = _jaccard(new.signals, old.signals)
    title = fuzz.token_set_ratio(new.finding.title.lower(), old.finding.title.lower()) / 100
    prose = _jaccard(new.words, old.words)
    fix = _jaccard(new.fix, old.fix)
    score = 0.35 * demands + 0.2 * signals + 0.15 * title + 0.2 * prose + 0.1 * fix
    same = demands == 1.0 and (max(prose, title) >= 0.6 or fix == 1.0)
    restates = score >= RESTATES or same or prose >= 0.75
    parts = [
        ("the same must", demands),
        ("the same signals", signals),
        ("title", title),
        ("prose", prose),
        ("fix", fix),
    ]
    why = ", ".join(f"{name} {value:.0%}" for name, value in parts if value >= 0.5)
    found = old.finding
    return Likeness(found.id, found.title, found.span.path, 1.0 if restates else score, why, restates)


def _demands(finding: Finding) -> frozenset[str]:
    return frozenset(_canonical(c.text) for c in finding.grounds if c.strength in ("must", "decisive"))


def _canonical(text: str) -> str:
    try:
        return format_condition(parse_condition(text))
    except Exception:
        return text


def _signals(finding: Finding) -> frozenset[str]:
    found: set[str] = set(finding.explains)
    for condition in finding.grounds:
        if condition.strength in ("must", "decisive", "strong"):
            try:
                found.update(signal for signal, _ in names(parse_condition(condition.text)).signals)
            except Exception:
                found.add(condition.text)
    return frozenset(found)


def _words(finding: Finding) -> frozenset[str]:
    prose = re.sub(r"```.*?```", " ", finding.body, flags=re.DOTALL).lower()
    return frozenset(w for w in _WORDS.findall(prose) if w not in _COMMON)


def _fix(finding: Finding) -> frozenset[str]:
    return frozenset(f"{s.kind} {s.op} {s.name or s.do}" for s in finding.fix)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    union = one | other
    return len(one & other) / len(union) if union else 0.0
