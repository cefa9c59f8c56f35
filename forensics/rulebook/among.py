"""What a rule asks of its matches together: how often the same values came, and whether ranks show different ones."""

from __future__ import annotations

from collections import Counter

from forensics.engine.table import HEADED, EventTable
from forensics.schema.rank import Rank
from forensics.schema.signal import Match, Rule


def kept(matches: list[Match], rule: Rule, table: EventTable) -> list[Match]:
    """The matches that satisfy the rule's `min_same` and `differs`; nothing where they do not."""
    if rule.min_same > 1:
        counts: Counter[object] = Counter()
        for match in matches:
            counts[match.captures] += match.count
        matches = [m for m in matches if counts[m.captures] >= rule.min_same]
    if rule.differs and rule.apart:
        return _far_below(matches, rule, table)
    if rule.differs and not _differ(matches, rule.differs, table):
        return []
    return matches


def _differ(matches: list[Match], capture: str, table: EventTable) -> bool:
    """Whether the last values of two ranks differ."""
    last: dict[Rank, object] = {}
    for match in matches:
        rank = match.rank or _above(table, match.row)
        if rank is not None:
            last[rank] = dict(match.captures).get(capture)
    return len(last) > 1 and len(set(last.values())) > 1


def _far_below(matches: list[Match], rule: Rule, table: EventTable) -> list[Match]:
    """The matches of ranks whose first value lies below `apart` percent of the greatest first value of any rank.

    The first, since a rank says such things once for each of its models: what the draft model finds free is no
    disagreement between ranks."""
    first: dict[Rank, tuple[float, Match]] = {}
    for match in matches:
        rank = match.rank or _above(table, match.row)
        value = dict(match.captures).get(rule.differs)
        if rank is not None and rank not in first and isinstance(value, (int, float)):
            first[rank] = (float(value), match)
    most = max((value for value, _ in first.values()), default=0.0)
    return [match for value, match in first.values() if value * 100 < most * rule.apart]


def _above(table: EventTable, row: int) -> Rank | None:
    """The rank of the header right above a line that carries none."""
    if row and table.flags[row - 1] & HEADED and table.source[row - 1] == table.source[row]:
        return table.rank_of(row - 1)
    return None
