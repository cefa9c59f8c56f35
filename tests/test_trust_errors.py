"""Only documented errors leave the program; a bug is told, written down masked, and loses no finished work."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.cli.main import run

CRASH = Path(__file__).parent.parent / "samples/cases/run-gpu2-tp2_nan/log.txt"


@pytest.fixture
def buggy(monkeypatch):
    """A bug in the middle of the diagnosis whose message holds a secret and what a user wrote."""

    def broken(*args: object, **more: object) -> None:
        raise KeyError("api_key='verySECRET1' \x1b[31m Receive: obj=GenerateReqInput(text='my diary')")

    monkeypatch.setattr("forensics.analysis.diagnose", broken)


def bug_file(text: str) -> Path:
    return Path(re.search(r"(/\S*forensics-bug-\S+\.txt)", text)[1])


def test_a_bug_ends_with_70_a_short_message_and_a_masked_file(buggy, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert run(["analyze", str(CRASH)]) == 70
    err = capsys.readouterr().err
    assert "a bug in forensics: KeyError" in err
    assert len(err.splitlines()) == 2
    assert "\x1b" not in err and "verySECRET1" not in err and "diary" not in err
    text = bug_file(err).read_text()
    assert "Traceback" in text and "forensics/analysis.py" in text and "Python 3" in text
    assert "verySECRET1" not in text and "diary" not in text
    assert bug_file(err).stat().st_mode & 0o077 == 0


def test_a_bug_leaves_an_older_report_and_no_half_one(buggy, tmp_path, capsys):
    target = tmp_path / "report.json"
    target.write_text("old")
    assert run(["analyze", str(CRASH), "--format", "json", "-o", str(target)]) == 70
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]
    bug_file(capsys.readouterr().err).unlink()


def test_a_bug_in_one_format_comes_before_anything_is_written(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("forensics.output.sarif.render", lambda report: 1 / 0)
    assert run(["analyze", str(CRASH), "--format", "sarif", "-o", str(tmp_path / "x.sarif")]) == 70
    assert not list(tmp_path.iterdir())
    bug_file(capsys.readouterr().err).unlink()


def test_where_no_bug_file_can_be_written_the_report_is_printed_masked(buggy, capsys, monkeypatch):
    def refuse(*args: object, **more: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refuse)
    assert run(["analyze", str(CRASH)]) == 70
    err = capsys.readouterr().err
    assert "Traceback" in err and "verySECRET1" not in err and "\x1b" not in err


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("analyze",),
        ("analyze", "/nonexistent"),
        ("analyze", "/proc/self/task"),
        ("analyze", "/dev/null"),
        ("analyze", str(CRASH), "--launch", "0"),
        ("analyze", str(CRASH), "--launch", "99999999999999999999"),
        ("analyze", str(CRASH), "--since", "yesterday"),
        ("analyze", str(CRASH), "--max-bytes", "-5"),
        ("analyze", str(CRASH), "--width", "-5"),
        ("analyze", str(CRASH), "--processes", "-1"),
        ("analyze", str(CRASH), "--wrapper", "x"),
        ("analyze", str(CRASH), "--config", "/nonexistent"),
        ("analyze", str(CRASH), "--kb", "/nonexistent"),
        ("analyze", str(CRASH), "--history", "/nonexistent"),
        ("analyze", str(CRASH), "--history", str(CRASH)),
        ("analyze", str(CRASH), "--env", "/nonexistent"),
        ("analyze", str(CRASH), "-o", "/nonexistent/x"),
        ("analyze", str(CRASH), "-o", "/"),
        ("explain", "nothing"),
        ("explain", f"{CRASH}:99999999"),
        ("explain", f"{CRASH}:0"),
        ("explain", "no-such-finding", "--log", str(CRASH)),
        ("events", str(CRASH), "--format", "x"),
        ("events", str(CRASH), "--format", "sqlite"),
        ("series", "/nonexistent"),
        ("coverage", "/nonexistent"),
        ("kb", "show", "nothing"),
        ("kb", "lint", "/nonexistent"),
        ("replay", str(CRASH), "--fix", "nonsense"),
        ("history", "--db", "/nonexistent/h.db"),
        ("watch", "/nonexistent"),
        ("collect", "--log", "/nonexistent", "-o", "/nonexistent/b.tar"),
        ("nonsense",),
        ("analyze", "--nonsense"),
    ],
)
def test_wrong_calls_end_with_a_message_not_a_bug(argv, capsys):
    code = run(list(argv))
    out = capsys.readouterr()
    assert code in (0, 1, 2), out.err
    assert "Traceback" not in out.err
    if code == 2 and argv:
        assert out.err.startswith(("forensics: ", "Usage")) or "Usage" in out.out


def test_a_reader_that_goes_away_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m forensics analyze {CRASH} --format json | head -c 10",
        shell=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""
