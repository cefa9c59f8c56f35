"""Faults in what runs long: `watch` on a full disk, `replay` killed at any moment or out of room, clocks set back."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from replay_kit import FORENSICS, QUICK, command, replay, running, starts

from forensics.history import History, Verdict

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"


def small_files(size: int):
    """Bounds every file that a process writes, as a full disk does."""

    def bound() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return bound


def test_watch_on_a_full_disk_tells_what_it_saw_and_leaves_the_old_report(tmp_path):
    target = tmp_path / "report.json"
    target.write_text('"old"')
    argv = [*FORENSICS, "watch", "-", "--format", "json", "-o", str(target), "--minimum", "0"]
    done = subprocess.run(
        argv,
        input=CRASH.read_bytes(),
        capture_output=True,
        preexec_fn=small_files(64),
        env={**os.environ, "FORENSICS_CACHE": "off"},
    )
    assert done.returncode == 2, done.stderr
    assert b"cannot write" in done.stdout + done.stderr and b"hint" in done.stdout + done.stderr
    assert b"Traceback" not in done.stderr
    assert target.read_text() == '"old"'
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_watch_whose_output_is_full_ends_with_a_message(tmp_path):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*FORENSICS, "watch", "-"], input=CRASH.read_bytes(), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2, done.stderr
    assert b"cannot write" in done.stderr and b"Traceback" not in done.stderr


def whole(folder: Path) -> None:
    """Every file of a run folder that is there is whole."""
    for path in (folder / "runs").rglob("*.json"):
        json.loads(path.read_text())


def gone(folder: Path, seconds: float = 30) -> bool:
    """Whether the stand-in servers end within some time."""
    until = time.monotonic() + seconds
    while running(folder) and time.monotonic() < until:
        time.sleep(0.1)
    return not running(folder)


MOMENTS = (
    lambda folder: (folder / "runs").exists(),
    lambda folder: any((folder / "runs").glob("*/run.json")),
    lambda folder: bool(starts(folder)),
    lambda folder: any(path.stat().st_size for path in (folder / "runs").glob("*/*.log")),
    lambda folder: any((folder / "runs").glob("*/*.report.json")),
)
"""What is there when a replay is killed, and again a moment later."""


def when(moment, folder: Path, process: subprocess.Popen, later: float) -> None:
    until = time.monotonic() + 90
    while not moment(folder) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(later)


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(len(MOMENTS)))
def test_replay_killed_at_any_moment_leaves_whole_files_and_no_server(moment, tmp_path):
    launch = command(tmp_path, "--tp 2 --dtype float16", needs="dtype=bfloat16")
    args = ["replay", "--launch", launch, "--fix", "--dtype=bfloat16", "--yes", "--runs", "runs", "--db", "history.db"]
    for later in (0.0, 0.3):
        process = subprocess.Popen(
            [*FORENSICS, *args, *QUICK], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        when(MOMENTS[moment], tmp_path, process, later)
        process.kill()
        process.wait()
        whole(tmp_path)
        if (tmp_path / "history.db").exists():
            history = History(tmp_path / "history.db")
            assert history.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
            history.close()
        assert gone(tmp_path), "a server outlived its replay"
    assert starts(tmp_path) or moment < 2, "no kill came late enough to meet a server"


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 200, 2000])
def test_replay_on_a_full_disk_ends_with_a_message_and_without_a_server(size, tmp_path):
    launch = command(tmp_path, "--tp 2 --dtype float16", needs="dtype=bfloat16")
    done = replay(
        tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--yes", preexec_fn=small_files(size),
        env={**os.environ, "FORENSICS_CACHE": "off"},
    )  # fmt: skip
    assert done.returncode in (1, 2), (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr and "bug in forensics" not in done.stderr, done.stderr
    whole(tmp_path)
    assert gone(tmp_path)


def test_a_history_keeps_its_order_when_the_clock_goes_backwards(tmp_path, monkeypatch):
    history = History(tmp_path / "h.db")
    for run, now in (("r1", 2_000_000.0), ("r2", 1_000_000.0), ("r3", 1_500_000.0)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        history.add_verdict(Verdict(run, "f", "fixed", ("--a=b",)))
    assert [v.run for v in history.verdicts()] in (["r1", "r2", "r3"], ["r3", "r2", "r1"])
    history.close()


def test_watch_does_not_mind_a_clock_that_is_set_back(tmp_path, monkeypatch):
    """Waiting goes by the monotonic clock: the one of the wall plays no part."""
    source = "import time\ntime.time = lambda: 0.0\nimport sys\nfrom forensics.cli.main import run\nsys.exit(run(sys.argv[1:]))\n"
    done = subprocess.run(
        [sys.executable, "-c", source, "watch", "-", "--minimum", "0"], input=CRASH.read_bytes(), capture_output=True
    )
    assert done.returncode == 1, done.stderr
    assert b"nan" in done.stdout.lower()
