"""Reading and diagnosing never touch the network, and start nothing that a log or a finding names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"

GUARDED = """
import sys
events = []

def watch(event, args):
    if event.startswith(("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostby")) \\
       or event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "urllib.Request", "http.client.connect",
                    "ftplib.connect", "smtplib.connect"):
        events.append((event, repr(args)[:200]))

sys.addaudithook(watch)
from forensics.cli.main import run
for argv in eval(sys.argv[1]):
    code = run(argv)
    assert code in (0, 1), (argv, code)
print("events", events, file=sys.stderr)
"""

READING = [
    ["analyze", str(CRASH), "-v"],
    ["analyze", str(CRASH), "--format", "json", "--processes", "2"],
    ["analyze", str(ROOT / "samples/cases/saga/session.log"), "--launch", "all", "--format", "sarif"],
    ["explain", f"{CRASH}:20"],
    ["events", str(CRASH)],
    ["series", str(CRASH)],
    ["coverage", str(CRASH)],
    ["kb", "search", "nan"],
    ["replay", str(ROOT / "samples/cases/saga/session.log")],
]


def test_no_socket_and_no_process_is_opened(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", GUARDED, repr(READING)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "events []" in done.stderr, done.stderr[-2000:]


def _can_unshare() -> bool:
    return (
        shutil.which("unshare") is not None
        and os.geteuid() == 0
        and subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not _can_unshare(), reason="needs root and unshare for a network namespace")
def test_the_report_is_the_same_without_any_network():
    argv = [sys.executable, "-m", "forensics", "analyze", str(CRASH), "--format", "json"]
    usual = subprocess.run(argv, capture_output=True, check=False)
    alone = subprocess.run(["unshare", "-n", *argv], capture_output=True, check=False)
    assert alone.returncode == usual.returncode == 1
    assert alone.stdout == usual.stdout


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_the_kernel_sees_no_connect():
    argv = [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=connect,sendto,bind,listen",
        sys.executable,
        "-m",
        "forensics",
        "analyze",
        str(CRASH),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    calls = [
        line
        for line in done.stderr.splitlines()
        if "connect(" in line or "sendto(" in line or "bind(" in line or "listen(" in line
    ]
    assert not calls
