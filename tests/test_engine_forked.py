"""A part of the scan in a child: arrays come back whole, errors are raised here, nobody stays behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from engine_dump import dump

from forensics.engine.forked import Forked, spare_core
from forensics.engine.scan import Scan, scan
from forensics.engine.worker import SPLIT_ABOVE, process_count
from forensics.errors import InputError, UsageError
from forensics.schema.options import Options

LOG = Path(__file__).parent.parent / "samples" / "cases" / "saga" / "attempt-1.log"


def test_arrays_come_back_and_may_be_changed() -> None:
    sent = {"a": np.arange(100_000), "b": np.zeros(0), "c": "text", "d": np.ones((3, 5), np.int16)}
    found = Forked(lambda: sent).result()
    assert found["c"] == "text"
    for name in "abd":
        assert np.array_equal(found[name], sent[name])
        assert found[name].dtype == sent[name].dtype
    found["a"][0] = 7


def test_an_error_in_the_child_is_raised_here() -> None:
    def fail() -> None:
        raise UsageError("no such thing")

    with pytest.raises(UsageError, match="no such thing"):
        Forked(fail).result()


def test_a_child_that_was_killed_is_told() -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(InputError, match="-9"):
        Forked(die).result()


def test_a_result_that_finds_no_room_is_worked_out_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(value: object, file: object) -> None:
        raise OSError(27, "File too large")

    monkeypatch.setattr("forensics.engine.forked._dump", full)
    assert Forked(lambda: 3).result() == 3


def test_a_child_that_nobody_waits_for_is_ended() -> None:
    child = Forked(lambda: time.sleep(3600))
    pid = child._pid
    child.close()
    child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.skipif(not spare_core(), reason="one core only")
@pytest.mark.parametrize("head", [0, 3000, 1 << 30])
def test_a_scan_that_begins_ahead_gives_the_same(monkeypatch: pytest.MonkeyPatch, head: int) -> None:
    expected = dump(scan([LOG], Options(processes=1)))
    monkeypatch.setattr("forensics.engine.scan.HEAD_START", {"numpy": head})
    with Scan([LOG], Options(), ahead=True) as begun:
        assert dump(begun.table()) == expected


def children() -> set[int]:
    """Processes that this one has, those that ended and were not waited for included."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(entry.parent.name))
    return found


def test_a_scan_that_is_left_early_leaves_nobody() -> None:
    before = children()
    with Scan([LOG], Options(), ahead=True) as begun:
        assert begun.sources
        assert len(children()) > len(before) or not spare_core(), "it has a child"
    assert children() == before


def test_processes_follow_the_size_and_the_cores() -> None:
    assert process_count(SPLIT_ABOVE - 1, 64) == 1
    assert process_count(SPLIT_ABOVE, 1) == 2
    assert process_count(1 << 30, 2) == 2
    assert process_count(1 << 30, 64) == 4
    assert process_count(1 << 40, 64) == 8
