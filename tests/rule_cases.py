"""Small logs, rules and launches for the tests of rules and conditions: real scan, real blocks, hand-made launches."""

from __future__ import annotations

import atexit
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from forensics.engine.scan import scan
from forensics.grammar.blocks import find_blocks
from forensics.knowledge.trial import cases_of, text_source
from forensics.rulebook.case import Case
from forensics.rulebook.located import Reader
from forensics.rulebook.match import match_rules
from forensics.rulebook.schema import read_rule
from forensics.schema.facts import Fact, VersionInterval
from forensics.schema.launch import Failure, Launch, StageMark
from forensics.schema.options import Options
from forensics.schema.rank import Rank
from forensics.schema.signal import Rule

_OPEN = ExitStack()
atexit.register(_OPEN.close)


def rule(text: str, family: str = "runtime") -> Rule:
    """One rule from YAML text; its file is named after its id."""
    name = next(line.split(":")[1].strip() for line in text.split("\n") if line.strip().startswith("id:"))
    reader = Reader(f"rules/{family}/{name}.yaml", text)
    found = read_rule(reader, family)
    assert found is not None, [p.render() for p in reader.problems]
    return found


def simple(name: str, *patterns: str, **more: str) -> Rule:
    """A rule with patterns and further YAML lines."""
    lines = [f"id: {name}", "title: t", "match:", "  any:", *(f"    - '{p}'" for p in patterns)]
    lines += [f"  {k}: {v}" for k, v in more.items() if k in ("kinds", "not", "frames", "innermost", "exception")]
    lines += [f"{k}: {v}" for k, v in more.items() if k not in ("kinds", "not", "frames", "innermost", "exception")]
    lines += [] if "role" in more else ["role: root"]
    return rule("\n".join(lines))


def table_of(text: str):
    """The event table and blocks of a log text; the input stays open until the tests end."""
    source = _OPEN.enter_context(text_source(text))
    table = scan([source], Options(processes=1))
    return table, find_blocks(table)


def launch_of(table, **more) -> Launch:
    """A launch over all rows of a table; every field can be given."""
    marks = more.pop("marks", ())
    values = {
        "id": "L1",
        "rows": np.arange(len(table), dtype=np.int64),
        "sources": (0,),
        "lines": (1, len(table)),
        "reached": "serving",
        "ended": "crashed",
        "ended_row": None,
        "ended_why": "",
        "expected": (),
        "seen": tuple(table.ranks),
        "missing": (),
        "stages": {},
        "marks": tuple(marks),
        "facts": {},
        "version": VersionInterval(),
    }
    values.update(more)
    return Launch(**values)


def signals_of(text: str, *rules: Rule, **more):
    """Signals of a text by rule id."""
    table, blocks = table_of(text)
    return match_rules(rules, table, blocks, launch_of(table, **more))


def case_of(text: str, *rules: Rule, symptom: str | None = None, earlier=(), **more) -> Case:
    """A case over a hand-made launch."""
    table, blocks = table_of(text)
    launch = launch_of(table, **more)
    return Case(
        table,
        blocks,
        launch,
        match_rules(rules, table, blocks, launch),
        {r.id: r for r in rules},
        symptom,
        tuple(earlier),
    )


def facts(**values: object) -> dict[str, Fact]:
    """Facts by name; `__` stands for the dot."""
    return {k.replace("__", "."): Fact(k.replace("__", "."), v, None) for k, v in values.items()}


def failure(row: int, rank: str | None = None, **more) -> Failure:
    """A first failure."""
    values = {
        "id": "F1",
        "role": "root",
        "outcome": "terminal",
        "stage": "decode",
        "row": row,
        "rows": (row,),
        "rank": Rank.parse(rank) if rank else None,
        "ranks": (),
        "count": 1,
        "mechanism": "m",
        "text": "",
    }
    values.update(more)
    return Failure(**values)


def mark(stage: str, edge: str, row: int, rank: str | None = None) -> StageMark:
    return StageMark(stage, edge, Rank.parse(rank) if rank else None, row, None)


def ranks(*names: str) -> tuple[Rank, ...]:
    return tuple(r for n in names if (r := Rank.parse(n)))


__all__ = ["Path", "cases_of", "tempfile"]
