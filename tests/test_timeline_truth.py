"""Launches, first failures and endings against the truth of all samples; floors, not exact figures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from score_timeline import Score, run  # type: ignore[import-not-found]

FLOORS = {
    "line": 0.96,
    "none": 0.97,
    "rank": 0.97,
    "stage": 0.95,
    "reached": 0.97,
    "ended": 0.96,
    "launches": 0.98,
    "reporter": 0.95,
    "suspect": 0.7,
}


@pytest.fixture(scope="module")
def score() -> Score:
    result = run()
    for name in sorted(result.asked):
        print(f"{name:9} {result.right[name]}/{result.asked[name]} {result.share(name):.1%}")
    return result


@pytest.mark.parametrize("name", sorted(FLOORS))
def test_share_of_right_answers_stays_above_its_floor(score: Score, name: str) -> None:
    assert score.asked[name] > 0
    misses = "\n".join(m for m in score.misses if m.startswith(name))
    assert score.share(name) >= FLOORS[name], misses
