"""`forensics watch` while a server lives and dies: what it says, when, and how often."""

import os
import subprocess
import sys

import pytest
from watch_kit import CRASH, HEALTHY, ROOT, Clock, watching

from forensics.knowledge.store import load
from forensics.schema.options import Options


@pytest.fixture(scope="module")
def knowledge():
    return load(Options())


def crashing(folder):
    """A log that ends just before the parent is told of the crash, and what comes after."""
    lines = CRASH.read_bytes().split(b"\n")
    sigquit = next(i for i, x in enumerate(lines) if b"eceived sigquit" in x or b"SIGQUIT received" in x)
    log = folder / "server.log"
    log.write_bytes(b"\n".join(lines[:sigquit]) + b"\n")
    return log, b"\n".join(lines[sigquit:])


def test_warns_while_the_server_lives_and_reports_at_its_death(tmp_path, knowledge):
    log, rest = crashing(tmp_path)
    clock, reports = Clock(), []
    loop, out = watching(log, knowledge, clock, reports)
    assert not loop.step()
    assert "first failure" not in out.getvalue(), "other ranks may still speak"
    clock.now += 3
    assert not loop.step(), "nothing has said that the server is over"
    assert "warning: first failure" in out.getvalue()
    with log.open("ab") as more:
        more.write(rest)
    clock.now += 60
    assert not loop.step()
    clock.now += 5
    assert loop.step()
    assert loop.finish() == 1
    assert reports[0].launches[-1].ended == "crashed"
    assert out.getvalue().count("warning: first failure") == 1


def test_a_failure_that_nothing_follows_is_a_death_after_the_longest_wait(tmp_path, knowledge):
    log, _ = crashing(tmp_path)
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


def test_text_of_another_program_is_told_once_and_is_bad_input(tmp_path, knowledge):
    log = tmp_path / "other.log"
    log.write_text("Listening on port 80\nGET / 200\n")
    clock, reports = Clock(), []
    loop, out = watching(log, knowledge, clock, reports)
    for more in range(4):
        assert not loop.step()
        clock.now += 30
        with log.open("a") as file:
            file.write(f"a quite different line {'abcd'[more]} of it\n")
    assert out.getvalue().count("no line of an sglang server so far") == 1
    assert loop.finish() == 2
    assert "no line of an sglang server was read" in out.getvalue() and len(reports) == 1


def test_a_server_that_only_began_is_no_other_program(tmp_path, knowledge):
    log = tmp_path / "server.log"
    log.write_bytes(b"\n".join(HEALTHY.read_bytes().split(b"\n")[:12]) + b"\n")
    loop, out = watching(log, knowledge, Clock(), [])
    loop.step()
    assert loop.finish() == 0 and "no line of an sglang server" not in out.getvalue()
