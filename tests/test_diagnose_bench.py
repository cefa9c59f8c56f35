"""`forensics bench`: neutral names, what counts as right, figures per verdict word, unknown causes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from forensics.bench.cases import BenchCase, load_cases
from forensics.bench.render import Results, as_json, markdown, text
from forensics.bench.run import Answer, neutral
from forensics.bench.score import confusions, line_right, misses, modest_enough, place, score
from forensics.cli.main import run
from forensics.errors import InputError

CASES = Path(__file__).parents[1] / "samples" / "cases"


def case(**keys: object) -> BenchCase:
    values: dict[str, object] = {
        "id": "x", "log": Path("x"), "cause": "a", "enough": True, "line": 10, "rank": "TP1", "span": None,
        "stages": ("load",), "symptom": None, "origin": "real", "guilty": None, "states_failure": True,
    }  # fmt: skip
    return BenchCase(**(values | keys))  # type: ignore[arg-type]


def answer(of: BenchCase, *named: tuple[str, str], **keys: object) -> Answer:
    values: dict[str, object] = {
        "hypotheses": tuple((n, v, "finding") for n, v in named), "ruled_out": (), "risks": (), "line": 10,
        "rank": "TP1", "stage": "load", "suspects": (), "has_next": True,
    }  # fmt: skip
    return Answer(case=of, **(values | keys))  # type: ignore[arg-type]


def test_the_name_of_a_case_does_not_reach_the_program() -> None:
    found = load_cases(CASES / "d-bad-tool-parser")[0]
    with neutral(found) as path:
        assert path.name == "server.log"
        assert "d-bad" not in str(path)
        assert path.read_bytes() == found.log.read_bytes()


def test_places_count_hypotheses_and_risks_only_where_nothing_is_asked() -> None:
    assert place(answer(case(), ("a", "likely"))) == 1
    assert place(answer(case(), ("b", "likely"), ("a", "possible"))) == 2
    assert place(answer(case(), risks=("a",))) is None
    assert place(answer(case(line=None), risks=("b", "a"), line=None)) == 2


def test_modest_answers() -> None:
    short = case(enough=False)
    assert modest_enough(answer(short, ("b", "possible"), ("a", "possible")))
    assert not modest_enough(answer(short, ("a", "likely")))
    assert not modest_enough(answer(short, ("b", "possible")))
    assert modest_enough(answer(short))
    assert not modest_enough(answer(short, has_next=False))


def test_first_failure_lines_may_be_two_off_or_inside_the_span() -> None:
    assert line_right(answer(case(), line=12))
    assert not line_right(answer(case(), line=13))
    assert line_right(answer(case(span=(2, 30)), line=25))
    assert line_right(answer(case(line=None), line=None))
    assert not line_right(answer(case(line=None), line=4))


def test_precision_is_per_verdict_word() -> None:
    found = score(
        [answer(case(), ("a", "established")), answer(case(), ("b", "likely")), answer(case(), ("a", "likely"))]
    )
    assert (found.precision["established"].right, found.precision["established"].n) == (1, 1)
    assert (found.precision["likely"].right, found.precision["likely"].n) == (1, 2)
    assert found.top1.percent == 66.7


def test_misses_and_confusions_name_the_truth() -> None:
    wrong = [answer(case(), ("b", "likely"), line=40)]
    assert confusions(wrong) == [("a", "b", 1)]
    assert "a is not named, first is b (likely)" in misses(wrong)[0]
    assert "line 40, truth 10" in misses(wrong)[0]


def test_healthy_logs_with_a_hypothesis_are_misses() -> None:
    healthy = case(cause="healthy", line=None, rank=None)
    assert misses([answer(healthy, ("b", "possible"), line=None, rank=None)]) == ["x: healthy, but b (possible)"]


def test_an_unknown_cause_called_likely_is_a_fault() -> None:
    results = Results((answer(case(), ("a", "likely")),), (answer(case(), ("b", "likely")), answer(case())))
    assert (results.unknown().right, results.unknown().n) == (1, 2)
    assert "unknown cause called likely or better" in text(results)
    assert "50.0 % (n=2)" in markdown(results)
    assert json.loads(as_json(results))["leave_one_cause_out"] == {"right": 1, "n": 2, "percent": 50.0}


def test_no_case_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no case found"):
        load_cases(tmp_path)


def test_a_broken_truth_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("x\n")
    (tmp_path / "truth.json").write_text("{")
    with pytest.raises(InputError, match=r"truth\.json"):
        load_cases(tmp_path)


def test_the_command_scores_a_folder_of_cases(tmp_path: Path) -> None:
    for name in ("d-bad-tool-parser", "run-gpu-model_path_missing"):
        shutil.copytree(CASES / name, tmp_path / "cases" / name)
    out = tmp_path / "accuracy.json"
    assert run(["bench", str(tmp_path / "cases"), "--leave-one-cause-out", "--output", str(out)]) == 0
    found = json.loads(out.read_text())
    assert found["groups"]["all"]["top1"] == {"right": 2, "n": 2, "percent": 100.0}
    assert found["leave_one_cause_out"]["right"] == 0
