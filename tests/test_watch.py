"""The parts of `forensics watch`: following, patience, digest, state line; bounded, and true to line numbers."""

import os

import pytest
from watch_kit import CRASH, HEALTHY

from forensics.errors import InputError
from forensics.knowledge.store import load
from forensics.schema.options import Options
from forensics.watch.digest import FIRST, MAX_BATCHES, MAX_FOR_GOOD, MAX_RECENT, MAX_SPARSE, Digest
from forensics.watch.follow import FileFollower, StreamFollower
from forensics.watch.intake import Intake
from forensics.watch.judge import judge_digest
from forensics.watch.patience import CREDIT, SHARE, Patience, Waits
from forensics.watch.state import State, duration

BATCH = (
    "[2026-05-02 10:00:{s:02d} TP0] Decode batch, #running-req: {n}, #token: 512, token usage: 0.25, "
    "cuda graph: True, gen throughput (token/s): 812.50, #queue-req: 3\n"
)


@pytest.fixture(scope="module")
def knowledge():
    return load(Options())


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
