"""Deciding conditions without explaining them comes to what the explanation says, for every shipped condition."""

from __future__ import annotations

from pathlib import Path

import pytest
from condition_cases import case

from forensics.analysis import read
from forensics.knowledge.store import load
from forensics.rulebook.evaluate import decide, evaluate
from forensics.rulebook.outcome import kleene_and
from forensics.schema.finding import Condition
from forensics.schema.options import Options
from forensics.schema.span import Span

CASES = Path(__file__).parents[1] / "samples" / "cases"
INPUTS = (
    sorted((CASES / "saga").glob("*.log")),
    [CASES / "a-bench-dummy-token-nan" / "log.txt"],
    [CASES / "a-gb300-deepep-fp8-cuda-719" / "log.txt"],
)


@pytest.mark.parametrize("paths", INPUTS, ids=lambda paths: str(paths[0].parent.name))
@pytest.mark.parametrize("symptom", [None, "garbage"])
def test_shipped_conditions_are_decided_as_they_are_explained(paths: list[Path], symptom: str | None) -> None:
    options = Options(symptom=symptom)
    knowledge = load(options)
    for launch in read([str(p) for p in paths], options, knowledge).cases:
        for finding in knowledge.findings:
            told = [evaluate(c, launch).value for c in finding.grounds]
            assert [decide([c], launch) for c in finding.grounds] == told
            assert decide(finding.grounds, launch) is kleene_and(told)


@pytest.mark.parametrize(
    "text",
    [
        "sig-a or known env.NOTHING",
        "sig-c or args.tp_size = 2",
        "not (sig-a and args.tp_size = 2)",
        "sig-c and args.tp_size = 2",
        "args.tp_size = 2 and sig-a",
        "not-a-rule or sig-c",
        "not (not-a-rule or sig-a)",
        "pool.have < pool.size or sig-c",
    ],
)
def test_what_is_unknown_stays_unknown(text: str) -> None:
    condition = Condition(text, "must", Span("finding", 1))
    assert decide([condition], case()) is evaluate(condition, case()).value
