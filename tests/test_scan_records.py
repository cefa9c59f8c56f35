"""A collector's record that holds a whole trace in one line: its lines are read like lines of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.analysis import read, report
from forensics.knowledge.store import load
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

ARGS = "[2026-03-04 05:06:07] server_args=ServerArgs(model_path='/m/q', tp_size=3, enable_cache_report=False)"
TRACE = (
    "[2026-03-04 05:06:19 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/sglang/srt/models/qwen2.py", line 12, in __init__\n'
    "    self.num_heads = divide(self.total_num_heads, tp_size)\n"
    '  File "/opt/sglang/srt/distributed/utils.py", line 19, in ensure_divisibility\n'
    '    assert numerator % denominator == 0, "{} is not divisible by {}".format(\n'
    "AssertionError: 16 is not divisible by 3"
)
AFTER = "[2026-03-04 05:06:20] Received sigquit from a child process. It usually means the child failed."


def _fluent(text: str) -> str:
    return json.dumps({"time": "2026-03-04T05:06:20.1Z", "stream": "stderr", "log": text + "\n", "pod": {"n": "a"}})


FORMS = {
    "json": _fluent,
    "python-json-logger": lambda t: json.dumps({"asctime": "2026-03-04 05:06:20,123", "name": "a", "message": t}),
    "escaped": lambda t: "2026-03-04T05:06:20Z sgl-0 " + t.replace("\n", "\\n"),
    "syslog": lambda t: "Mar  4 05:06:20 node7 sglang[311]: " + t.replace("\n", "#012"),
}


def _launch(path: Path, lines: list[str]) -> LaunchInfo:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    knowledge = load()
    found = report(read([str(path)], Options(), knowledge), Options(), knowledge)
    return next(x for x in found.launches if x.id == found.focus)


@pytest.mark.parametrize("name", FORMS)
def test_a_trace_in_one_line_is_a_trace(tmp_path: Path, name: str) -> None:
    launch = _launch(tmp_path / "a.log", [FORMS[name](x) for x in (ARGS, TRACE, AFTER)])
    first = launch.first_failure
    assert first is not None
    assert (first.where.line, first.rank) == (2, "TP1")
    assert first.text.endswith("AssertionError: 16 is not divisible by 3")


def test_text_and_place_of_each_line_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(_fluent(TRACE) + "\n" + _fluent(AFTER) + "\n", encoding="utf-8")
    table = read([str(path)], Options(), load()).table
    told = [table.text(row) for row in range(len(table))]
    assert told[:6] == ["Scheduler hit an exception: Traceback (most recent call last):", *TRACE.split("\n")[1:]]
    assert [int(n) for n in table.line[:7]] == [1, 1, 1, 1, 1, 1, 2]
    raw = path.read_text(encoding="utf-8").split("\n")[0]
    assert raw[table.column(5) - 1 :].startswith("AssertionError")


def test_a_dump_in_json_is_dated_like_any_other(tmp_path: Path) -> None:
    plain = _launch(tmp_path / "a.log", [ARGS, AFTER]).version
    wrapped = _launch(tmp_path / "b.log", [_fluent(ARGS), _fluent(AFTER)]).version
    assert (plain.low, plain.high) == (wrapped.low, wrapped.high)
