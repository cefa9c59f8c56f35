"""A message in other words: what a rule's wording says, compared with a failing line that no rule knows.

Releases change a sentence more often than its subject. A wording whose words stand in the failing line in their order,
but for one or two, is a pointer to the finding that the rule speaks for; never more than possible.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache

from forensics.rulebook.patterns import compiled
from forensics.schema.finding import Finding
from forensics.schema.signal import Rule

MIN_WORDS, MIN_HITS = 5, 4
MIN_SHARE = 0.7
"""Words that a wording needs, words of it that the line must have, and which share of all that must be."""
MAX_TEXT = 600
_SYNTAX = re.compile(
    r"\(\?P<\w+>[^()]*\)|\(\?[a-z]+\)|\[[^\]]*\](?:[*+?]|\{[\d,]+\})*|\\[a-zA-Z](?:[*+?]|\{[\d,]+\})*|\.(?:[*+?]|\{[\d,]+\})+"
)
_MARKS = re.compile(r"[\\^$?*+()\[\]{}]")
_WORD = re.compile(r"[A-Za-z_]{3,}")
_DULL = frozenset(
    {"the", "and", "for", "with", "from", "this", "that", "not", "are", "was", "has", "have", "but", "error", "failed",
     "exception", "got", "none", "true", "false", "cuda"}
)  # fmt: skip


def by_wording(
    text: str, findings: Iterable[Finding], rules: Mapping[str, Rule], seen: Container[str]
) -> list[tuple[str, str]]:
    """Findings that explain a rule (not among `seen`) with a wording close to the failing line, with that wording's
    rule; the closest first."""
    line = _words(text.replace("\n", " ")[:MAX_TEXT])
    if len(line) < MIN_HITS:
        return []
    scored: list[tuple[float, int, str, str]] = []
    for finding in findings:
        for name in finding.explains:
            rule = rules.get(name)
            if rule is None or rule.role != "root" or rule.frames or name in seen:
                continue
            share, hits = max((_found(w, line) for p in rule.patterns if (w := _said(p))), default=(0.0, 0))
            if hits < MIN_HITS or share < MIN_SHARE:
                continue
            if any(compiled(p).search(text) for p in rule.patterns):
                continue  # the rule saw this line and said no: another component, or another stage
            scored.append((share, hits, finding.id, name))
    scored.sort(key=lambda s: (-s[0], -s[1], s[2]))
    return [(finding, name) for _, _, finding, name in scored]


def _found(wording: tuple[str, ...], line: tuple[str, ...]) -> tuple[float, int]:
    """Share and number of the wording's words that the line has in their order."""
    at = hits = 0
    for word in wording:
        if word in line[at:]:
            at = line.index(word, at) + 1
            hits += 1
    return hits / len(wording), hits


@lru_cache(maxsize=8192)
def _said(pattern: str) -> tuple[str, ...]:
    """The words of a pattern; none of one that is a choice, or too short to be told in other words."""
    if "|" in pattern:
        return ()
    words = _words(_MARKS.sub(" ", _SYNTAX.sub(" ", pattern)))
    return words if len(words) >= MIN_WORDS else ()


def _words(text: str) -> tuple[str, ...]:
    return tuple(w for word in _WORD.findall(text) if (w := word.lower()) not in _DULL)
