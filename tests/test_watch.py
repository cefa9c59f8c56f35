"""`forensics watch`: follows, waits, warns, reports; bounded, and true to line numbers."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from forensics.errors import InputError
from forensics.knowledge.store import load
from forensics.schema.options import Options
from forensics.watch.digest import FIRST, MAX_BATCHES, MAX_FOR_GOOD, MAX_RECENT, MAX_SPARSE, Digest
from forensics.watch.follow import FileFollower, StreamFollower
from forensics.watch.intake import Intake
from forensics.watch.judge import judge_digest
from forensics.watch.loop import Plan, Watch
from forensics.watch.patience import CREDIT, SHARE, Patience, Waits
from forensics.watch.state import State, duration
from forensics.watch.voice import Voice

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"
HEALTHY = ROOT / "samples/healthy/gpu2-tp2_healthy/log.txt"
BATCH = (
    "[2026-05-02 10:00:{s:02d} TP0] Decode batch, #running-req: {n}, #token: 512, token usage: 0.25, "
    "cuda graph: True, gen throughput (token/s): 812.50, #queue-req: 3\n"
)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="module")
def knowledge():
    return load(Options())


def watching(path, knowledge, clock, reports, **plan):
    out = io.StringIO()
    follower = FileFollower(path)
    loop = Watch(
        follower, Options(), knowledge, Voice(out, 1e9), Plan(tick=0.0, **plan), reports.append, clock=clock
    )  # fmt: skip
    return loop, out


def run(words, **more):
    return subprocess.run([sys.executable, "-m", "forensics", "watch", *words], capture_output=True, **more)


# -- following ---------------------------------------------------------------------------------------------------


def test_a_growing_file_is_read_once(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    follower = FileFollower(log)
    assert follower.read(0) == b"one\n"
    assert follower.read(0) == b""
    with log.open("ab") as out:
        out.write(b"two\n")
    assert follower.read(0) == b"two\n"


def test_rotation_reads_the_old_file_to_its_end_and_then_the_new_one(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    follower = FileFollower(log)
    assert follower.read(0) == b"one\n"
    with log.open("ab") as out:
        out.write(b"two\n")
    os.rename(log, tmp_path / "server.log.1")
    log.write_bytes(b"three\n")
    got = b"".join(follower.read(0) for _ in range(4))
    assert got == b"two\nthree\n"
    assert any("rotated" in note for note in follower.notices())
    assert [s.pread(0, 99) for s in follower.sources()] == [b"one\ntwo\n", b"three\n"]


def test_a_rotated_file_without_successor_is_still_read(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"one\n")
    follower = FileFollower(log)
    follower.read(0)
    moved = tmp_path / "server.log.1"
    os.rename(log, moved)
    with moved.open("ab") as out:
        out.write(b"two\n")
    assert follower.read(0) == b"two\n"


def test_truncation_starts_at_the_top_again(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"a long first line\n")
    follower = FileFollower(log)
    follower.read(0)
    log.write_bytes(b"new\n")
    assert follower.read(0) == b"new\n"
    assert any("truncated" in note for note in follower.notices())
    assert follower.sources() is None


@pytest.mark.parametrize("content", [b"\x7fELF\x02\x01\x01" + bytes(200), b"\x1f\x8b\x08" + bytes(50)])
def test_what_is_no_live_text_log_is_refused(tmp_path, content):
    log = tmp_path / "server.log"
    log.write_bytes(content)
    with pytest.raises(InputError):
        FileFollower(log)


def test_a_missing_file_is_refused_or_waited_for(tmp_path):
    log = tmp_path / "server.log"
    with pytest.raises(InputError, match="no such file"):
        FileFollower(log)
    follower = FileFollower(log, wait_for_file=True)
    assert follower.read(0) == b""
    log.write_bytes(b"here\n")
    assert follower.read(0) == b"here\n"


def test_only_new_lines_on_request(tmp_path):
    log = tmp_path / "server.log"
    log.write_bytes(b"old\n")
    follower = FileFollower(log, only_new=True)
    assert follower.read(0) == b""
    with log.open("ab") as out:
        out.write(b"new\n")
    assert follower.read(0) == b"new\n"


def test_a_stream_beyond_its_bound_is_followed_without_being_kept():
    out, into = os.pipe()
    follower = StreamFollower(out, keep=8)
    os.write(into, b"12345678\n")
    assert follower.read(1) == b"12345678\n"
    assert follower.sources() is None
    os.close(into)
    assert follower.read(1) == b"" and follower.ended()
    os.close(out)


# -- waiting -----------------------------------------------------------------------------------------------------


def test_late_ranks_are_waited_for():
    patience = Patience(Waits(2, 2, 20))
    patience.trouble(100.0)
    assert not patience.due(101.0)
    patience.trouble(101.5)
    assert not patience.due(102.5), "minimum is over, but the second rank spoke a second ago"
    assert patience.due(103.5)


def test_a_flood_of_errors_is_not_waited_out():
    patience = Patience(Waits(2, 2, 20))
    for second in range(100, 121):
        patience.trouble(float(second))
    assert patience.due(120.0)


def test_judging_costs_a_bounded_share_in_the_long_run():
    """Trouble without end, and each judgement takes a second: what is judged stays within credit and share."""
    patience = Patience(Waits(0, 0, 0))
    judged = 0
    for second in range(10_000):
        patience.trouble(float(second))
        if patience.due(float(second)):
            patience.judged(float(second), cost=1.0)
            judged += 1
    assert judged <= CREDIT + SHARE * 10_000 + 1


def test_news_leaves_credit_for_trouble():
    patience = Patience(Waits(0, 0, 0))
    for _ in range(50):
        patience.news()
        if patience.due(100.0):
            patience.judged(100.0, cost=0.5)
            patience.rested_at = 0.0
    patience.trouble(100.0)
    assert patience.due(100.0)


# -- intake and digest -------------------------------------------------------------------------------------------


def test_pieces_give_the_same_lines_whatever_their_size():
    data = CRASH.read_bytes()
    found = []
    for size in (len(data), 1000, 77):
        intake = Intake(Digest())
        seen = []
        for start in range(0, len(data), size):
            seen += intake.feed(data[start : start + size]).seen
        seen += intake.feed(b"", final=True).seen
        found.append({(s.number, s.kind) for s in seen if s.kind in ("stage-mark", "server-args", "traceback-head")})
        assert intake.lines == data.count(b"\n") + (not data.endswith(b"\n"))
    assert found[0] == found[1] == found[2]


def test_the_digest_stays_bounded():
    digest = Digest()
    for number in range(60_000):
        digest.keep(number, b"line", number % 3_000)
        digest.keep_batch(100_000 + number, b"batch")
    assert len(digest) <= MAX_FOR_GOOD + MAX_RECENT + MAX_BATCHES + MAX_SPARSE
    digest.clear()
    assert len(digest) == 0


def test_first_and_last_lines_of_a_shape_stay():
    digest = Digest()
    for number in range(1, 50_001):
        digest.keep(number, b"line %d" % number, 1)
    source, numbers = digest.source("x")
    assert numbers[:FIRST].tolist() == list(range(1, FIRST + 1))
    assert numbers[-1] == 50_000
    assert source.pread(0, 7) == b"line 1\n"


def test_early_reports_name_the_lines_of_the_whole_log(knowledge):
    """Thousands of batch lines between start-up and failure are not in the digest; line numbers count them."""
    lines = CRASH.read_bytes().split(b"\n")
    at = next(i for i, x in enumerate(lines) if b"fired up" in x) + 1
    flood = "".join(BATCH.format(s=n % 60, n=n % 50) for n in range(5000)).encode().split(b"\n")[:-1]
    digest = Digest()
    Intake(digest).feed(b"\n".join([*lines[:at], *flood, *lines[at:]]))
    assert len(digest) < 1000
    found = judge_digest("live.log", digest, Options(), knowledge)
    launch = found.launches[-1]
    assert launch.ended == "crashed"
    assert launch.first_failure.where.line == 5000 + 1 + next(i for i, x in enumerate(lines) if b"Assertion" in x)
    assert launch.first_failure.where.path == "live.log"


# -- state -------------------------------------------------------------------------------------------------------


def test_the_state_line_tells_stage_ranks_and_load():
    state = State()
    intake = Intake(Digest())
    state.take(intake.feed(HEALTHY.read_bytes()))
    state.take(intake.feed(BATCH.format(s=5, n=7).encode()))
    text = state.line(0.0)
    assert text.startswith("serving") and "ranks 2" in text
    assert "running 7, queued 3, tokens 25%" in text
    assert "silent" in state.line(75.0)


def test_progress_moves_on_finished_and_unfinished_lines():
    state, intake = State(), Intake(Digest())
    bar = "Loading safetensors checkpoint shards: {}% Completed | {}/4 [00:01<00:03,  1.0s/it]"
    for done in (25, 50):
        state.take(intake.feed(f"{bar.format(done, done // 25)}\n".encode()))
        assert state.line(0).startswith(f"load {done}%")
    state.take(intake.feed(f"\r{bar.format(75, 3)}".encode()))
    state.glimpse(intake.unfinished())
    assert state.line(0).startswith("load 75%")


def test_a_hostile_rank_name_does_not_reach_the_terminal():
    state = State()
    state.load = "\x1b[31mred"
    assert "\x1b" not in state.line(0)


def test_durations():
    assert [duration(x) for x in (45, 300, 11_100)] == ["45s", "5min", "3h 05min"]


# -- the loop ----------------------------------------------------------------------------------------------------


def test_warns_while_the_server_lives_and_reports_at_its_death(tmp_path, knowledge):
    lines = CRASH.read_bytes().split(b"\n")
    sigquit = next(i for i, x in enumerate(lines) if b"eceived sigquit" in x or b"SIGQUIT received" in x)
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join(lines[:sigquit]) + b"\n")
    clock, reports = Clock(), []
    loop, out = watching(log, knowledge, clock, reports)
    assert not loop.step()
    assert "first failure" not in out.getvalue(), "other ranks may still speak"
    clock.now += 3
    assert not loop.step(), "nothing has said that the server is over"
    assert "warning: first failure" in out.getvalue()
    with log.open("ab") as more:
        more.write(b"\n".join(lines[sigquit:]))
    clock.now += 60
    assert not loop.step()
    clock.now += 5
    assert loop.step()
    assert loop.finish() == 1
    assert reports[0].launches[-1].ended == "crashed"
    assert out.getvalue().count("warning: first failure") == 1


def test_a_failure_that_nothing_follows_is_a_death_after_the_longest_wait(tmp_path, knowledge):
    lines = CRASH.read_bytes().split(b"\n")
    sigquit = next(i for i, x in enumerate(lines) if b"eceived sigquit" in x or b"SIGQUIT received" in x)
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join(lines[:sigquit]) + b"\n")
    clock, reports = Clock(), []
    loop, _ = watching(log, knowledge, clock, reports)
    loop.step()
    clock.now += 3
    assert not loop.step()
    clock.now += 25
    assert loop.step()


def test_a_known_risk_is_told_before_anything_fails(tmp_path, knowledge):
    log = tmp_path / "server.log"
    log.write_bytes((ROOT / "samples/cases/a-glm5-nvfp4-sm120-deepgemm-nan/log.txt").read_bytes())
    clock = Clock()
    loop, out = watching(log, knowledge, clock, [])
    loop.step()
    clock.now += 3
    assert not loop.step()
    assert "warning: risk: " in out.getvalue() and f"({log}:" in out.getvalue()


def test_after_rotation_lines_count_from_one(tmp_path, knowledge):
    lines = CRASH.read_bytes().split(b"\n")
    at = next(i for i, x in enumerate(lines) if b"fired up" in x) + 1
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join(lines[:at]) + b"\n")
    clock, reports = Clock(), []
    loop, out = watching(log, knowledge, clock, reports)
    assert not loop.step()
    clock.now += 3
    assert not loop.step()
    os.rename(log, tmp_path / "server.log.1")
    log.write_bytes(b"\n".join(lines[at:]))
    clock.now += 60
    assert not any(loop.step() for _ in range(3))
    clock.now += 5
    assert loop.step()
    assert f"({log}:1)" in out.getvalue()
    assert loop.finish() == 1
    first = reports[0].launches[-1].first_failure
    assert (first.where.path, first.where.line) == (str(log), 1)


def test_silence_is_told_once_per_doubling(tmp_path, knowledge):
    log = tmp_path / "server.log"
    log.write_bytes(HEALTHY.read_bytes().split(b"Capture")[0])
    clock = Clock()
    loop, out = watching(log, knowledge, clock, [])
    loop.step()
    for _ in range(20):
        clock.now += 60
        assert not loop.step()
    assert out.getvalue().count("warning: no line for") == 4


def test_silence_names_the_rank_that_is_behind(tmp_path, knowledge):
    lines = HEALTHY.read_bytes().split(b"\n")
    at = next(i for i, x in enumerate(lines) if b"Load weight begin" in x and b"TP1" in x)
    kept = [x for i, x in enumerate(lines) if i <= at or (i < at + 200 and b" TP0]" in x)]
    stop = next(i for i, x in enumerate(kept) if b"Memory pool end" in x) + 1
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join(kept[:stop]) + b"\n")
    clock = Clock()
    loop, out = watching(log, knowledge, clock, [])
    loop.step()
    clock.now += 3
    loop.step()
    clock.now += 200
    loop.step()
    assert "no line for 3min (kv-pool); TP1 still in load" in out.getvalue()


def test_the_end_of_the_process_is_the_end_of_the_watch(tmp_path, knowledge):
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    log = tmp_path / "server.log"
    log.write_bytes(b"[2026-05-02 10:00:00 TP0] Load weight begin. avail mem=70.11 GB\n")
    reports = []
    loop, _ = watching(log, knowledge, Clock(), reports, pid=child.pid)
    assert not loop.step()
    assert loop.step()
    loop.finish()
    assert len(reports) == 1


# -- the command -------------------------------------------------------------------------------------------------


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
