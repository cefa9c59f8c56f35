"""Standstills: stacks that differ between ranks, silences, watchdog lines that never end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from timeline_logs import args, at, decode, first_line, launches, prefill, startup

from forensics.timeline import silence

OUTER = [
    "event_loop_overlap (sglang/srt/managers/scheduler.py:1464)",
    "run_event_loop (sglang/srt/managers/scheduler.py:1411)",
    "run_scheduler_process (sglang/srt/managers/scheduler.py:4069)",
]
BROADCAST = [
    "broadcast (torch/distributed/distributed_c10d.py:2979)",
    "broadcast_pyobj (sglang/srt/utils/common.py:1441)",
    "recv_requests (sglang/srt/managers/scheduler.py:90)",
]
REDUCE = [
    "all_reduce (torch/distributed/distributed_c10d.py:3080)",
    "_sum_over_ranks (sglang/srt/mem_cache/tree.py:19)",
    "check_progress (sglang/srt/mem_cache/tree.py:137)",
    "get_next_batch_to_run (sglang/srt/managers/scheduler.py:2555)",
]


def dump(pid: int, rank: str, inner: list[str]) -> list[str]:
    head = [
        f"Process {pid}: sglang::scheduler_{rank}",
        "Python v3.12.3 (/usr/bin/python3.12)",
        "",
        f'Thread {pid} (idle): "MainThread"',
    ]
    return [*head, *[f"    {line}" for line in (*inner, *OUTER)], ""]


def test_the_rank_with_another_stack_is_the_suspect(tmp_path: Path) -> None:
    ranks = ["TP0", "TP1", "TP2", "TP3"]
    base = [args(0, tp_size=4), *startup(5, ranks), prefill(30, "TP0"), decode(31, "TP0")]
    lines = [
        *base,
        *dump(1, "TP0", BROADCAST),
        *dump(2, "TP1", BROADCAST),
        *dump(3, "TP2", REDUCE),
        *dump(4, "TP3", BROADCAST),
    ]
    table, (launch,) = launches(tmp_path, lines)
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert str(first.rank) == "TP2"
    assert [str(r) for r in first.suspect_ranks] == ["TP2"]
    assert "check_progress" in table.text(first.row)
    assert launch.ended == "hung"


def test_equal_stacks_are_no_divergence(tmp_path: Path) -> None:
    base = [args(0, tp_size=2), *startup(5, ["TP0", "TP1"]), decode(31, "TP0")]
    _, (launch,) = launches(tmp_path, [*base, *dump(1, "TP0", BROADCAST), *dump(2, "TP1", BROADCAST)])
    assert launch.first_failure is None


def test_a_watchdog_line_of_one_rank_suspects_the_silent_one(tmp_path: Path) -> None:
    base = [args(0, tp_size=2), *startup(5, ["TP0", "TP1"]), decode(31, "TP0")]
    lines = [*base, f"{at(340, 'TP0')} Scheduler watchdog timeout (self.watchdog_timeout=300.0, self.soft=False)"]
    table, (launch,) = launches(tmp_path, lines)
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert first_line(table, launch) == len(lines)
    assert [str(r) for r in first.suspect_ranks] == ["TP1"]
    assert launch.ended == "hung"
    assert any(rank is None and b - a > 300 for rank, a, b in launch.silences)


def test_silence_is_measured_against_the_rhythm_of_the_log() -> None:
    steady = np.arange(0.0, 100.0, 1.0)
    assert silence.gaps(steady) == []
    assert silence.gaps(np.append(steady, 400.0)) == [(99.0, 400.0)]
    slow = np.arange(0.0, 3000.0, 30.0)
    assert silence.gaps(np.append(slow, 3100.0)) == []


def test_a_rank_that_never_prints_batches_is_not_silent_while_serving(tmp_path: Path) -> None:
    lines = [args(0, tp_size=2), *startup(5, ["TP0", "TP1"]), *[decode(s, "TP0") for s in range(30, 900, 5)]]
    _, (launch,) = launches(tmp_path, lines)
    assert launch.silences == ()


def test_a_rank_that_stops_while_its_peers_talk_is_silent(tmp_path: Path) -> None:
    ranks = ["TP0", "TP1", "TP2"]
    begin = [f"{at(5, r)} Init torch distributed begin." for r in ranks]
    later = [f"{at(s, r)} sglang is using nccl==2.21.{s}" for s in range(10, 400, 5) for r in ("TP0", "TP1")]
    _, (launch,) = launches(tmp_path, [args(0, tp_size=3), *begin, *later])
    assert {str(rank) for rank, _, _ in launch.silences} == {"TP2"}
