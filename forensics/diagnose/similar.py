"""The findings whose logs look most like a first failure: a pointer where no known cause fits, never more."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from forensics.schema.finding import Finding

_DIGITS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)*")
_PATH = re.compile(r"/(?:[\w.+@-]+/)+")
_HEAD = re.compile(r"^\[[^\]]{6,60}\]\s*(?:(?:INFO|WARNING|ERROR) [\w./]+:\d+: )?")
_DULL = re.compile(
    r'^\s*(?:File "|Traceback|\^|$)|^\s{2,}|Scheduler hit an exception|server_args=|Load weight|[Ss]igquit|SIGQUIT'
    r"|Memory pool|Init torch|fired up|Prefill batch|Decode batch|KV Cache|Capture cuda graph (?:begin|bs|end)|INFO:"
)
_TYPE = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Exit)(?::\s*|\s*$)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_]{2,}")
_STOP = frozenset({"the", "and", "for", "with", "from", "this", "that", "not", "are", "was", "has", "have", "but",
                   "error", "failed", "exception", "got", "none", "true", "false"})  # fmt: skip
MIN_WORDS = 4
"""Informative words that a message needs before its likeness to another one means anything."""
MIN_SCORE = 74.0
CLOSE, SAME = 84.0, 97.0
"""Between these a finding is worth naming as a possible cause where nothing else explains the failure. Above, the words
are the same, and the finding's own conditions have already said no."""


def shape(text: str) -> str:
    """The first line of a message with numbers and folders masked."""
    line = next((part for part in text.splitlines() if part.strip()), "")
    return _DIGITS.sub("#", _PATH.sub("/", line)).strip()


def said(text: str) -> str:
    """The shape of what a message says, without its exception type; "" where that is too little to compare: a bare
    exception is like every other one."""
    bare = _TYPE.sub("", shape(text))[:300]
    words = {w.lower() for w in _WORD.findall(bare)} - _STOP
    return bare if len(words) >= MIN_WORDS else ""


def nearest(text: str, findings: Iterable[Finding], count: int = 3) -> list[tuple[str, float]]:
    """At most `count` findings with a log line like `text`, with the likeness (0 to 100), most similar first."""
    wanted = said(text)
    if not wanted:
        return []
    scored = [(score, f.id) for f in findings if (score := _score(wanted, f)) >= MIN_SCORE]
    return [(name, score) for score, name in sorted(scored, key=lambda pair: (-pair[0], pair[1]))[:count]]


def _score(wanted: str, finding: Finding) -> float:
    """Likeness to the finding's matching logs; none where one of its near misses is as like: it says itself that such
    a line can be something else."""
    found = _likeness(wanted, finding, "match")
    if found < MIN_SCORE or _likeness(wanted, finding, "near-miss") >= found:
        return 0.0
    return round(found, 1)


def _likeness(wanted: str, finding: Finding, expect: str) -> float:
    from rapidfuzz import fuzz

    best = 0.0
    for block in finding.logs:
        if block.expect != expect:
            continue
        for known in _sayings(block.text):
            best = max(best, fuzz.ratio(wanted, known, score_cutoff=best), _shortened(wanted, known, best))
    return best


@lru_cache(maxsize=4096)
def _sayings(log: str) -> tuple[str, ...]:
    """What the telling lines of a finding's log say."""
    bare = (_HEAD.sub("", line) for line in log.splitlines()[:200])
    return tuple(known for line in bare if not _DULL.search(line) and (known := said(line)))


def _shortened(wanted: str, known: str, best: float) -> float:
    """Likeness to the beginning of a longer line (tails differ between releases), at a discount."""
    if len(known) <= len(wanted):
        return 0.0
    from rapidfuzz import fuzz

    return 0.95 * fuzz.ratio(wanted, known[: len(wanted)], score_cutoff=best)
