"""Progress: a moving line with rich on a terminal, plain lines elsewhere; ranks that are ready, and time left by shards."""

import os
import pty
import re
import subprocess

from replay_kit import FORENSICS, QUICK, command, replay
from rich.console import Console

from forensics.replay.live import State
from forensics.replay.progress import Follower, Pace


def state(stage: str, progress: str = "", ranks: tuple[int, int] = (0, 0)) -> State:
    return State(stage, stage == "serving", ranks, progress, False, None)


def test_time_left_follows_the_pace_of_the_shards():
    now = [100.0]
    pace = Pace(lambda: now[0])
    assert pace.left("fixed", state("load", "load 20 %")) is None, "nothing is known from one look"
    now[0] = 130.0
    assert pace.left("fixed", state("load", "load 50 %")) == 50.0
    assert pace.left("fixed", state("load", "load 100 %")) is None
    assert pace.left("fixed", state("warmup", "load 60 %")) is None
    assert pace.left("control", state("load", "load 60 %")) is None, "each launch has a pace of its own"


def lines(*states: State) -> list[str]:
    console = Console(record=True, file=open(os.devnull, "w"), width=60)
    now = [0.0]
    follower = Follower(console, Pace(lambda: now[0]))
    with follower.shown():
        for one in states:
            follower.tell("fixed", one)
            now[0] += 10
    return console.export_text().splitlines()


def test_plain_lines_say_stage_ranks_and_time_left_once_for_each_change():
    assert lines(
        state("starting"),
        state("init", ranks=(3, 8)),
        state("init", ranks=(3, 8)),
        state("load", "load 25 %", (8, 8)),
        state("load", "load 50 %", (8, 8)),
        state("serving", "load 100 %", (8, 8)),
    ) == [
        "fixed: starting",
        "fixed: init, 3 of 8 ranks",
        "fixed: load (load 25 %), 8 of 8 ranks",
        "fixed: load (load 50 %), 8 of 8 ranks, about 20 s left",
        "fixed: serving, 8 of 8 ranks",
    ]


def test_the_log_cannot_move_the_terminal():
    assert lines(state("load", "load 5 % \x1b[2J")) == ["fixed: load (load 5 % ␛[2J)"]


def on_terminal(folder, *args: str, answer: bytes = b"") -> str:
    """What `forensics replay` draws on a terminal of 100 columns."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    env.pop("NO_COLOR", None)
    words = [*FORENSICS, "replay", *args, "--runs", "runs", "--db", "h.db", *QUICK]
    process = subprocess.Popen(words, cwd=folder, env=env, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    os.write(leader, answer)
    drawn = b""
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:
            break
        if not data:
            break
        drawn += data
    process.wait(60)
    os.close(leader)
    return drawn.decode("utf-8", "replace")


def test_on_a_terminal_the_line_moves_and_is_gone_at_the_end(tmp_path):
    launch = command(tmp_path, "--tp 2 --dtype float16", needs="dtype=bfloat16", env="FAKE_SHARD_S=2")
    drawn = on_terminal(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--yes")
    assert "\x1b[" in drawn and "fixed: load" in drawn
    assert re.search(r"2 of 2 ranks", drawn) and re.search(r"about \d+ s left", drawn)
    assert re.search(r"Verdict: passes", drawn)


def test_a_terminal_is_asked_and_anything_but_yes_starts_nothing(tmp_path):
    launch = command(tmp_path, "--dtype float16")
    drawn = on_terminal(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", answer=b"n\n")
    assert "Start it now? [y/N]" in drawn and "dry run: nothing was started" in drawn
    assert not (tmp_path / "runs").exists() and not (tmp_path / "starts").exists()
    drawn = on_terminal(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", answer=b"y\n")
    assert "Verdict: passes" in drawn


def test_a_dry_run_is_coloured_on_a_terminal_only(tmp_path):
    args = ("--launch", command(tmp_path, "--dtype float16"), "--fix", "--dtype=bfloat16")
    drawn = on_terminal(tmp_path, *args, answer=b"\n")
    assert "\x1b[1;32m+bfloat16+" in drawn and "\x1b[31m-float16-" in drawn
    plain = replay(tmp_path, *args)
    assert "\x1b" not in plain.stdout and "-float16- +bfloat16+" in plain.stdout
    assert "dry run: nothing was started; add --yes to run it" in plain.stdout


def test_elsewhere_lines_are_plain(tmp_path):
    launch = command(tmp_path, "--tp 2 --dtype float16", needs="dtype=bfloat16", env="FAKE_SHARD_S=2")
    done = replay(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--yes")
    assert "\x1b" not in done.stdout
    assert re.search(r"^fixed: load \(load \d+ %\), 2 of 2 ranks, about \d+ s left$", done.stdout, re.M), done.stdout
    assert re.search(r"^fixed: serving, 2 of 2 ranks$", done.stdout, re.M)
