"""Steps of a fix that depend on the log: conditions, values that it names, flags of other releases."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import START, diagnose, finding, focus, knowledge, launch_text, write

from forensics.knowledge.store import load
from forensics.schema.report import HypothesisInfo, LaunchInfo

REFUSED = "usage: launch_server.py [-h]\nlaunch_server.py: error: {}\n"


def refused(tmp_path: Path, message: str) -> LaunchInfo:
    text = "[2026-05-01 10:00:00] INFO: using sglang 0.5.17\n" + REFUSED.format(message)
    return focus(diagnose([write(tmp_path, "1.log", text)], load()))


def changes(found: HypothesisInfo) -> list[tuple[str, str, str | None]]:
    return [(s.op, s.name, s.value) for s in found.fix if s.kind in ("flag", "env")]


@pytest.mark.parametrize(
    ("message", "wanted", "next_step"),
    [
        (
            "unrecognized arguments: --enable-ep-moe",
            [("remove", "--enable-ep-moe", None), ("set", "--ep-size", "<a value>")],
            "choose --ep-size: a value, then relaunch without --enable-ep-moe",
        ),
        (
            "unrecognized arguments: --disable-mla 7",
            [("remove", "--disable-mla", None)],
            "relaunch without --disable-mla and nothing else changed",
        ),
        (
            "unrecognized arguments: --attention-bakend triton",
            [("remove", "--attention-bakend", None)],
            "relaunch without --attention-bakend and nothing else changed",
        ),
        (
            "argument --tool-call-parser: invalid choice: 'qwen_25' (choose from 'llama3', 'qwen25', 'mistral')",
            [("set", "--tool-call-parser", "<one of the values that the message lists>")],
            "choose --tool-call-parser: one of the values that the message lists (try qwen25), then relaunch",
        ),
    ],
)
def test_a_refused_flag_is_the_one_that_the_fix_changes(
    message: str, wanted: list[tuple[str, str, str | None]], next_step: str, tmp_path: Path
) -> None:
    launch = refused(tmp_path, message)
    assert changes(launch.hypotheses[0]) == wanted
    assert launch.next[0].do == next_step


def test_a_misspelt_flag_comes_with_the_one_that_may_be_meant(tmp_path: Path) -> None:
    found = refused(tmp_path, "unrecognized arguments: --attention-bakend triton").hypotheses[0]
    assert found.fix[0].note == "perhaps --attention-backend is meant"


def test_what_a_shell_would_read_is_never_taken_from_a_log(tmp_path: Path) -> None:
    launch = refused(tmp_path, "unrecognized arguments: --enable-ep-moe $(reboot) ;reboot")
    assert ("set", "--ep-size", "<a value>") in changes(launch.hypotheses[0])
    assert "reboot" not in "".join(f"{s.name}{s.value}{s.do}{s.note}" for s in launch.hypotheses[0].fix)


FAILS = """[2026-05-01 10:00:19 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/distributed/utils.py", line 53, in ensure_divisibility
AssertionError: 25 is not divisible by 24
"""
TRUE = "{kind: flag, op: set, name: --tp-size, value: '1', when: 'args.tp_size > 1', runnable: true}"
FALSE = "{kind: flag, op: set, name: --page-size, value: '1', when: 'args.tp_size = 1', runnable: true}"
UNKNOWN = "{kind: env, op: set, name: NCCL_DEBUG, value: INFO, when: env.NCCL_NET = Socket, runnable: true}"
PORT = "{{kind: host, do: 'ask who listens: ss -ltnp | grep :{{args.{field}|PORT}}'}}"
HOLE = "{kind: flag, op: set, name: --tp-size, value: '{args.no_such_field}'}"


@pytest.mark.parametrize(
    ("fix", "wanted"),
    [
        ([FALSE, TRUE], ["--tp-size"]),
        ([TRUE, UNKNOWN], ["--tp-size", "NCCL_DEBUG"]),
        ([HOLE, TRUE], ["--tp-size"]),
        ([FALSE, "{kind: flag, op: remove, name: --enable-torch-compile, with_above: true}", TRUE], ["--tp-size"]),
    ],
)
def test_a_step_is_offered_where_its_condition_holds(fix: list[str], wanted: list[str], tmp_path: Path) -> None:
    head = launch_text("").split(START)[0].replace("tp_size=1", "tp_size=24")
    own = finding(tmp_path, "split", must=["size-not-divisible"], decisive=["size-not-divisible"],
                  fix=f"[{', '.join(fix)}]")  # fmt: skip
    text = head + START.split("[2026-05-01 10:00:20]")[0] + FAILS
    launch = focus(diagnose([write(tmp_path, "1.log", text)], knowledge(own)))
    assert [s.name for s in launch.hypotheses[0].fix] == wanted


@pytest.mark.parametrize(("field", "wanted"), [("port", "grep :30001"), ("nccl_port", "grep :PORT")])
def test_a_sentence_takes_a_fact_or_its_stand_in(field: str, wanted: str, tmp_path: Path) -> None:
    head = launch_text("").split(START)[0].replace("tp_size=1", "tp_size=24")
    port = PORT.format(field=field)
    own = finding(tmp_path, "split", must=["size-not-divisible"], decisive=["size-not-divisible"], fix=f"[{port}]")
    text = head + START.split("[2026-05-01 10:00:20]")[0] + FAILS
    launch = focus(diagnose([write(tmp_path, "1.log", text)], knowledge(own)))
    assert launch.hypotheses[0].fix[0].do.endswith(wanted)
