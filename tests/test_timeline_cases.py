"""Short logs of many kinds of failure: the line marked with `>>> ` states the first one (no mark: none does)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from timeline_logs import launches

FILE = Path(__file__).parent / "timeline_cases.txt"


@dataclass(frozen=True)
class Case:
    name: str
    lines: list[str]
    line: int | None
    wanted: dict[str, str]


def cases() -> list[Case]:
    found = []
    for part in FILE.read_text(encoding="utf-8").split("#### ")[1:]:
        head, *lines = part.rstrip("\n").split("\n")
        name, *words = head.split()
        marked = [i for i, text in enumerate(lines, start=1) if text.startswith(">>> ")]
        found.append(
            Case(
                name,
                [t.removeprefix(">>> ") for t in lines],
                marked[0] if marked else None,
                dict(w.split("=") for w in words),
            )
        )
    return found


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_first_failure(case: Case, tmp_path: Path) -> None:
    table, found = launches(tmp_path, case.lines)
    launch = found[0]
    first = launch.failure(launch.first_failure)
    assert (int(table.line[first.row]) if first else None) == case.line
    got = {
        "ended": launch.ended,
        "launches": str(len(found)),
        "stage": first.stage if first else "",
        "rank": str(first.rank).replace(" ", "_") if first and first.rank else "",
        "suspect": "+".join(str(r).replace(" ", "_") for r in first.suspect_ranks) if first else "",
    }
    assert {k: got[k] for k in case.wanted} == case.wanted
