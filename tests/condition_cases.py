"""The launch on which conditions are tried: two ranks, rules with one word each, a captured pool."""

from __future__ import annotations

from rule_cases import case_of, ranks, rule, simple

from forensics.rulebook.case import Case

A, B, C = simple("sig-a", "alpha happened"), simple("sig-b", "beta happened"), simple("sig-c", "gamma happened")
SIZE = rule(
    "id: pool\ntitle: t\nmatch: {any: ['pool has (?P<have>\\d+) of (?P<size>\\d+)']}\ncaptures: {have: int, size: int}\nrole: root"
)
NOTE = simple("note", "scale note", role="warning")
DONE = simple("load-end", "Load done", role="progress")
PROC = simple("child-died", "child died", scope="process")
OLD = simple("old-wording", "old wording", lifetime='{last: "0.5.6"}')
NEW = simple("new-wording", "new wording", lifetime='{first: "0.5.7"}')
RULES = (A, B, C, SIZE, NOTE, DONE, PROC, OLD, NEW)


def line(second: int, rank: int, text: str) -> str:
    return f"[2026-01-05 10:{second // 60:02}:{second % 60:02} TP{rank}] {text}"


LOG = (
    "\n".join(
        [
            line(0, 0, "alpha happened"),
            line(1, 1, "alpha happened"),
            line(5, 1, "beta happened"),
            line(6, 0, "pool has 5 of 9"),
            line(7, 1, "pool has 9 of 9"),
            line(8, 0, "end"),
        ]
    )
    + "\n"
)
TWO = ranks("TP0", "TP1")


def case(text: str = LOG, **more) -> Case:
    more.setdefault("expected", TWO)
    return case_of(text, *RULES, **more)
