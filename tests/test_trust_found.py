"""Inputs on which fuzzing or an audit once found a fault."""

import warnings
from pathlib import Path

import pytest

from forensics.cli.main import run
from forensics.diagnose.wording import readable
from forensics.errors import ReplayError
from forensics.grammar.server_args import read_server_args
from forensics.output.clean import clean
from forensics.replay.edits import Change, change_command
from forensics.schema.signal import Rule
from forensics.schema.span import Span
from forensics.timeline.envreport import read_env_report
from forensics.timeline.ranks import number

START = "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=1.0 GB\n"


def test_an_edit_that_a_quote_would_swallow_is_refused():
    command = 'nohup sglang serve {"a": 1}\' > server.log 2>&1 &'
    with pytest.raises(ReplayError):
        change_command(command, [Change.parse("set --dtype=bfloat16")])


def test_characters_that_are_not_assigned_are_hidden():
    assert clean("a\ufffeb\uffffc\u05cb") == "a\ufffdb\ufffdc\ufffd"


def test_a_title_with_braces_is_text():
    rule = Rule(id="a-b", family="kernel", title="{0} {k0} {x}", span=Span("r.yaml", 1), patterns=("x",), role="root")
    assert "{0}" in readable("a-b was not seen", {"a-b": rule})


def test_unknown_escapes_in_a_dump_warn_nobody():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read_server_args(r"server_args=ServerArgs(a='x\[y', b='\Q', tp_size=8)")
    assert [a.name for a in found.arguments] == ["a", "b", "tp_size"]


@pytest.mark.parametrize("size", ["9" * 5000, "1000000000", "-1", "²"])
def test_absurd_sizes_are_not_believed(size, tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text(
        f"[2026-03-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size={size}, dp_size={size})\n{START}"
    )
    assert run(["analyze", "--format", "json", str(path)]) in (0, 1)
    assert len(capsys.readouterr().out) < 100_000
    assert number({}, "args.tp_size") == 1


def test_a_bundle_keeps_one_line_for_one_line(tmp_path):
    from forensics.collect.logs import copied

    path = tmp_path / "a.log"
    path.write_text(
        "Receive: obj=GenerateReqInput(text='a')\nnext\n"
        + "x" * (3 << 20)
        + " api_key='abc'"
        + "y" * (2 << 20)
        + "\nlast\n"
    )
    file, _, _ = copied(path, 1 << 30, True)
    lines = file.read().split(b"\n")
    assert len(lines) == 5
    assert lines[1] == b"next" and lines[3] == b"last"
    assert b"abc" not in lines[2]


def test_folders_that_change_meanwhile_are_no_bug(capsys):
    assert run(["analyze", str(Path("/proc/self/task"))]) == 2
    assert "forensics-bug" not in capsys.readouterr().err


def test_a_compute_capability_of_a_thousand_digits_is_none(tmp_path, capsys):
    path = tmp_path / "env.txt"
    path.write_text(
        "GPU 0 Compute Capability: 1" + "9" * 400 + ".0\nGPU 0 Compute Capability: 9.0\nCUDA available: True\n"
    )
    assert [f.value for f in read_env_report(path) if f.name == "gpu.sm"] == [90]
