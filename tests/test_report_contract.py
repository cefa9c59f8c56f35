"""A report is built without pydantic; what is built keeps to the contract all the same, to the type of each number."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from forensics.analysis import analyze
from forensics.output.json import _dump, render
from forensics.schema.options import Options
from forensics.schema.report import FactValue, FailureInfo, Report, SeriesInfo, Where

SAMPLES = Path(__file__).parent.parent / "samples"
GOOD = SAMPLES / "healthy" / "gpu2-dp2_healthy" / "log.txt"
LOGS = [
    *sorted(SAMPLES.glob("cases/*/log.txt"))[::60],
    *sorted(SAMPLES.glob("healthy/*/log.txt"))[::20],
    SAMPLES / "cases" / "saga" / "session.log",
]


def kinds(value: Any) -> Any:
    """The same structure with the name of each value's type: 5 and 5.0 are equal, their JSON texts are not."""
    if isinstance(value, dict):
        return {key: kinds(item) for key, item in value.items()}
    return [kinds(item) for item in value] if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize("log", LOGS, ids=lambda p: p.parent.name)
def test_built_reports_keep_to_the_contract(log: Path) -> None:
    report = analyze([str(log)], Options(baseline=GOOD, launch="all"))
    built = report.model_dump()
    checked = Report.model_validate(built)
    assert checked == report
    assert kinds(checked.model_dump()) == kinds(built)
    read = Report.model_validate_json(render(report))
    assert read.model_dump() == built
    assert Report.model_validate_json(report.model_dump_json()).model_dump() == built


def test_the_contract_refuses_what_it_does_not_know() -> None:
    where = {"path": "a.log", "line": 3}
    good = {"id": "F1", "role": "root", "outcome": "crashed", "count": 1, "where": where, "text": "x"}
    assert FailureInfo.model_validate(good).where == Where(path="a.log", line=3)
    for bad in ({**good, "role": "origin"}, {**good, "more": 1}, {**good, "count": "many"}, {"id": "F1"}):
        with pytest.raises(ValidationError):
            FailureInfo.model_validate(bad)


def test_what_is_no_number_is_null() -> None:
    fact = FactValue(value=[math.inf, (1, math.nan), 2.5])
    assert fact.model_dump()["value"] == [None, [1, None], 2.5]
    series = SeriesInfo(kind="decode", metric="tokens", times=[1.0, 2.0], values=[-math.inf, 3.0])
    assert series.model_dump()["values"] == [None, 3.0]
    for value in (math.inf, [math.nan, 1.0], {"a": -math.inf}):
        assert "null" in _dump({"value": value}) and "inf" not in _dump({"value": value})


def test_copies_change_what_is_named() -> None:
    where = Where(path="a.log", line=3)
    assert where.model_copy(update={"text": "x"}) == Where(path="a.log", line=3, text="x")
    assert where.model_copy() == where and where.model_copy() is not where
    with pytest.raises(AttributeError):
        where.line = 4
