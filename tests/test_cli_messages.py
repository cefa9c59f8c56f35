"""What a person reads after a slip at the command line: what was wrong, what to do next, and the exit code."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from forensics.cli.main import run

ROOT = Path(__file__).parent.parent
LOG = str(ROOT / "samples" / "cases" / "run-gpu2-tp2_nan" / "log.txt")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["analyze", "nowhere.log"], "no such file"),
        (["analyze", LOG, "--baseline", "nowhere.log", "--quiet"], "nowhere.log"),
        (["analyze", LOG, "--format", "xml"], "one of text"),
        (["analyze", LOG, "--fromat", "json"], "--format"),
        (["explain", "some-finding"], "--log"),
        (["analyse", LOG], "No such command 'analyse'. Did you mean 'analyze'?"),
        (["Replays"], "Did you mean 'replay'?"),
        (["kb", "tets"], "Did you mean 'test'?"),
        ([LOG], f"Did you mean 'analyze {LOG}'?"),
        (["zzzz"], "No such command 'zzzz'.\n"),
        (["kb", "new", "--nope"], "forensics kb new --help"),
        (["kb", "list", "rules", "--category", "nope"], "one of compile"),
        (["bench", str(ROOT / "samples" / "cases"), "--only", "nope-nope"], "none of"),
        (["fleet", LOG, "--nope"], "forensics fleet run --help"),
        (["history", "--db", "nowhere.db"], "no history"),
    ],
)
def test_a_slip_is_named_with_what_to_do(words, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert said in err and "hint: " in err
    assert out == ""


@pytest.mark.parametrize("words", [[], ["analyze"], ["kb"], ["replay"]])
def test_a_command_without_words_prints_its_help_and_nothing_else(words, capsys):
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert "Usage: forensics" in out
    assert err == ""


def test_a_text_that_no_server_wrote_is_called_so(capsys, tmp_path):
    (tmp_path / "notes.log").write_text("just prose\n")
    assert run(["analyze", str(tmp_path / "notes.log")]) == 2
    assert "no sign of an sglang server" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["events", "series", "coverage"])
def test_what_was_not_read_of_a_log_is_told_beside_its_data(command, capsys, tmp_path):
    packed = gzip.compress(Path(LOG).read_bytes())
    (tmp_path / "cut.log.gz").write_bytes(packed[: len(packed) // 2])
    assert run([command, str(tmp_path / "cut.log.gz")]) == 0
    out, err = capsys.readouterr()
    assert out
    assert "cut.log.gz: compressed data ends early" in err


def test_a_window_without_a_line_is_an_error_and_a_part_is_told(capsys):
    assert run(["analyze", LOG, "--since", "2031-01-01"]) == 2
    assert "no line of the input lies between --since and --until" in capsys.readouterr().err
    assert run(["analyze", LOG, "--since", "2020-01-01", "--until", "2031-01-01"]) == 1
    assert "--since" not in capsys.readouterr().out


def test_quiet_tells_what_was_not_read(capsys, tmp_path):
    packed = gzip.compress(Path(LOG).read_bytes())
    (tmp_path / "cut.log.gz").write_bytes(packed[: len(packed) // 2])
    run(["analyze", str(tmp_path / "cut.log.gz"), str(tmp_path / "none.log"), "--quiet"])
    out, err = capsys.readouterr()
    assert out.count("\n") == 1
    assert "data ends early" in err
    assert "none.log" in err


@pytest.mark.parametrize(
    ("baseline", "said"), [("notes", "holds no launch of a server"), ("failed", "the baseline failed itself")]
)
def test_a_baseline_that_is_no_good_run_is_called_so(baseline, said, capsys, tmp_path):
    (tmp_path / "notes").write_text("just prose\n")
    (tmp_path / "failed").write_bytes(Path(LOG).read_bytes())
    assert run(["analyze", LOG, "--baseline", str(tmp_path / baseline)]) == 1
    assert said in capsys.readouterr().out.replace("\n    ", " ")
