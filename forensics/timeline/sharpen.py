"""What rules add: their ids on the faults that they name, natures where they know better, faults that only they see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forensics.engine.table import EventTable
from forensics.schema.signal import Match, Rule, Signal
from forensics.timeline import roles
from forensics.timeline.episodes import Episode
from forensics.timeline.faults import Fault, mask

STACK_KINDS = frozenset({"frame", "frame-source", "py-spy", "faulthandler", "cxx-frame", "traceback-head", "chain"})
"""A rule that matches inside a stack names a place; the failure is stated elsewhere."""
NATURE_OF_ROLE = {"root": roles.CAUSE, "cascade": roles.VICTIM, "teardown": roles.TEARDOWN, "advice": roles.ADVICE}


def sharpen(
    table: EventTable, found: list[Fault], signals: Mapping[str, Signal], rules: Mapping[str, Rule]
) -> list[Fault]:
    """Faults with the natures that rules give them, plus those that only a rule states. Warnings make no fault."""
    by_row = {row: fault for fault in reversed(found) for row in (fault.row, *fault.rows)}
    added: list[Fault] = []
    stated = {m.row for s in signals.values() if s.role in ("root", "cascade") for m in s.matches}
    for name in sorted(signals):
        signal = signals[name]
        nature = NATURE_OF_ROLE.get(signal.role)
        if nature is None:
            continue
        rule = rules.get(name)
        repeated = rule is not None and rule.min_same > 1
        lost: list[Match] = []
        for match in signal.matches:
            if nature == roles.ADVICE and (match.row in stated or table.kind(match.row) == "exception"):
                continue  # a sentence of advice at the end of a line that states a failure
            fault = by_row.get(match.row)
            if fault is None:
                if table.kind(match.row) not in STACK_KINDS:
                    lost.append(match)
            elif fault.source == "line" or (nature in (roles.TEARDOWN, roles.ADVICE) and match.row == fault.row):
                # Advice inside a traceback does not make the traceback advice; what is routine once is a failure where
                # a rule wants it again and again.
                fault.nature = nature if repeated else _judged(fault, nature)
        if len(lost) < len(signal.matches):  # a line that is none by itself stands aside where another one states it
            lost = [m for m in lost if not _noise(table, m.row)]
        if lost and nature in (roles.CAUSE, roles.VICTIM) and (rule is None or rule.severity in ("error", "fatal")):
            added.append(_from_rule(table, name, nature, lost))
    return sorted([*found, *added], key=lambda f: (f.head, f.row)) if added else found


def _noise(table: EventTable, row: int) -> bool:
    phrase = roles.phrase_of(table.text(row).strip())
    return phrase is not None and phrase.nature == roles.NOISE


def _judged(fault: Fault, nature: str) -> str:
    """A rule may call a cause a victim, or a line teardown; what the engine knows to be a mere warning, or
    a victim's sentence, stays one."""
    if fault.nature in (roles.DEGRADED, roles.CLIENT, roles.VICTIM) and nature == roles.CAUSE:
        return fault.nature
    return nature


def _from_rule(table: EventTable, name: str, nature: str, matches: list[Match]) -> Fault:
    first = matches[0]
    ranks = tuple(dict.fromkeys(m.rank for m in matches if m.rank is not None))
    text = table.text(first.row).strip()
    return Fault(
        first.row,
        first.row,
        first.rank,
        nature,
        f"{name}: {mask(text)}",
        text,
        tuple(sorted({m.row for m in matches}))[:4096],
        sum(m.count for m in matches),
        ranks,
        None,
        (),
        name,
        None,
        "rule",
    )


def name_signals(episodes: Sequence[Episode], signals: Mapping[str, Signal]) -> None:
    """Put on every episode the ids of the signals that matched on one of its lines."""
    every = [set(episode.rows) | {f.row for f in episode.faults} for episode in episodes]
    wanted = set().union(*every)
    at: dict[int, list[str]] = {}
    for name in sorted(signals):
        for row in [match.row for match in signals[name].matches]:
            if row in wanted:
                at.setdefault(row, []).append(name)
    for episode, rows in zip(episodes, every, strict=True):
        hits = rows & at.keys() if len(rows) < len(at) else {r for r in at if r in rows}
        episode.signals = tuple(sorted({name for row in hits for name in at[row]}))
