"""Held-out logs: what a finding written from the other log of its cause still knows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from diagnose_kit import START, finding, knowledge

from forensics.bench import wordings
from forensics.bench.cases import BenchCase, load_cases
from forensics.bench.left_out import hold_out
from forensics.bench.render import Results, as_json, markdown, text
from forensics.bench.run import run_case
from forensics.bench.score import place
from forensics.knowledge.store import Knowledge
from forensics.schema.options import Options
from forensics.schema.signal import Rule

SITE = "/opt/venv/lib/python3.12/site-packages"
LOG = (
    "[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=1)\n"
    + START
    + "[2026-05-01 10:00:51] Scheduler hit an exception: Traceback (most recent call last):\n"
    f'  File "{SITE}/sglang/srt/layers/odd.py", line 365, in {{function}}\nValueError: {{message}}\n\n'
    "[2026-05-01 10:00:52] Received sigquit from a child process. It usually means the child failed.\n"
)
OLD, NEW = "the lorem size ipsum is no multiple of dolor", "lorem size ipsum must be a multiple of dolor amet"
OTHER = "quite another sentence about sit amet consectetur"


def cases(folder: Path, *logs: tuple[str, str]) -> tuple[BenchCase, ...]:
    for number, (function, message) in enumerate(logs):
        case = folder / f"case{number}"
        case.mkdir(parents=True)
        (case / "log.txt").write_text(LOG.format(function=function, message=message))
        (case / "truth.json").write_text(json.dumps({"cause_key": "own", "log_origin": "rendered"}))
    return load_cases(folder)


def known(folder: Path, *patterns: str, sources: tuple[str, ...] = ()) -> Knowledge:
    path = finding(folder, "own", must=["own-rule"], decisive=["own-rule"], explains=["own-rule"])
    base = knowledge()
    some = next(iter(base.rules.values()))
    rule = Rule("own-rule", "runtime", "Own", patterns, "root", some.span, severity="fatal", sources=sources)
    bare = replace(base, rules={"own-rule": rule})
    return replace(bare, findings=knowledge(path).findings)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Writes a record of wordings that were looked up in the program."""

    def write(base: Knowledge, *numbers: int, missing: dict[int, tuple[str, ...]] | None = None) -> None:
        entry = wordings.Entry(numbers, missing or {})
        (tmp_path / "wordings.json").write_text(wordings.render({"own-rule": entry}, base.rules))
        wordings._record.cache_clear()

    monkeypatch.setattr(wordings, "RECORD", tmp_path / "wordings.json")
    yield write
    monkeypatch.undo()
    wordings._record.cache_clear()


def test_a_wording_of_both_logs_stays(tmp_path: Path) -> None:
    found = hold_out(cases(tmp_path / "c", ("a", OLD), ("b", OLD)), known(tmp_path, "lorem size ipsum is"), Options())
    assert [(place(h.answer), h.wordings) for h in found] == [(1, 0), (1, 0)]


SOURCE = ("sgl-project/sglang@v0.5.3/python/sglang/srt/layers/odd.py",)
BOTH = ("lorem size ipsum is", "quite another (?:sentence|word)")


def test_a_wording_of_the_held_out_log_alone_goes_unless_it_was_found_in_the_program(
    tmp_path: Path, record: Callable[..., None]
) -> None:
    logs = cases(tmp_path / "c", ("a", OLD), ("b", OTHER))
    base = known(tmp_path, *BOTH, sources=SOURCE)
    record(base, -1, -1)
    stated = hold_out(logs, base, Options())
    assert [(place(h.answer), place(h.informed), h.wordings, h.read) for h in stated] == [(None, None, 1, 0)] * 2
    record(base, 0, -1)
    one = hold_out(logs, base, Options())
    assert [(place(h.answer), place(h.informed), h.wordings, h.read) for h in one] == [
        (None, 1, 1, 1),
        (None, None, 1, 0),
    ]


def test_a_side_that_was_not_found_counts_only_where_the_log_does_not_show_it(
    tmp_path: Path, record: Callable[..., None]
) -> None:
    logs = cases(tmp_path / "c", ("a", OLD), ("b", OTHER))
    base = known(tmp_path, *BOTH, sources=SOURCE)
    record(base, 0, 0, missing={1: ("word",)})
    assert [place(h.informed) for h in hold_out(logs, base, Options())] == [1, 1]
    record(base, 0, 0, missing={1: ("sentence",)})
    assert [place(h.informed) for h in hold_out(logs, base, Options())] == [1, None]


def test_a_record_of_other_wordings_or_sources_says_nothing(tmp_path: Path, record: Callable[..., None]) -> None:
    base = known(tmp_path, *BOTH, sources=SOURCE)
    record(base, 0, 0)
    rule = base.rules["own-rule"]
    assert wordings.in_program(rule, BOTH[0], ["x"])
    assert not wordings.in_program(replace(rule, patterns=(*BOTH, "one more")), BOTH[0], ["x"])
    assert not wordings.in_program(replace(rule, sources=("sgl-project/sglang@v0.5.4/a.py",)), BOTH[0], ["x"])
    assert not wordings.in_program(rule, "no wording of it", ["x"])


def test_drafts_catch_the_message_that_they_were_made_from_and_no_other(tmp_path: Path) -> None:
    again = OLD.replace("dolor", "dolor 7")
    same = hold_out(cases(tmp_path / "c", ("a", OLD), ("b", again)), known(tmp_path, "lorem size"), Options())
    assert place(same[1].drafted) == 1
    other = hold_out(cases(tmp_path / "d", ("a", OLD), ("b", OTHER)), known(tmp_path, *BOTH), Options())
    assert [place(h.drafted) for h in other] == [None, None]


def test_the_other_log_catches_a_reworded_message_of_the_same_function(tmp_path: Path) -> None:
    logs = cases(tmp_path / "c", ("check_lorem", OLD), ("check_lorem", NEW))
    found = hold_out(logs, known(tmp_path, "lorem size ipsum is", "ipsum must be a multiple"), Options())
    assert [(place(h.answer), h.answer.verdict, h.wordings) for h in found] == [(1, "possible", 1)] * 2


def test_another_function_needs_more_likeness(tmp_path: Path) -> None:
    logs = cases(tmp_path / "c", ("check_lorem", OLD), ("elsewhere", OTHER))
    found = hold_out(logs, known(tmp_path, "lorem size ipsum is", "quite another sentence"), Options())
    assert [place(h.answer) for h in found] == [None, None]


def test_all_figures_are_printed(tmp_path: Path, record: Callable[..., None]) -> None:
    logs = cases(tmp_path / "c", ("a", OLD), ("b", OTHER))
    base = known(tmp_path, *BOTH, sources=SOURCE)
    record(base, 0, 0)
    results = Results(tuple(run_case(c, base, Options()) for c in logs), held_out=hold_out(logs, base, Options()))
    assert "cause first without its own log" in text(results)
    assert "with the wordings found in the program" in text(results)
    assert "from untouched drafts of its other logs" in text(results)
    page = markdown(results)
    assert "the cause is still first in 0.0 % (n=2)" in page
    assert "100.0 % (n=2) of the wordings so lost" in page
    assert "no other: 100.0 % (n=2)" in page
    assert "caught with the program's wordings" in page
    found = json.loads(as_json(results))
    assert found["leave_one_case_out"][0] == {"right": 0, "n": 2, "percent": 0.0}
    assert found["leave_one_case_out_informed"][0] == {"right": 2, "n": 2, "percent": 100.0}
    assert found["leave_one_case_out_drafted"] == {"right": 0, "n": 2, "percent": 0.0}
