"""Faults while working: full disks, read-only homes, kills at any moment, files that change under the reader.

What is on disk afterwards is the old file or the new one, never half of one; and the exit code says what happened.
"""

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forensics.cli.main import run
from forensics.errors import HistoryError
from forensics.history import History, Verdict

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"
SESSION = ROOT / "samples/cases/saga/session.log"


def forensics(
    *argv: str, env: dict[str, str] | None = None, limit: int | None = None, **more: object
) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own; `limit` bounds the size of every file that it writes (as a full disk does)."""

    def bound() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "forensics", *argv],
        capture_output=True,
        env={**os.environ, **(env or {})},
        preexec_fn=bound if limit is not None else None,
        check=False,
        **more,
    )


@pytest.mark.parametrize("format", ["json", "text", "sarif"])
def test_a_full_disk_leaves_the_old_report(format, tmp_path):
    target = tmp_path / "report"
    target.write_text("old")
    done = forensics(
        "analyze", str(CRASH), "--format", format, "-o", str(target), limit=64, env={"FORENSICS_CACHE": "off"}
    )
    assert done.returncode == 2, done.stderr
    assert b"cannot write" in done.stderr + done.stdout and b"hint" in done.stderr + done.stdout
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report"]


@pytest.mark.parametrize("format", ["jsonl", "csv", "sqlite"])
def test_a_full_disk_leaves_the_old_export(format, tmp_path):
    target = tmp_path / "events"
    target.write_text("old")
    done = forensics(
        "events", str(CRASH), "--format", format, "-o", str(target), limit=2048, env={"FORENSICS_CACHE": "off"}
    )
    assert done.returncode == 2, done.stderr
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["events"]


def test_a_full_pipe_or_device_is_told(tmp_path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "forensics", "analyze", str(CRASH)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2, done.stderr
    assert b"cannot write" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_full_disk_leaves_the_old_history(tmp_path):
    path = tmp_path / "h.db"
    history = History(path)
    history.add_verdict(Verdict("r1", "f", "fixed", ("--a=b",)))
    history.close()
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from forensics.errors import HistoryError\n"
        "from forensics.history import History, Verdict\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "history = History(Path(sys.argv[1]))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n"
        "try:\n"
        "    history.add_verdict(Verdict('r2', 'x' * 100_000, 'fixed', ()))\n"
        "except HistoryError as error:\n"
        "    print(error.render())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert "cannot write" in done.stdout, done.stderr
    history = History(path)
    assert [v.run for v in history.verdicts()] == ["r1"]
    history.close()
    assert sqlite3.connect(path).execute("pragma integrity_check").fetchone() == ("ok",)


def test_a_damaged_history_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "h.db"
    History(path).close()
    data = bytearray(path.read_bytes())
    data[:4096] = b"x" * 4096
    path.write_bytes(data)
    with pytest.raises(HistoryError):
        History(path)
    assert path.read_bytes() == bytes(data)


def test_homes_and_caches_that_cannot_be_written_change_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    plain = forensics("analyze", str(CRASH), "--format", "json", env={"FORENSICS_CACHE": "off"})
    for env in (
        {"HOME": str(blocked), "XDG_CACHE_HOME": ""},
        {"HOME": "/nonexistent", "XDG_CACHE_HOME": ""},
        {"FORENSICS_CACHE": str(blocked)},
        {"FORENSICS_CACHE": "/proc/nothing"},
        {"XDG_CACHE_HOME": "/dev/null"},
        {"HOME": ""},
    ):
        done = forensics("analyze", str(CRASH), "--format", "json", env=env)
        assert done.returncode == 1, done.stderr
        assert done.stdout == plain.stdout


def test_a_damaged_cache_is_no_reason_to_fail(tmp_path):
    env = {"FORENSICS_CACHE": str(tmp_path)}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "findings").mkdir()
    argv = ("analyze", str(CRASH), "--format", "json", "--kb", str(tmp_path / "own"))
    whole = forensics(*argv, env=env).stdout
    for kind in (b"", b"{", b"[1]", b"\xff\x00", b"null"):
        for path in tmp_path.glob("*.json"):
            path.write_bytes(kind)
        done = forensics(*argv, env=env)
        assert done.returncode == 1, done.stderr
        assert done.stdout == whole


def killed_at(argv: tuple[str, ...], delay: float, env: dict[str, str], stdin: bytes | None = None) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "forensics", *argv],
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **env},
    )
    if stdin is not None and process.stdin is not None:
        process.stdin.write(stdin)
        process.stdin.flush()
    time.sleep(delay)
    process.kill()
    process.wait()


DELAYS = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.7, 0.9)


def test_analyze_killed_at_any_moment_leaves_old_or_new(tmp_path):
    target, cache = tmp_path / "report.json", tmp_path / "cache"
    env = {"FORENSICS_CACHE": str(cache)}
    target.write_text('"old"')
    for delay in DELAYS:
        killed_at(("analyze", str(SESSION), "--format", "json", "-o", str(target)), delay, env)
        found = json.loads(target.read_text())
        assert found == "old" or found["launches"]
    done = forensics("analyze", str(SESSION), "--format", "json", "-o", str(target), env=env)
    assert done.returncode == 1
    assert json.loads(target.read_text())["launches"]


def test_kb_index_killed_at_any_moment_leaves_old_or_new(tmp_path):
    import shutil

    base = tmp_path / "kb"
    shutil.copytree(ROOT / "kb", base)
    shutil.copytree(ROOT / "rules", base / "rules")
    for old in base.rglob("README.md"):
        old.write_text("old\n")
    for delay in DELAYS:
        killed_at(("kb", "index", "--kb", str(base)), delay, {"FORENSICS_CACHE": "off"})
        for page in base.rglob("README.md"):
            text = page.read_text()
            assert text == "old\n" or (text.endswith("\n") and len(text) > 100)


def test_watch_killed_at_any_moment_leaves_no_half_report(tmp_path):
    target = tmp_path / "report.json"
    target.write_text('"old"')
    argv = (
        "watch",
        "-",
        "--format",
        "json",
        "-o",
        str(target),
        "--minimum",
        "0",
        "--quiet-time",
        "0.1",
        "--maximum",
        "0.3",
    )
    for delay in DELAYS:
        killed_at(argv, delay, {}, CRASH.read_bytes())
        found = json.loads(target.read_text())
        assert found == "old" or found["launches"]
    assert {p.name for p in tmp_path.iterdir() if not p.name.startswith(".")} == {"report.json"}


def _log(times: list[str]) -> bytes:
    lines = [f"[2026-03-01 {t} TP0] Load weight begin. avail mem={i}.0 GB" for i, t in enumerate(times)]
    lines += [
        f"[2026-03-01 {times[-1]} TP0] Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/sglang/srt/a.py", line 1, in f',
        "ValueError: no",
    ]
    return ("\n".join(lines) + "\n").encode()


def test_a_clock_that_goes_backwards_keeps_the_order_of_the_file(tmp_path, capsys):
    path = tmp_path / "server.log"
    path.write_bytes(_log(["10:00:00", "11:00:00", "09:00:00", "09:00:01", "08:30:00"]))
    assert run(["analyze", "--format", "json", str(path)]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["launches"][-1]["first_failure"]["where"]["line"] == 8


@pytest.mark.parametrize("how", ["truncated", "emptied", "replaced", "removed", "grown"])
def test_a_file_that_changes_while_it_is_read_never_ends_in_a_bug(how, tmp_path, capsys, monkeypatch):
    from forensics.engine import scan as scanning

    path = tmp_path / "server.log"
    path.write_bytes(SESSION.read_bytes())
    real = scanning.build_table

    def changed(*args: object) -> object:
        table = real(*args)
        match how:
            case "truncated":
                os.truncate(path, path.stat().st_size // 3)
            case "emptied":
                os.truncate(path, 0)
            case "replaced":
                other = tmp_path / "new"
                other.write_bytes(b"other\n")
                other.replace(path)
            case "removed":
                path.unlink()
            case "grown":
                with path.open("ab") as file:
                    file.write(b"x" * 1000)
        return table

    monkeypatch.setattr(scanning, "build_table", changed)
    code = run(["analyze", "--format", "json", str(path)])
    out = capsys.readouterr()
    assert code in (0, 1, 2), out.err
    assert json.loads(out.out)
    if how in ("replaced", "removed", "grown"):
        assert code == 1  # what was opened is read to its end


def test_two_processes_on_one_cache_and_one_report(tmp_path):
    target = tmp_path / "report.json"
    env = {**os.environ, "FORENSICS_CACHE": str(tmp_path / "cache")}
    argv = [sys.executable, "-m", "forensics", "analyze", str(CRASH), "--format", "json", "-o", str(target)]
    both = [subprocess.Popen(argv, env=env) for _ in range(3)]
    assert [p.wait() for p in both] == [1, 1, 1]
    assert json.loads(target.read_text())["launches"]
