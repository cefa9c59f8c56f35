"""The fuzzer itself: crashes, dead processes and shares of time are told, whatever becomes of a slice."""

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "fuzz"))

from crew import FILES, Crew, Tally, plan
from slices import Slice, with_hypothesis
from targets import TARGETS, Target


def _target(run) -> Target:
    return Target("made", "group", run, lambda: [b"seed one", b"seed two"], (b"word",))


def _work(target: Target, folder: Path, seconds: float = 1.0, jobs: int = 2) -> tuple[Tally, list[str]]:
    said: list[str] = []
    tally = Tally({"group": ["made"]})
    crew = Crew(with_hypothesis, jobs, tally, folder, said.append)
    crew.work(iter([Slice(target, seconds, 1), Slice(target, seconds, 2)]), time.monotonic() + 60)
    crew.stop()
    return tally, said


def test_good_target_is_counted(tmp_path):
    tally, said = _work(_target(lambda data: None), tmp_path / "crashes", 0.3)
    assert tally.runs["made"] > 50
    assert tally.seconds["made"] >= 0.6
    assert not said
    assert not (tmp_path / "crashes").exists()
    assert f"| group | made | {tally.runs['made']:,} |" in tally.table([])


def test_crash_is_kept_small_and_fuzzing_goes_on(tmp_path):
    def run(data: bytes) -> None:
        if b"word" in data:
            raise ZeroDivisionError

    tally, said = _work(_target(run), tmp_path)
    assert len(said) == len(tally.crashes) == 1
    assert "ZeroDivisionError" in said[0]
    (kept,) = tmp_path.iterdir()
    assert b"word" in kept.read_bytes()
    assert len(kept.read_bytes()) <= 12
    assert tally.runs["made"] > 200


def test_dead_process_leaves_its_input(tmp_path):
    def run(data: bytes) -> None:
        if b"word" in data:
            os._exit(9)

    tally, said = _work(_target(run), tmp_path)
    assert "ended with 9" in said[0]
    assert all(b"word" in path.read_bytes() for path in tmp_path.iterdir())
    assert tally.crashes


def test_errors_of_the_program_are_no_crash(tmp_path):
    from forensics.errors import InputError

    def run(data: bytes) -> None:
        raise InputError("refused")

    assert not _work(_target(run), tmp_path, 0.2)[0].crashes


@pytest.mark.parametrize("jobs", [1, 2, 32])
def test_every_target_gets_its_share_over_any_number_of_processes(jobs):
    targets = list(TARGETS)
    shares = {target.name: 600.0 for target in targets}
    slices = list(plan(targets, shares, jobs, 3))
    for target in targets:
        assert sum(s.seconds for s in slices if s.target is target) == pytest.approx(600)
    assert len({s.seed for s in slices}) == len(slices)
    assert max(s.seconds for s in slices) <= 180
    assert len(slices) >= jobs
    assert {s.target.name for s in slices[: len(targets)]} == set(shares)


def test_few_files_are_kept(tmp_path):
    def run(data: bytes) -> None:
        exec(compile("\n" * (len(data) % 40) + "raise ValueError", "forensics/made.py", "exec"))

    tally, _ = _work(_target(run), tmp_path, 4.0)
    assert len(tally.crashes) > FILES
    assert len(list(tmp_path.iterdir())) == FILES
