"""What a draft holds beside its own wording: kinds of checks, functions, names and parts, and when they count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from forensics.analysis import read, report
from forensics.bench.drafts import Drafted, drafted_from
from forensics.knowledge.draft import open_pattern, spoken
from forensics.knowledge.draft_alike import failed
from forensics.knowledge.draft_kinds import KINDS, kind_of
from forensics.knowledge.store import Knowledge, load
from forensics.rulebook.patterns import compiled
from forensics.schema.options import Options
from forensics.schema.report import Report

SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
LOG = (
    "[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=6, ep_size=1)\n"
    "[2026-05-01 10:00:40 TP0] Load weight begin. avail mem=78.02 GB\n"
    "[2026-05-01 10:00:51 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "{site}/models/{model}.py", line 365, in {function}\n'
    "    {source}\n"
    "{message}\n\n"
    "[2026-05-01 10:00:52] Received sigquit from a child process. It usually means the child failed.\n"
)


def log(folder: Path, name: str, message: str, source: str = "pass", function: str = "__init__") -> str:
    path = folder / f"{name}.log"
    path.write_text(LOG.format(site=SITE, model=name, function=function, source=source, message=message))
    return str(path)


@pytest.fixture(scope="module")
def nothing() -> Knowledge:
    """No findings and no rules: what a cause that nobody knows meets."""
    return replace(load(Options()), findings=(), rules={})


def told(path: str, knowledge: Knowledge) -> Report:
    return report(read([path], Options(), knowledge), Options(), knowledge)


def hypotheses(path: str, knowledge: Knowledge) -> list[tuple[str | None, str]]:
    found = told(path, knowledge)
    launch = next(x for x in found.launches if x.id == found.focus)
    return [(h.finding, h.verdict) for h in launch.hypotheses if h.finding]


def draft(path: str, knowledge: Knowledge, number: int = 0) -> Drafted:
    return drafted_from(told(path, knowledge), knowledge, number)


def with_draft(knowledge: Knowledge, made: Drafted, status: str = "suspected") -> Knowledge:
    assert made.finding is not None
    rules = {**knowledge.rules, **{r.id: r for r in made.rules}}
    return replace(knowledge, rules=rules, findings=(*knowledge.findings, replace(made.finding, status=status)))


ODD = "ValueError: the 7 gizmos of a layer are not divisible by the number of ranks"
BARE = "assert self.total_gizmos % self.tp_size == 0"


def test_a_draft_meets_another_check_of_its_kind_and_stays_modest(tmp_path: Path, nothing: Knowledge) -> None:
    known = with_draft(nothing, draft(log(tmp_path, "first", ODD), nothing))
    other = log(tmp_path, "second", "AssertionError", BARE)
    assert hypotheses(other, known) == [("drafted-case-0", "possible")]
    assert hypotheses(log(tmp_path, "third", "ValueError: the gizmo is red"), known) == []


def test_a_setting_that_the_kind_is_about_goes_into_the_condition(tmp_path: Path, nothing: Knowledge) -> None:
    made = draft(log(tmp_path, "first", ODD), nothing)
    assert made.finding is not None
    (must,) = [c.text for c in made.finding.grounds if c.strength == "must"]
    assert must == "drafted-case-0 or (drafted-case-0-sizes and args.tp_size > 1)"
    single = tmp_path / "single.log"
    single.write_text(Path(log(tmp_path, "b", "AssertionError", BARE)).read_text().replace("tp_size=6", "tp_size=1"))
    assert hypotheses(str(single), with_draft(nothing, made)) == []


def test_the_same_function_names_and_part_are_told(tmp_path: Path, nothing: Knowledge) -> None:
    first = log(tmp_path, "a", "ValueError: SGLANG_NUM_MAX_GIZMO_TOKENS is odd", function="check_gizmo")
    known = with_draft(nothing, draft(first, nothing))
    place = log(tmp_path, "b", "RuntimeError: quite another sentence", function="_check_gizmo")
    names = log(tmp_path, "c", "AssertionError", "assert x.size(0) <= num_max_gizmo_tokens_per_rank", "run")
    neither = log(tmp_path, "d", "RuntimeError: quite another sentence", function="run")
    assert [hypotheses(p, known) for p in (place, names, neither)] == [[("drafted-case-0", "possible")]] * 2 + [[]]
    part = draft(log(tmp_path, "e", "ImportError: cannot import name 'a_b' from 'gizmo' (/x/y/z.py)"), nothing)
    other = log(tmp_path, "f", "AttributeError: module 'gizmo' has no attribute 'twist'")
    assert hypotheses(other, with_draft(nothing, part)) == [("drafted-case-0", "possible")]


def test_a_pointer_is_silent_where_a_cause_shows_its_own_sign(tmp_path: Path, nothing: Knowledge) -> None:
    made = draft(log(tmp_path, "first", ODD), nothing)
    other = log(tmp_path, "second", "AssertionError", BARE)
    both = with_draft(with_draft(nothing, draft(other, nothing, 1)), made)
    assert [name for name, _ in hypotheses(other, both)] == ["drafted-case-1"]
    confirmed = replace(both, findings=(both.findings[0], replace(both.findings[1], status="confirmed")))
    assert {name for name, _ in hypotheses(other, confirmed)} == {"drafted-case-0", "drafted-case-1"}


def test_every_kind_is_worded_for_rules() -> None:
    assert len({k.name for k in KINDS}) == len(KINDS)
    for kind in KINDS:
        for pattern in (*kind.patterns, *filter(None, [kind.innermost])):
            assert compiled(pattern).search("") is None


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("Subprocess scheduler_3 (pid=41) crashed with exit code -9. Triggering SIGQUIT", "killed"),
        ("sglang-1 exited with code 137", "killed"),
        ("ValueError: 12 heads must be a multiple of 5", "sizes"),
        ("AssertionError: this kernel requires SM>=90", "gpu"),
        ("RuntimeError: index out of range in self", "index"),
        ("OSError: [Errno 24] Too many open files", "files"),
        ("ValueError: the gizmo is red", None),
        ("Process 7 exited with code 0", None),
    ],
)
def test_kinds_are_told_by_words(said: str, name: str | None) -> None:
    found = kind_of((said,))
    assert (found.name if found else None) == name


def test_what_stands_above_an_exception_says_where_it_was_raised() -> None:
    lines = ['  File "/opt/x/tiny.py", line 8, in check_gizmo', "    assert a % b == 0, (", "AssertionError"]
    found = failed("AssertionError", "AssertionError", lines, 2)
    assert (found.file, found.function, found.asked) == ("tiny.py", "check_gizmo", "assert a % b == 0, (")
    assert failed("Killed", "Killed", lines, 2).function == ""


def test_patterns_leave_out_heads_modules_and_later_clauses() -> None:
    assert spoken("[rank11]:[E227 06:00:19.8 ProcessGroupGloo.cpp:143] Gloo gave up") == "Gloo gave up"
    assert spoken("acme.errors.OddError: no") == "OddError: no"
    clause = "AssertionError: the capture stream of the gizmo is not set"
    assert open_pattern(f"{clause}. Check it first") == open_pattern(f"{clause}, please look") == clause
    assert open_pattern("AttributeError: 'A' object has no attribute 'b'").endswith("no attribute 'b'")
    assert open_pattern("Subprocess worker_0 (pid=7) left") == r"Subprocess worker_-?[\d.]+ \(pid=-?[\d.]+\) left"
