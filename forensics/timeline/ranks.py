"""Which ranks a launch must have, which the log shows, and which never spoke."""

from __future__ import annotations

from collections import Counter

import numpy as np

from forensics.engine.table import EventTable
from forensics.frozen import frozen
from forensics.schema.facts import Fact
from forensics.schema.launch import StageMark
from forensics.schema.rank import Rank
from forensics.timeline.lookup import Rows
from forensics.timeline.stages import ORDER
from forensics.timeline.starts import Start

MAX_RANKS = 4096


MAX_SIZE = 4096
"""Largest size of one kind of parallelism that is believed."""


@frozen
class RankView:
    """`expected` is empty for a single process, which prints no rank. `missing` holds only ranks whose node the
    input covers from the start of the launch."""

    expected: tuple[Rank, ...] = ()
    seen: tuple[Rank, ...] = ()
    missing: tuple[Rank, ...] = ()
    notes: tuple[str, ...] = ()


def number(facts: dict[str, Fact], name: str, default: int = 1) -> int:
    """An integer argument of the launch, or the default."""
    fact = facts.get(name)
    value = fact.value if fact is not None else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MAX_SIZE else default


def with_printed(facts: dict[str, Fact], starts: list[Start]) -> dict[str, Fact]:
    """The facts, with sizes read off `server_args=` itself where the facts lack them."""
    found = dict(facts)
    for name in ("tp_size", "dp_size", "pp_size", "ep_size", "nnodes", "enable_dp_attention"):
        text = starts[0].field(name) if starts else ""
        value: int | bool | None = (
            int(text) if text.isascii() and text.isdigit() and len(text) < 9 else {"True": True, "true": True}.get(text)
        )
        if value is not None:
            found.setdefault(f"args.{name}", Fact(f"args.{name}", value, None))
    return found


def flag(facts: dict[str, Fact], name: str) -> bool:
    """Whether a boolean argument of the launch is on."""
    fact = facts.get(name)
    return fact is not None and fact.value is True


def seen_ranks(table: EventTable, inside: Rows) -> tuple[Rank, ...]:
    """Ranks that any row or batch line of the launch carries, sorted by their axes."""
    counts = np.bincount(table.rank[inside] + 1, minlength=len(table.ranks) + 1) if len(inside) else np.zeros(1)
    ranks = [table.ranks[i] for i in np.flatnonzero(counts[1:]).tolist()]
    return tuple(sorted(ranks, key=lambda r: (r.node or "", [(a, i) for a, i in r.axes])))


def view(
    table: EventTable,
    inside: Rows,
    facts: dict[str, Fact],
    marks: tuple[StageMark, ...],
    truncated: bool,
    nodes: frozenset[int],
) -> RankView:
    """Expected, seen and missing ranks. `nodes` are the node ranks whose server_args the launch holds."""
    seen = seen_ranks(table, inside)
    expected = _expected(facts, seen)
    if not expected:
        return RankView((), seen)
    known = {_key(rank, expected) for rank in seen}
    silent = tuple(rank for rank in expected if _key(rank, expected) not in known)
    if not silent:
        return RankView(expected, seen)
    notes: list[str] = []
    if truncated:
        return RankView(expected, seen, (), ("the head of the log is cut: silence of a rank proves nothing",))
    count = number(facts, "args.nnodes")
    if count > 1:
        covered = tuple(r for r in silent if _node(r, facts, count) in nodes)
        if len(covered) < len(silent):
            notes.append(f"the log of {count - len(nodes)} of {count} nodes is not in the input")
        silent = covered
    started = any(ORDER[m.stage] >= ORDER["init"] for m in marks if m.rank is not None)
    if not started:
        return RankView(expected, seen, (), tuple(notes))
    if silent:
        notes.append(f"{', '.join(str(r) for r in silent[:16])} never reported init")
    return RankView(expected, seen, silent, tuple(notes))


def _expected(facts: dict[str, Fact], seen: tuple[Rank, ...]) -> tuple[Rank, ...]:
    """All ranks that the arguments call for, labelled as the log labels them."""
    if "args.tp_size" not in facts:
        return ()
    tp, pp, dp = (number(facts, f"args.{name}") for name in ("tp_size", "pp_size", "dp_size"))
    attention = flag(facts, "args.enable_dp_attention")
    replicas = 1 if attention else dp
    if tp * pp * replicas <= 1 or tp * pp * replicas > MAX_RANKS:
        return ()
    names = Counter(tuple(a for a, _ in r.axes) for r in seen).most_common(1)
    axes = names[0][0] if names else _axes(tp, pp, dp, attention)
    held = {_coordinates(r): r for r in seen if tuple(a for a, _ in r.axes) == axes}
    ranks: list[Rank] = []
    for d in range(replicas):
        for p in range(pp):
            for t in range(tp):
                rank = _label(axes, d, p, t, facts)
                ranks.append(held.get(_coordinates(rank), rank))
    return tuple(dict.fromkeys(ranks))


def _axes(tp: int, pp: int, dp: int, attention: bool) -> tuple[str, ...]:
    axes = [name for name, size in (("DP", dp), ("PP", pp), ("TP", tp)) if size > 1]
    return tuple(axes if axes != ["DP"] or not attention else ["DP", "TP"])


def _label(axes: tuple[str, ...], d: int, p: int, t: int, facts: dict[str, Fact]) -> Rank:
    tp, dp = number(facts, "args.tp_size"), number(facts, "args.dp_size")
    inner = max(1, tp // dp) if flag(facts, "args.enable_dp_attention") else tp
    share = max(1, tp // max(1, number(facts, "args.ep_size", tp)))
    values = {
        "DP": d if not flag(facts, "args.enable_dp_attention") else t // inner,
        "PP": p,
        "TP": t,
        "EP": t // share,
    }
    return Rank(tuple((axis, values[axis]) for axis in axes if axis in values))


def _coordinates(rank: Rank) -> tuple[int, int, int]:
    """What tells ranks apart: with a TP axis the DP axis repeats under DP attention, but not across replicas."""
    return rank.axis("DP") or 0, rank.axis("PP") or 0, rank.axis("TP") or 0


def _key(rank: Rank, expected: tuple[Rank, ...]) -> tuple[int, ...]:
    pairs = {(r.axis("PP") or 0, r.axis("TP") or 0) for r in expected}
    if len(pairs) == len(expected):
        return rank.axis("PP") or 0, rank.axis("TP") or 0
    return _coordinates(rank)


def _node(rank: Rank, facts: dict[str, Fact], count: int) -> int:
    """The node that hosts a rank: consecutive ranks, pipeline stages outermost (sglang's own placement)."""
    tp, pp = number(facts, "args.tp_size"), number(facts, "args.pp_size")
    place = (rank.axis("PP") or 0) * tp + (rank.axis("TP") or 0)
    return place * count // max(1, tp * pp)
