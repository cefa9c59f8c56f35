"""Replay against real sglang servers on CPU: a launch that really dies of NaN because of one option, and its fix."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import servers

from forensics.replay.base import base_command
from forensics.replay.dump import read_dump
from forensics.replay.host import Address, Host

pytestmark = pytest.mark.server
FORENSICS = [sys.executable, "-m", "forensics"]


def replay(cwd: Path, *args: str, timeout: float = 900) -> subprocess.CompletedProcess:
    command = [
        *FORENSICS,
        "replay",
        *args,
        "--runs",
        "runs",
        "--db",
        "history.db",
        "--requests",
        "12",
        "--tokens",
        "24",
    ]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=timeout)


def verdict(done: subprocess.CompletedProcess) -> str:
    found = re.search(r"^Verdict: (\S+)", done.stdout, re.M)
    assert found, done.stdout + done.stderr
    return found.group(1)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory, server_home):
    """The log of a real float16 crash, made by the first replay of this module, and the run folder it came from."""
    return {}


def test_a_real_nan_crash_is_diagnosed_and_its_fix_is_proved(tmp_path, launch, crashed):
    command = launch("--dtype float16")
    done = replay(tmp_path, "--launch", command, "--fix", "set --dtype=bfloat16", "--control", "--yes")
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert done.returncode == 0
    (run,) = (tmp_path / "runs").iterdir()
    journal = json.loads((run / "run.json").read_text())
    assert journal["verdict"] == "fixed" and journal["state"] == "idle"
    crashed["log"] = (run / "control.log").read_text()
    report = json.loads((run / "control.report.json").read_text())
    launch_info = report["launches"][-1]
    assert launch_info["hypotheses"][0]["finding"] == "fp16-overflow"
    assert launch_info["first_failure"]["stage"] in ("warmup", "prefill", "decode")
    fixed = json.loads((run / "fixed.report.json").read_text())
    assert fixed["launches"][-1]["first_failure"] is None
    assert servers() == []
    history = subprocess.run(
        [*FORENSICS, "history", "--db", "history.db"], cwd=tmp_path, capture_output=True, text=True
    )
    assert "fixed" in history.stdout and "--dtype=bfloat16" in history.stdout
    again = replay(
        tmp_path,
        "--launch",
        command,
        "--fix",
        "set --dtype=bfloat16",
        "--control",
        "--yes",
        "--resume",
        str(run),
        timeout=60,
    )
    assert verdict(again) == "fixed"
    assert (run / "control.log").read_text() == crashed["log"], "a finished step was repeated"
    drafted = subprocess.run(
        [*FORENSICS, "kb", "new", "--from-run", str(run), "--into", "kb"], cwd=tmp_path, capture_output=True, text=True
    )
    assert drafted.returncode == 0, drafted.stderr
    (finding,) = (tmp_path / "kb" / "findings").glob("*.md")
    assert "status: confirmed" in finding.read_text() and "value: bfloat16" in finding.read_text()


def test_the_diagnosis_alone_leads_to_the_fix_and_a_wrong_one_comes_first_on_the_ladder(tmp_path, launch, crashed):
    log = tmp_path / "server.log"
    log.write_text(crashed["log"])
    wrong = tmp_path / "kb" / "findings" / "too-many-running-requests.md"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(
        "---\nid: too-many-running-requests\ntitle: Too many requests run at once\ncategory: runtime\nstatus: suspected\n"
        'versions: ""\nsources: []\ngrounds:\n  must: [nan-logits-check]\n  decisive: [nan-logits-check]\nexplains: [nan-logits-check]\n'
        "fix:\n  - {kind: flag, op: set, name: --max-running-requests, value: '4', runnable: true}\n"
        "log_evidence: real\n---\n# Too many requests run at once\n"
    )
    done = replay(
        tmp_path, str(log), "--launch", launch("--dtype float16"), "--kb", "kb", "--ladder", "--budget", "10m", "--yes"
    )
    assert verdict(done) == "passes", done.stdout + done.stderr
    assert "--max-running-requests=4: still-failing" in done.stdout
    assert "dtype" in done.stdout.split("with:")[1]
    assert servers() == []


def test_a_wrong_fix_of_a_launch_script_is_still_failing(tmp_path, launch, crashed, server_home):
    log = tmp_path / "server.log"
    log.write_text(crashed["log"])
    env, _, server = launch("--dtype float16").partition(f"{server_home}/venv/bin/")
    (tmp_path / "run.sh").write_text(
        f"#!/bin/bash\nset -eo pipefail\nsource {server_home}/venv/bin/activate\nexport {env}\n"
        f"cd {tmp_path}\nnohup {server} \\\n    > server.log 2>&1 &\ntail -f server.log\n"
    )
    done = replay(tmp_path, str(log), "--launch-file", "run.sh", "--fix", "set --max-running-requests=4", "--yes")
    assert verdict(done) == "still-failing", done.stdout + done.stderr
    assert done.returncode == 1
    assert log.read_text() == crashed["log"], "the script's own redirection would have overwritten the log"
    assert servers() == []


def test_the_smallest_set_of_changes_in_a_config_file_is_found_and_a_resumed_run_repeats_nothing(tmp_path, launch):
    config = tmp_path / "server.yaml"
    config.write_text("# what we serve with\ndtype: float16   # half the memory\nschedule-conservativeness: 0.9\n")
    before = config.read_bytes()
    fixes = ("--fix", "--max-running-requests=8", "--fix", "--dtype=bfloat16")
    done = replay(tmp_path, "--launch", launch(f"--config {config}"), *fixes, "--minimise", "--yes")
    assert verdict(done) == "passes", done.stdout + done.stderr
    assert "the smallest set that still works: set --dtype=bfloat16" in done.stdout
    assert config.read_bytes() == before
    (run,) = (tmp_path / "runs").iterdir()
    journal = json.loads((run / "run.json").read_text())
    copy = (run / f"{journal['step']}.config.yaml").read_text()
    assert copy == before.decode().replace("float16", "bfloat16")
    assert {step["end"] for step in journal["steps"].values()} == {"answered", "died"}
    logs = {path.name: path.stat().st_mtime_ns for path in run.glob("*.log")}
    again = subprocess.run(
        [*FORENSICS, "replay", "--resume", str(run), "--yes"], cwd=tmp_path, capture_output=True, text=True
    )
    assert verdict(again) == "passes", again.stdout + again.stderr
    assert {path.name: path.stat().st_mtime_ns for path in run.glob("*.log")} == logs
    assert servers() == []


def test_a_port_in_use_is_refused_before_anything_starts(tmp_path, launch, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        done = replay(tmp_path, "--launch", launch("--dtype float16"), "--fix", "set --dtype=bfloat16", "--yes")
    assert done.returncode == 2
    assert f"port: {port} on 127.0.0.1 is taken" in done.stderr
    assert not list(tmp_path.glob("runs/*/*.log"))


def test_a_flag_that_this_version_does_not_have_is_refused(tmp_path, launch):
    done = replay(
        tmp_path, "--launch", launch(), "--fix", "set --dtype=float17", "--fix", "set --no-such-flag", "--yes"
    )
    assert done.returncode == 2
    assert "does not take 'float17'" in done.stderr and "has no --no-such-flag" in done.stderr


def test_a_scheduler_killed_from_outside_is_a_different_failure(tmp_path, launch, crashed, server_home):
    log = tmp_path / "server.log"
    log.write_text(crashed["log"])
    command = [
        *FORENSICS,
        "replay",
        str(log),
        "--launch",
        launch(f"--dtype float16 --crash-dump-folder {tmp_path}/dumps"),
        "--fix",
        "set --dtype=bfloat16",
        "--yes",
    ]
    command += ["--runs", "runs", "--db", "history.db", "--requests", "400", "--tokens", "400"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        wait_for(
            lambda: any("POST /v1/completions" in p.read_text() for p in tmp_path.glob("runs/*/fixed.log")), process
        )
        pids = subprocess.run(["pgrep", "-f", "sglang::scheduler"], capture_output=True, text=True).stdout.split()
        assert pids
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        out = process.communicate(timeout=200)[0]
    assert re.search(r"^Verdict: different-failure", out, re.M), out
    assert servers() == []
    # the server's own crash dump gives its command and its requests
    (dump,) = (tmp_path / "dumps").rglob("*.pkl")
    python = ["env", f"PYTHONPATH={server_home}/stub", "SGLANG_USE_CPU_ENGINE=1", f"{server_home}/venv/bin/python"]
    with Host(Address.parse("local")) as host:
        requests, command = read_dump(host, dump, python, trusted=True)
    assert requests and all(r["path"] == "/generate" and r["body"].keys() & {"text", "input_ids"} for r in requests)
    assert "--dtype bfloat16" in base_command(None, dumped=command).text


def test_nothing_is_left_after_kill_9_of_replay_itself(tmp_path, launch):
    command = [*FORENSICS, "replay", "--launch", launch(), "--fix", "set --dtype=bfloat16", "--yes", "--runs", "runs"]
    process = subprocess.Popen([*command, "--db", "history.db"], cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_for(lambda: any("server_args" in p.read_text() for p in tmp_path.glob("runs/*/fixed.log")), process)
    assert servers()
    process.kill()
    process.wait()
    done = subprocess.run(
        [*FORENSICS, "replay", "--cleanup", "--runs", "runs"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert servers() == []


def test_ctrl_c_ends_the_tree(tmp_path, launch):
    command = [*FORENSICS, "replay", "--launch", launch(), "--fix", "set --dtype=bfloat16", "--yes", "--runs", "runs"]
    process = subprocess.Popen(
        [*command, "--db", "history.db"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        # a test run in the background ignores SIGINT, and its children would, too
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: any("server_args" in p.read_text() for p in tmp_path.glob("runs/*/fixed.log")), process)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) in (130, -2)  # -2: the same for a shell, where Ctrl-C fell into an import
    assert servers() == []


def wait_for(condition, process: subprocess.Popen, seconds: float = 240) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "replay ended early"
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.2)


def test_a_remote_host_over_ssh_is_the_same_replay(tmp_path, launch, crashed):
    from sshd import Sshd

    log = tmp_path / "server.log"
    log.write_text(crashed["log"])
    keys = tmp_path / "keys"
    keys.mkdir()
    with Sshd(keys) as sshd:
        where = ("--host", sshd.address, "--ssh-config", str(sshd.config))
        done = replay(
            tmp_path, str(log), "--launch", launch("--dtype float16"), "--fix", "set --dtype=bfloat16", "--yes", *where
        )
    assert verdict(done) == "passes", done.stdout + done.stderr
    assert servers() == []
