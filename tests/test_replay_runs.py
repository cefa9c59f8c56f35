"""Whole replays with the stand-in server: every verdict, the ladder, the smallest set, resume, limits, Ctrl-C over ssh."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from replay_kit import FORENSICS, QUICK, command, journal, replay, running, starts, verdict

FIX = ("--fix", "set --dtype=bfloat16")


@pytest.mark.parametrize(
    ("word", "before", "after", "control"),
    [
        ("fixed", "nan", "", True),
        ("fixed", "silent", "", True),
        ("passes", "nan", "", False),
        ("not-reproduced", "", "", True),
        ("still-failing", "nan", "nan", True),
        ("still-failing", "silent", "silent", True),
        ("different-failure", "nan", "oom", True),
        ("different-failure", "nan", "load", True),
        ("inconclusive", "nan", "hang", True),
        ("inconclusive", "hang", "", True),
    ],
)
def test_each_verdict(tmp_path, word, before, after, control):
    """`before` and `after` are how the unchanged and the changed command fail; empty: they work."""
    needs = "dtype=never" if before else ""
    launch = command(
        tmp_path, "--dtype float16", needs=needs, fails=before or "nan", env="FAKE_FAILS_bfloat16=" + (after or "no")
    )
    limits = ("--limit", "load=3") if "hang" in (before, after) else ()
    done = replay(tmp_path, "--launch", launch, *FIX, *(("--control",) if control else ()), *limits, "--yes")
    assert verdict(done) == word, done.stdout + done.stderr
    assert done.returncode == (0 if word in ("fixed", "passes") else 1)
    assert journal(tmp_path)["verdict"] == word
    count = 1 if not control or word == "not-reproduced" or before == "hang" else 2
    assert len(starts(tmp_path)) == count
    assert running(tmp_path) == []
    said = {
        "different-failure": "fixed.log",
        "fixed": "the unchanged command failed here",
        "passes": "no control was run",
        "not-reproduced": "nothing is proved about the fix",
        "inconclusive": "stage load for more than 3 s",
    }
    assert said.get(word, "") in done.stdout


def test_a_silent_failure_names_the_check_that_failed(tmp_path):
    launch = command(tmp_path, "--dtype float16", needs="dtype=never", fails="silent")
    done = replay(tmp_path, "--launch", launch, *FIX, "--yes")
    assert verdict(done) == "still-failing"
    assert "failed: no answer is one repeated token (12 of 12 repeat one token)" in done.stdout


def test_the_smallest_set_is_found_each_step_is_journalled_and_a_resumed_run_repeats_nothing(tmp_path):
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16")
    fixes = ("--max-running-requests=4", "--dtype=bfloat16", "--disable-cuda-graph")
    args = [x for fix in fixes for x in ("--fix", fix)]
    done = replay(tmp_path, "--launch", launch, *args, "--control", "--minimise", "--yes")
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert "the smallest set that still works: set --dtype=bfloat16" in done.stdout
    assert "with: set --dtype=bfloat16\n" in done.stdout
    found = journal(tmp_path)
    assert found["applied"] == ["set --dtype=bfloat16"]
    assert found["steps"][found["step"]]["command"].endswith("--dtype bfloat16")
    begun = starts(tmp_path)
    assert len(begun) == len(set(begun)) == len(found["steps"]), "one launch for each step, none twice"
    (run,) = (tmp_path / "runs").iterdir()
    again = replay(tmp_path, "--resume", str(run), "--yes")
    assert verdict(again) == "fixed" and starts(tmp_path) == begun
    # an interrupted one: the last step never ended
    left = {name: step for name, step in found["steps"].items() if name != found["step"]}
    (run / "run.json").write_text(json.dumps({**found, "steps": left}))
    again = replay(tmp_path, "--resume", str(run), "--yes")
    assert verdict(again) == "fixed" and len(starts(tmp_path)) == len(begun) + 1, "only the step that never ended"
    assert journal(tmp_path)["applied"] == ["set --dtype=bfloat16"]


def test_two_changes_that_are_both_needed_stay_together(tmp_path):
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16 NCCL_DEBUG=INFO")
    args = ("--fix", "--dtype=bfloat16", "--fix", "--disable-cuda-graph", "--fix", "NCCL_DEBUG=INFO")
    done = replay(tmp_path, "--launch", launch, *args, "--minimise", "--yes")
    assert verdict(done) == "passes", done.stdout + done.stderr
    assert journal(tmp_path)["applied"] == ["set --dtype=bfloat16", "set NCCL_DEBUG=INFO"]


def test_the_budget_ends_the_search_and_says_so(tmp_path):
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16")
    args = ("--fix", "--dtype=bfloat16", "--fix", "--disable-cuda-graph", "--minimise", "--budget", "0s")
    done = replay(tmp_path, "--launch", launch, *args, "--yes")
    assert verdict(done) == "passes"
    assert (
        "the smallest set that was found in the budget: set --dtype=bfloat16, set --disable-cuda-graph" in done.stdout
    )


def test_a_run_that_was_killed_is_resumed_by_its_folder_alone(tmp_path):
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16", env="FAKE_SHARD_S=1")
    words = [
        *FORENSICS,
        "replay",
        "--launch",
        launch,
        *FIX,
        "--control",
        "--yes",
        "--runs",
        "runs",
        "--db",
        "h.db",
        *QUICK,
    ]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(starts(tmp_path)) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    process.kill()
    process.wait()
    (run,) = (tmp_path / "runs").iterdir()
    done = subprocess.run(
        [*FORENSICS, "replay", "--resume", str(run), "--yes"], cwd=tmp_path, capture_output=True, text=True
    )
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert [line.split()[-1] for line in starts(tmp_path)] == ["float16", "bfloat16", "bfloat16"], (
        "the control is not repeated"
    )
    assert running(tmp_path) == []


def test_a_folder_that_is_no_run_and_a_lost_request_are_told(tmp_path):
    done = replay(tmp_path, "--resume", str(tmp_path), "--yes")
    assert done.returncode == 2 and "is no run folder" in done.stderr
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "run.json").write_text("{}")
    done = replay(tmp_path, "--resume", "r", "--yes")
    assert done.returncode == 2 and "repeat the whole command line" in done.stderr


def failing_log(folder: Path) -> Path:
    """The log of a launch that died of NaN."""
    launch = command(folder, "--dtype float16", needs="dtype=bfloat16")
    replay(folder, "--launch", launch, *FIX, "--control", "--yes")
    (run,) = (folder / "runs").iterdir()
    log = folder / "server.log"
    shutil.copyfile(run / "control.log", log)
    shutil.rmtree(folder / "runs")
    (folder / "history.db").unlink()
    (folder / "starts").unlink()
    return log


def finding(folder: Path, name: str, fix: str, must: str = "nan-probabilities") -> None:
    path = folder / "kb" / "findings" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'---\nid: {name}\ntitle: {name}\ncategory: runtime\nstatus: suspected\nversions: ""\nsources: []\n'
        f"grounds:\n  must: [{must}]\n  decisive: [{must}]\nexplains: [{must}]\nfix:\n{fix}"
        f"log_evidence: real\n---\n# {name}\n"
    )


def test_the_ladder_keeps_a_verdict_of_every_rung_and_two_steps_of_one_fix_are_one_change(tmp_path):
    log = failing_log(tmp_path)
    finding(
        tmp_path, "a-wrong-one", "  - {kind: flag, op: set, name: --max-running-requests, value: '4', runnable: true}\n"
    )
    finding(
        tmp_path, "b-right-one",
        "  - {kind: flag, op: set, name: --dtype, value: bfloat16, runnable: true}\n"
        "  - {kind: flag, op: set, name: --disable-cuda-graph, runnable: true, with_above: true}\n"
        "  - {kind: env, op: set, name: NCCL_DEBUG, value: INFO, runnable: true, with_above: true}\n",
    )  # fmt: skip
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16 disable_cuda_graph=True NCCL_DEBUG=INFO")
    done = replay(tmp_path, str(log), "--launch", launch, "--kb", "kb", "--ladder", "--control", "--yes", timeout=300)
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert "set --max-running-requests=4: still-failing" in done.stdout
    applied = ["set --dtype=bfloat16", "set --disable-cuda-graph", "set NCCL_DEBUG=INFO"]
    assert journal(tmp_path)["applied"] == applied
    listed = subprocess.run(
        [*FORENSICS, "history", "--db", "history.db", "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    rows = json.loads(listed.stdout)
    kept = {row["finding"]: row["outcome"] for row in rows["verdicts"]}
    assert kept["a-wrong-one"] == "still-failing" and kept["b-right-one"] == "fixed"
    assert {"control", "rung1"} <= {row["step"] for row in rows["attempts"]}
    assert any(row["path"].endswith("server.log") for row in rows["analyses"])


def test_the_budget_ends_a_ladder(tmp_path):
    log = failing_log(tmp_path)
    done = replay(
        tmp_path,
        str(log),
        "--launch",
        command(tmp_path, "--dtype float16", needs="dtype=x"),
        "--ladder",
        "--budget",
        "0s",
        "--yes",
    )
    assert verdict(done) == "inconclusive" and starts(tmp_path) == []


def test_another_replays_server_is_refused_before_anything_starts(tmp_path):
    other = subprocess.Popen(["sleep", "300"], env={**os.environ, "FORENSICS_REPLAY_ID": "forensics-other"})
    try:
        launch = command(tmp_path, "--dtype float16").replace(" --device cpu", "")
        done = replay(tmp_path, "--launch", launch, *FIX, "--yes")
    finally:
        other.kill()
        other.wait()
    assert done.returncode == 2
    assert "a server of another replay runs here (process " in done.stderr
    assert "--cleanup" in done.stderr and starts(tmp_path) == []


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = replay(tmp_path, "--launch", command(tmp_path, port=port), *FIX, "--yes")
    assert done.returncode == 2 and f"port: {port} on 127.0.0.1 is taken" in done.stderr and starts(tmp_path) == []
    assert verdict(done) == "inconclusive" and journal(tmp_path)["verdict"] == "inconclusive"


@pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="openssh-server is not installed")
@pytest.mark.parametrize("how", ["whole", "ctrl-c"])
def test_the_same_over_ssh(tmp_path, how):
    from sshd import Sshd

    (tmp_path / "keys").mkdir()
    fails = "nan" if how == "whole" else "hang"
    (tmp_path / "c.yaml").write_text("dtype: float16\n")
    launch = command(
        tmp_path, f"--config {tmp_path}/c.yaml", needs="dtype=bfloat16" if how == "whole" else "dtype=x", fails=fails
    )
    with Sshd(tmp_path / "keys") as sshd:
        where = ("--host", sshd.address, "--ssh-config", str(sshd.config))
        if how == "whole":
            done = replay(tmp_path, "--launch", launch, *FIX, "--control", "--yes", *where)
            assert verdict(done) == "fixed", done.stdout + done.stderr
            assert not (Path.home() / "runs").exists(), "the remote side writes below .cache alone"
            assert (tmp_path / "c.yaml").read_text() == "dtype: float16\n"
        else:
            words = [*FORENSICS, "replay", "--launch", launch, *FIX, "--yes", "--runs", "runs", "--db", "h.db", *where]
            process = subprocess.Popen(
                words, cwd=tmp_path, stdout=subprocess.DEVNULL,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip
            deadline = time.monotonic() + 60
            while not any("server_args" in p.read_text() for p in tmp_path.glob("runs/*/fixed.log")):
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) in (130, -2)
        deadline = time.monotonic() + 20
        while running(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert running(tmp_path) == []


def test_several_nodes_are_planned_and_printed_for_each_and_not_run(tmp_path):
    launch = command(tmp_path, "--nnodes 2 --node-rank 0 --dist-init-addr 10.0.0.1:5000 --tp 16 --dtype float16")
    done = replay(tmp_path, "--launch", launch, *FIX, "--yes")
    assert done.returncode == 0 and starts(tmp_path) == []
    assert "multi-node launches are planned, not run" in done.stdout
    nodes = re.findall(r"^node (\d):\n(.*)$", done.stdout, re.M)
    assert [n for n, _ in nodes] == ["0", "1"]
    assert all(f"--node-rank {n}" in text and "--dtype bfloat16" in text for n, text in nodes)
    assert "Verdict" not in done.stdout
    alone = replay(tmp_path, "--launch", launch.replace("--dist-init-addr 10.0.0.1:5000 ", ""), *FIX)
    assert "every node needs the same one" in alone.stdout
