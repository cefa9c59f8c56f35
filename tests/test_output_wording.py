"""Words of the terminal report: alternatives, what is left out, the standard input, no sentence twice."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from report_example import example

from forensics.fleet.rows import _label
from forensics.output import gcc, markdown, sarif
from forensics.output.fixes import as_alternative, fix_lines
from forensics.output.terminal import render
from forensics.output.terminal_words import left_out, main_grounds
from forensics.schema.report import ComparisonInfo, DifferenceInfo, FixInfo, GroundInfo, HypothesisInfo, Report

SAGA = Path(__file__).parents[1] / "samples/cases/saga/session.log"


def ground(side: str) -> GroundInfo:
    return GroundInfo.model_validate({"id": "", "side": side, "strength": "weak", "condition": "c"})


def with_why(why: str, grounds: list[str]) -> Report:
    """The example with these reasons for its first hypothesis."""
    report = example()
    launch = report.launches[0]
    first = launch.hypotheses[0]
    told = [g.model_copy(update={"why": w, "side": "for"}) for g, w in zip(first.grounds, grounds, strict=False)]
    first = first.model_copy(update={"why": why, "grounds": told})
    launch = launch.model_copy(update={"hypotheses": [first, *launch.hypotheses[1:]]})
    return report.model_copy(update={"launches": [launch, *report.launches[1:]]})


def test_brief_says_which_steps_are_alternatives():
    text = render(example(), brief=True)
    assert "+ --dtype bfloat16" in text and re.search(r"^ +or env A_B='x y'$", text, re.M)


def test_issue_reports_say_which_steps_are_alternatives():
    for told in (markdown.render(example()), sarif.render(example())):
        assert "or env A_B='x y'" in told


def test_alternatives_keep_what_they_do():
    steps = [
        FixInfo(kind="flag", op="set", name="--a", value="1"),
        FixInfo(kind="flag", op="set", name="--b", value="2", with_above=True),
        FixInfo(kind="flag", op="remove", name="--c"),
        FixInfo(kind="host", do="restart"),
    ]
    told = [as_alternative(*pair) for pair in fix_lines(steps)]
    assert told == ["+ --a 1", "+ --b 2", "or without --c", "· restart"]


@pytest.mark.parametrize(
    ("rest", "told"),
    [
        (["for"], "1 more ground for"),
        (["for", "for", "against"], "2 more grounds for and 1 against"),
        (["for", "against", "unknown", "unknown"], "1 more ground for, 1 against and 2 not known"),
        (["against", "against"], "2 more grounds against"),
    ],
)
def test_what_is_left_out_is_counted_in_words(rest, told):
    assert left_out([ground(side) for side in rest], []) == told


def test_a_reason_that_its_ground_gives_stands_once():
    once = " ".join(render(with_why("the pool is 4 slots short", ["the pool is 4 slots short"])).split())
    assert once.count("the pool is 4 slots short") == 1
    both = " ".join(render(with_why("all that it needs held", ["the pool is 4 slots short"])).split())
    assert "all that it needs held" in both and "the pool is 4 slots short" in both


def test_the_standard_input_has_a_name_and_compilers_keep_theirs():
    run = [sys.executable, "-m", "forensics", "analyze", "-"]
    text = SAGA.read_bytes()
    told = subprocess.run(run, input=text, capture_output=True, check=False).stdout.decode()
    assert "stdin, 2,410 lines" in told and "stdin:2080:1" in told and not re.search(r"(?m)^\s+-:\d", told)
    plain = subprocess.run([*run, "--format", "gcc"], input=text, capture_output=True, check=False).stdout.decode()
    assert plain.startswith("-:") and gcc.render(example())


def test_explain_names_its_rules_only_where_asked():
    run = [sys.executable, "-m", "forensics", "explain"]

    def told(*words: str) -> str:
        return subprocess.run([*run, *words], capture_output=True, check=False).stdout.decode()

    place = f"{SAGA}:2080"
    assert "decided by" not in told(place) and "byte" not in told(place).splitlines()[0]
    assert "decided by" in told(place, "-v") and "shape:" in told(place, "-v")
    finding = told("deepgemm-scale-format-mismatch", "--log", str(SAGA))
    assert "no line shows “DeepGEMM compiles a kernel”" in finding and ": : " not in finding


def test_a_setting_that_both_launches_have_is_not_told_twice():
    same = DifferenceInfo(name="args.disable_cuda_graph", here=True, control=True, tested=True)
    other = DifferenceInfo(name="args.dtype", here="half", control="bfloat16")
    launch = example().launches[0]
    compared = ComparisonInfo(deployment="d", strength="served", differences=[same, other])
    report = example().model_copy(update={"launches": [launch.model_copy(update={"comparison": compared})]})
    rows = [" ".join(row.split()) for row in render(report, detail=1).splitlines()]
    assert "tried --disable-cuda-graph on the same" in rows and "untested --dtype half bfloat16" in rows


def test_unknown_failures_that_differ_in_numbers_are_one_cause_of_a_fleet():
    def label(title: str) -> str | None:
        return _label(HypothesisInfo(id="", kind="engine", title=title, verdict="possible"))

    assert label("It says: ValueError: 12 slots, 4 wanted") == label("It says: ValueError: 9 slots, 8 wanted")
    assert label("It says: ValueError: no slots") != label("It says: KeyError: no slots")


def test_a_ground_that_an_earlier_one_told_is_left_to_v() -> None:
    both = GroundInfo(id="", side="for", strength="must", condition="a and b", why="a is 1; b shows (2 times)")
    again = GroundInfo(id="", side="for", strength="weak", condition="b", why="the first failure says it: b shows")
    other = GroundInfo(id="", side="for", strength="weak", condition="c", why="c is 3")
    assert main_grounds([both, again, other], 6) == [both, other]
