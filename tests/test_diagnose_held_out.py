"""Held-out logs: what a finding written from the other log of its cause still knows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from diagnose_kit import START, finding, knowledge

from forensics.bench.cases import BenchCase, load_cases
from forensics.bench.left_out import from_program, hold_out
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


@pytest.mark.parametrize(
    ("sources", "told"),
    [
        (("sgl-project/sglang@v0.5.3/python/sglang/srt/server_args.py",), True),
        (("run: x", "sgl-project/sglang@0.4.6/python/sglang/srt/utils.py"), True),
        (("sgl-project/sglang#12",), False),
        (("sgl-project/sglang@v0.5.3",), False),
        ((), False),
    ],
)
def test_only_a_file_of_a_release_is_a_source_in_the_program(
    sources: tuple[str, ...], told: bool, tmp_path: Path
) -> None:
    assert from_program(known(tmp_path, "x", sources=sources).rules["own-rule"]) is told


def test_a_wording_of_both_logs_stays(tmp_path: Path) -> None:
    found = hold_out(cases(tmp_path / "c", ("a", OLD), ("b", OLD)), known(tmp_path, "lorem size ipsum is"), Options())
    assert [(place(h.answer), h.wordings) for h in found] == [(1, 0), (1, 0)]


def test_a_wording_of_the_held_out_log_alone_goes_unless_the_program_states_it(tmp_path: Path) -> None:
    logs = cases(tmp_path / "c", ("a", OLD), ("b", OTHER))
    plain = hold_out(logs, known(tmp_path, "lorem size ipsum is", "quite another sentence"), Options())
    assert [(place(h.answer), place(h.informed), h.wordings, h.read) for h in plain] == [(None, None, 1, 0)] * 2
    source = ("sgl-project/sglang@v0.5.3/python/sglang/srt/layers/odd.py",)
    told = hold_out(logs, known(tmp_path, "lorem size ipsum is", "quite another sentence", sources=source), Options())
    assert [(place(h.answer), place(h.informed), h.wordings, h.read) for h in told] == [(None, 1, 1, 1)] * 2


def test_the_other_log_catches_a_reworded_message_of_the_same_function(tmp_path: Path) -> None:
    logs = cases(tmp_path / "c", ("check_lorem", OLD), ("check_lorem", NEW))
    found = hold_out(logs, known(tmp_path, "lorem size ipsum is", "ipsum must be a multiple"), Options())
    assert [(place(h.answer), h.answer.verdict, h.wordings) for h in found] == [(1, "possible", 1)] * 2


def test_another_function_needs_more_likeness(tmp_path: Path) -> None:
    logs = cases(tmp_path / "c", ("check_lorem", OLD), ("elsewhere", OTHER))
    found = hold_out(logs, known(tmp_path, "lorem size ipsum is", "quite another sentence"), Options())
    assert [place(h.answer) for h in found] == [None, None]


def test_both_figures_are_printed(tmp_path: Path) -> None:
    logs = cases(tmp_path / "c", ("a", OLD), ("b", OTHER))
    source = ("sgl-project/sglang@v0.5.3/python/sglang/srt/layers/odd.py",)
    base = known(tmp_path, "lorem size ipsum is", "quite another sentence", sources=source)
    results = Results(tuple(run_case(c, base, Options()) for c in logs), held_out=hold_out(logs, base, Options()))
    assert "cause first without its own log" in text(results)
    assert "with the wordings read in the program" in text(results)
    page = markdown(results)
    assert "the cause is still first in 0.0 % (n=2)" in page
    assert "With those kept: 100.0 % (n=2)" in page
    found = json.loads(as_json(results))
    assert found["leave_one_case_out"][0] == {"right": 0, "n": 2, "percent": 0.0}
    assert found["leave_one_case_out_informed"][0] == {"right": 2, "n": 2, "percent": 100.0}
