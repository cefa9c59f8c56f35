"""sglang's own crash dump is a pickle: refused unless trusted, then read in a process of its own."""

import json
import os
import pickle
import sys

import pytest
from replay_kit import FAKE, command, replay, verdict

from forensics.errors import ReplayError
from forensics.replay.dump import read_dump
from forensics.replay.host import Address, Host


@pytest.fixture
def dump(tmp_path):
    path = tmp_path / "crash_dump.pkl"
    requests = [
        ({"text": "a prompt", "sampling_params": {"max_new_tokens": 8}}, {}, 1.0, 2.0),
        ({"input_ids": [1, 2]}, {}, 1, 2),
    ]
    data = {"server_args": {}, "requests": requests, "launch_command": "python -m sglang.launch_server --tp 8"}
    path.write_bytes(pickle.dumps(data))
    return path


def test_an_untrusted_dump_is_never_opened(dump):
    with Host(Address.parse("local")) as host, pytest.raises(ReplayError, match="pickle"):
        read_dump(host, dump, [sys.executable], trusted=False)


def test_a_trusted_dump_gives_requests_and_the_launch_command(dump):
    with Host(Address.parse("local")) as host:
        requests, command = read_dump(host, dump, [sys.executable], trusted=True)
    assert command == "python -m sglang.launch_server --tp 8"
    assert [r["body"].get("text") or r["body"]["input_ids"] for r in requests] == ["a prompt", [1, 2]]
    assert all(r["path"] == "/generate" and r["method"] == "POST" for r in requests)


class Bomb:
    """A pickle that writes a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_a_dump_runs_its_code_only_when_trusted_and_then_in_another_process(tmp_path):
    trap = tmp_path / "ran"
    path = tmp_path / "bomb.pkl"
    path.write_bytes(pickle.dumps({"requests": [], "launch_command": "x", "trap": Bomb(trap)}))
    args = ("--crash-dump", str(path), "--fix", "--dtype=bfloat16")
    done = replay(tmp_path, *args)
    assert done.returncode == 2 and "reading one can run any code" in done.stderr and "--trust-dump" in done.stderr
    assert not trap.exists()
    pids = tmp_path / "pids"
    wrapper = tmp_path / "python3"
    wrapper.write_text(f'#!/bin/sh\necho $$ >> {pids}\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    with Host(Address.parse("local")) as host:
        assert read_dump(host, path, [str(wrapper)], trusted=True) == ([], "x")
        assert trap.exists() and int(pids.read_text()) not in (os.getpid(), host.about["pid"])


def test_a_crash_dump_gives_the_command_and_the_requests_of_a_whole_replay(tmp_path):
    launch = command(tmp_path, "--dtype float16")
    words = launch.partition("-m sglang.launch_server ")[2]
    rows = [
        ({"text": f"what crashed it, {n}", "sampling_params": {"max_new_tokens": 8}}, {}, 1.0, 2.0) for n in range(3)
    ]
    path = tmp_path / "crash_dump.pkl"
    path.write_bytes(pickle.dumps({"requests": rows, "launch_command": f"/opt/v/sglang/launch_server.py {words}"}))
    env = {**os.environ, "PYTHONPATH": str(FAKE), "FAKE_STARTS": str(tmp_path / "starts")}
    args = ("--crash-dump", str(path), "--trust-dump", "--python", sys.executable, "--fix", "--dtype=bfloat16", "--yes")
    done = replay(tmp_path, *args, env=env)
    assert verdict(done) == "passes", done.stdout + done.stderr
    assert "Base command: the crash dump's launch_command" in done.stdout
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "fixed.log").read_text().count("POST /generate") == 6
    kept = json.loads((run / "requests.json").read_text())["recorded"]
    assert [r["body"] for r in kept] == [{"text": "[masked]", "sampling_params": {"max_new_tokens": 8}}] * 3


def test_recorded_requests_are_the_load(tmp_path):
    path = tmp_path / "requests.jsonl"
    path.write_text(
        '{"prompt": "one", "max_tokens": 8}\n{"messages": [{"role": "user", "content": "two"}]}\n'
        '{"path": "/generate", "body": {"text": "three"}}\n'
    )
    launch = command(tmp_path, "--dtype float16")
    done = replay(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--requests-file", str(path), "--yes")
    assert verdict(done) == "passes", done.stdout + done.stderr
    (run,) = (tmp_path / "runs").iterdir()
    log = (run / "fixed.log").read_text()
    assert log.count("POST /generate") == 2 and log.count("POST /v1/chat/completions") == 2
    path.write_text('{"prompt": "one"}\nnot json\n')
    done = replay(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--requests-file", str(path), "--yes")
    assert (
        done.returncode == 2 and "requests.jsonl:2: not JSON" in done.stderr and "one JSON object a line" in done.stderr
    )


def test_what_is_no_dump_is_an_error_with_a_way_out(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(b"not a pickle")
    with Host(Address.parse("local")) as host, pytest.raises(ReplayError, match="cannot be read"):
        read_dump(host, path, [sys.executable], trusted=True)
