"""The command `forensics watch`: pipes, files, signals, exit codes."""

import signal
import subprocess
import sys

import pytest
from watch_kit import CRASH, HEALTHY


def run(words, **more):
    return subprocess.run([sys.executable, "-m", "forensics", "watch", *words], capture_output=True, **more)


def test_a_crash_in_a_pipe():
    done = run(["-"], input=CRASH.read_bytes())
    assert done.returncode == 1
    plain = subprocess.run(
        [sys.executable, "-m", "forensics", "analyze", "-"], input=CRASH.read_bytes(), capture_output=True
    )
    assert done.stdout == plain.stdout, "the final report is the full one"


def test_a_clean_stop_in_a_pipe_and_passing_the_log_on():
    data = HEALTHY.read_bytes()
    done = run(["-", "--tee"], input=data)
    assert done.returncode == 0
    assert done.stdout == data
    assert b"no failure" in done.stderr


def test_ctrl_c_in_a_pipe_takes_the_last_words(tmp_path):
    """The server in front of the pipe ends after its own Ctrl-C; the report still comes, and the code is 130."""
    into = subprocess.Popen(
        [sys.executable, "-m", "forensics", "watch", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    lines = HEALTHY.read_bytes().split(b"\n")
    into.stdin.write(b"\n".join(lines[:-5]) + b"\n")
    into.stdin.flush()
    assert b"lines" in into.stderr.readline(), "it reads"
    into.send_signal(signal.SIGINT)
    out, err = into.communicate(b"\n".join(lines[-5:]))
    assert into.returncode == 130
    assert b"interrupted" in err and b"Launch" in out


def test_a_named_pipe_is_followed_like_standard_input():
    call = f"'{sys.executable}' -m forensics watch <(cat '{CRASH}')"
    done = subprocess.run(["bash", "-c", call], capture_output=True)
    assert done.returncode == 1
    assert b"a bug in" not in done.stderr and done.stdout


def test_nothing_in_the_pipe_is_bad_input():
    assert run(["-"], input=b"").returncode == 2


def test_a_dead_log_is_reported_at_once_and_written_to_a_file(tmp_path):
    log, report = tmp_path / "server.log", tmp_path / "report.json"
    log.write_bytes(CRASH.read_bytes())
    words = [str(log), "--minimum", "0", "--quiet-time", "0", "--format", "json", "-o", str(report)]
    done = run(words)
    assert done.returncode == 1, done.stderr
    assert b'"ended": "crashed"' in report.read_bytes()


def test_a_missing_log_is_bad_input(tmp_path):
    done = run([str(tmp_path / "none.log")])
    assert done.returncode == 2 and b"no such file" in done.stderr


@pytest.mark.parametrize("text", [b"hello\nthis is a poem\n", b"Listening on port 80\nGET / 200\n"])
def test_a_pipe_without_a_server_is_bad_input(text):
    done = run(["-"], input=text)
    assert done.returncode == 2
    assert b"no line of an sglang server was read: is this its log?" in done.stderr
