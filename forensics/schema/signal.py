"""Rules and the signals that they make."""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.schema.facts import Value
from forensics.schema.rank import Rank
from forensics.schema.span import Span


@frozen
class Rule:
    """One observation, as a file in rules/ states it. See docs/rules.md for each key."""

    id: str
    family: str
    title: str
    patterns: tuple[str, ...]
    role: str
    span: Span
    kinds: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    frames: str = ""
    exception: str = ""
    innermost: str = ""
    """RE2 that the innermost frame of the exception must match."""
    captures: tuple[tuple[str, str], ...] = ()
    where: str = ""
    severity: str = "error"
    stages: tuple[str, ...] = ()
    scope: str = "rank"
    min_count: int = 1
    first: str | None = None
    last: str | None = None
    mechanism: str = ""
    docs: str = ""
    sources: tuple[str, ...] = ()
    derive: str = ""
    min_same: int = 1
    differs: str = ""
    apart: int = 0
    """Percent: only ranks whose value of `differs` lies below this share of the greatest one."""
    wordings: tuple[tuple[str, str], ...] = ()
    """Pairs (pattern, source) where a source is stated for some wordings only."""

    def stated_for(self, pattern: str) -> tuple[str, ...]:
        """Sources that are stated for a wording: its own, and those of the whole rule."""
        elsewhere = {source for _, source in self.wordings}
        return tuple(s for s in self.sources if s not in elsewhere or (pattern, s) in self.wordings)


@frozen
class Match:
    """One place where a rule held: the row, its rank (None where the line carries none) and the typed captures.
    A flood of identical lines is folded: `count` tells how many rows it stands for."""

    row: int
    rank: Rank | None
    captures: tuple[tuple[str, Value], ...] = ()
    count: int = 1
    block: int | None = None


@frozen
class Signal:
    """A named observation inside one launch: the rule, and its matches in row order."""

    id: str
    role: str
    matches: tuple[Match, ...]
    total: int
    capped: bool = False
