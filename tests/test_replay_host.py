"""The agent on this machine and behind a real sshd: start, follow, stop, and nothing left in any way out."""

import ast
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sshd import Sshd

from forensics.errors import ReplayError
from forensics.replay.agent import marked
from forensics.replay.folder import RunFolder, unfinished
from forensics.replay.host import Address, Host
from forensics.replay.session import clean_up

SCRIPT = "echo started; setsid sleep 300 & sleep 300"
needs_sshd = pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="openssh-server is not installed")


@pytest.fixture(params=["local", pytest.param("ssh", marks=needs_sshd)])
def host(request, tmp_path):
    if request.param == "local":
        with Host(Address.parse("local")) as opened:
            yield opened
    else:
        with Sshd(tmp_path) as sshd, Host(Address.parse(sshd.address), ("-F", str(sshd.config))) as opened:
            yield opened


def start(host: Host, tmp_path: Path, mark: str, script: str = SCRIPT) -> str:
    log = str(tmp_path / "logs" / "server.log")
    host.ask("start", argv=["bash", "-c", script], log=log, mark=mark)
    return log


def gone(mark: str, seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.1)
    return not marked(mark)


def test_the_whole_tree_is_ended_even_what_left_its_session(host, tmp_path):
    mark = f"t-{os.getpid()}-{host.address.host}"
    log = start(host, tmp_path, mark)
    until = time.monotonic() + 30
    while len(marked(mark)) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(marked(mark)) >= 3
    data, alive = b"", True
    while not data and time.monotonic() < until:
        data, alive, _ = host.read_log(log, 0)
    assert data == b"started\n" and alive
    assert host.ask("stop", grace=1)["left"] == []
    assert gone(mark)


def test_leaving_the_host_ends_the_server(host, tmp_path):
    mark = f"u-{os.getpid()}-{host.address.host}"
    start(host, tmp_path, mark)
    host.close()
    assert gone(mark)


def test_a_lost_connection_ends_the_server_by_itself(host, tmp_path):
    mark = f"v-{os.getpid()}-{host.address.host}"
    start(host, tmp_path, mark)
    host.process.send_signal(signal.SIGKILL)
    if host.address.host == "local":
        # the agent itself is gone: what it started is found by its mark
        with Host(Address.parse("local")) as other:
            assert other.ask("kill_marked", mark=mark)["left"] == []
    assert gone(mark)
    with pytest.raises(ReplayError, match="connection"):
        host.ask("hello")


def test_a_controller_that_falls_silent_ends_the_server(tmp_path):
    """The lease: the connection stands, but no word comes over it."""
    mark = f"z-{os.getpid()}"
    agent = Path(sys.modules[Host.__module__].__file__).with_name("agent.py")
    process = subprocess.Popen([sys.executable, agent, "5"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        request = {"id": 1, "op": "start", "argv": ["sleep", "300"], "log": str(tmp_path / "x.log"), "mark": mark}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["ok"]
        until = time.monotonic() + 4
        while not marked(mark) and time.monotonic() < until:  # a process shows its variables once it has begun
            time.sleep(0.05)
        assert marked(mark)
        assert process.wait(60) == 0 and not marked(mark)
    finally:
        process.kill()


def test_a_question_that_takes_longer_than_the_lease_is_answered(monkeypatch):
    monkeypatch.setattr("forensics.replay.host.LEASE_S", 1.0)
    monkeypatch.setattr("forensics.replay.host._BEAT_S", 0.2)
    with Host(Address.parse("local")) as host:
        assert host.ask("ask", argv=["bash", "-c", "sleep 3; echo yes"])["out"] == "yes\n"
        assert host.ask("ask", argv=["sleep", "300"], timeout=1)["code"] == 124
        assert host.ask("hello")["ok"]


def test_a_question_that_nobody_waits_for_any_more_ends(tmp_path):
    mark = f"q-{os.getpid()}"
    host = Host(Address.parse("local"))
    request = {"id": 1, "op": "ask", "argv": ["sleep", "300"], "env": {"FORENSICS_REPLAY_ID": mark}}
    host.process.stdin.write(json.dumps(request).encode() + b"\n")
    host.process.stdin.flush()
    until = time.monotonic() + 20
    while not marked(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert marked(mark)
    host.close()
    assert gone(mark)


def test_the_agent_is_python_3_8_and_the_standard_library_alone():
    source = Path(sys.modules[Host.__module__].__file__).with_name("agent.py").read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    modules = {a.name.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    modules |= {n.module.partition(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert modules <= sys.stdlib_module_names
    newer = {"removeprefix", "removesuffix", "pairwise", "add_note", "is_relative_to", "zip_strict"}
    assert not newer & {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}


def test_answers_to_requests_that_ctrl_c_cut_off_are_passed_over(tmp_path):
    with Host(Address.parse("local")) as host:
        host.process.stdin.write(b'{"id": 77, "op": "hello"}\n')
        host.process.stdin.flush()
        assert host.ask("exists", path=str(tmp_path))["exists"] is True


def test_only_marked_processes_are_touched(host, tmp_path):
    bystander = subprocess.Popen(["sleep", "300"])
    try:
        start(host, tmp_path, f"w-{os.getpid()}")
        host.ask("stop", grace=1)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_second_server_is_refused(host, tmp_path):
    start(host, tmp_path, f"x-{os.getpid()}")
    with pytest.raises(ReplayError, match="already running"):
        start(host, tmp_path, f"x-{os.getpid()}")


def test_the_agent_runs_under_python_3_8():
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [*sorted(pyenv.glob("3.8*/bin/python")), *filter(None, [shutil.which("python3.8")])]
    if not found:
        pytest.skip("no Python 3.8 on this machine")
    old = found[0]
    agent = Path(sys.modules[Host.__module__].__file__).with_name("agent.py")
    done = subprocess.run([old, agent], input=b'{"id":1,"op":"hello"}\n', capture_output=True, timeout=30)
    assert b'"ok": true' in done.stdout, done.stderr


def test_cleanup_ends_what_a_dead_replay_left(tmp_path):
    folder = RunFolder.create(tmp_path / "runs")
    folder.write({"state": "running", "mark": folder.mark})
    orphan = subprocess.Popen(
        ["sleep", "300"], env={**os.environ, "FORENSICS_REPLAY_ID": folder.mark}, start_new_session=True
    )
    assert [f.path for f in unfinished(tmp_path / "runs")] == [folder.path]
    with Host(Address.parse("local")) as host:
        assert clean_up(host, folder) == []
    assert orphan.wait(5) in (-15, -9)
    assert unfinished(tmp_path / "runs") == []


@pytest.mark.parametrize(
    "text", ["", "blackwell", "ssh://", "ssh://-oProxyCommand=x", "ftp://h", "ssh://h:x", "ssh://h/p"]
)
def test_what_is_no_host_is_refused(text):
    with pytest.raises(ReplayError):
        Address.parse(text)
