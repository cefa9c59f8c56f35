"""The findings whose logs look most like a first failure: a pointer for a reader, never a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz

from forensics.schema.finding import Finding

_DIGITS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*")
_HEAD = re.compile(r"^\[[^\]]{6,60}\]\s*")
_DULL = re.compile(r'^\s*(?:File "|Traceback|\^|$)|^\s{2,}')
MIN_SCORE = 72.0


def shape(text: str) -> str:
    """A message with its numbers masked."""
    return _DIGITS.sub("#", text).strip()


def nearest(text: str, findings: Iterable[Finding], count: int = 3) -> list[str]:
    """Ids of at most `count` findings with a log line like `text`, most similar first."""
    wanted = shape(text)[:300]
    if len(wanted) < 8:
        return []
    scored = [(score, f.id) for f in findings if (score := _score(wanted, f)) >= MIN_SCORE]
    return [name for _, name in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:count]]


def _score(wanted: str, finding: Finding) -> float:
    best = 0.0
    for block in finding.logs:
        if block.expect != "match":
            continue
        for line in block.text.splitlines()[:200]:
            if not _DULL.search(line):
                best = max(best, fuzz.ratio(wanted, shape(_HEAD.sub("", line))[:300], score_cutoff=best))
    return best
