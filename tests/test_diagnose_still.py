"""Servers that stand still or are slow, without an error line: who is behind, what the stacks and batch lines say."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import write
from timeline_logs import args, at, decode, prefill, startup

from forensics.analysis import analyze
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

RANKS = ["TP0", "TP1", "TP2", "TP3"]
OUTER = [
    ("event_loop_overlap", "sglang/srt/managers/scheduler.py", 1102),
    ("run_scheduler_process", "sglang/srt/managers/scheduler.py", 2966),
    ("<module>", "<string>", 1),
]
STEP = [
    ("replay", "torch/cuda/graphs.py", 140),
    ("replay", "sglang/srt/model_executor/cuda_graph_runner.py", 822),
    ("forward_batch_generation", "sglang/srt/managers/tp_worker.py", 391),
    ("run_batch", "sglang/srt/managers/scheduler.py", 2210),
]
SUM = [
    ("all_reduce", "torch/distributed/distributed_c10d.py", 2991),
    ("tensor_model_parallel_all_reduce", "sglang/srt/distributed/communication_op.py", 13),
    ("forward_batch_generation", "sglang/srt/managers/tp_worker.py", 391),
    ("run_batch", "sglang/srt/managers/scheduler.py", 2210),
]
IDLE = [("recv_requests", "sglang/srt/managers/scheduler.py", 1290)]
SENDING = [
    ("broadcast", "torch/distributed/distributed_c10d.py", 2810),
    ("broadcast_pyobj", "sglang/srt/utils/common.py", 1190),
    ("recv_requests", "sglang/srt/managers/scheduler.py", 1311),
]


def seen(folder: Path, lines: list[str], symptom: str | None) -> LaunchInfo:
    found = analyze([write(folder, "server.log", "\n".join(lines) + "\n")], Options(symptom=symptom, processes=1))
    return found.launches[-1]


def pyspy(number: int, frames: list[tuple[str, str, int]]) -> list[str]:
    inner = [f"    {name} ({file}:{line})" for name, file, line in (*frames, *OUTER)]
    return [f"Process {3000 + number}: sglang::scheduler_TP{number}", "Python v3.12.3 (/usr/bin/python3.12)", "",
            f'Thread {3000 + number} (active): "MainThread"', *inner, ""]  # fmt: skip


def timer(number: int, frames: list[tuple[str, str, int]]) -> list[str]:
    inner = [f'  File "/opt/site/{file}", line {line} in {name}' for name, file, line in (*frames, *OUTER)]
    waits = '  File "/usr/lib/python3.12/threading.py", line 359 in wait'
    return ["Timeout (0:05:00)!", f"Thread 0x00007f{number}0a3ff640 (most recent call first):", waits, "",
            f"Thread 0x00007f{number}1a3ff640 (most recent call first):", *inner, ""]  # fmt: skip


def served() -> list[str]:
    return [args(0, tp_size=4), *startup(5, RANKS), prefill(30, "TP0"), decode(31, "TP0")]


@pytest.mark.parametrize(("stage", "mark"), [("load", "Load weight end."), ("init", "Init torch distributed ends")])
def test_the_rank_that_misses_a_mark_of_the_others_is_behind(stage: str, mark: str, tmp_path: Path) -> None:
    whole = [args(0, tp_size=4), *startup(5, RANKS)]
    last = max(n for n, line in enumerate(whole) if mark in line)
    lines = [x for x in whole[: last + 1] if not ("TP2]" in x and mark in x)]
    launch = seen(tmp_path, lines, "hang")
    assert launch.hypotheses[0].title == f"TP2 is behind the others, in {stage}"
    assert "TP2" in launch.next[0].do
    assert any(note.startswith("TP2 is behind") for note in seen(tmp_path, lines, None).notes)


def test_stacks_in_one_place_accuse_no_rank_and_are_not_asked_for_again(tmp_path: Path) -> None:
    launch = seen(tmp_path, [*served(), *(x for n in range(4) for x in pyspy(n, STEP))], "hang")
    assert launch.ended == "hung" and launch.first_failure is None
    assert launch.hypotheses[0].title == "All ranks stand in replay"
    assert any("native frames below" in step.do for step in launch.next)


def test_an_idle_rank_beside_ranks_in_a_step_is_the_suspect(tmp_path: Path) -> None:
    lines = [*served(), *(x for n in range(4) for x in pyspy(n, IDLE if n == 3 else SUM))]
    launch = seen(tmp_path, lines, "hang")
    assert launch.first_failure is not None
    assert launch.first_failure.suspect_ranks == ["TP3"]
    assert launch.hypotheses[0].title.startswith("TP3 stands in recv_requests")


def test_idle_ranks_alone_are_no_standstill(tmp_path: Path) -> None:
    launch = seen(tmp_path, [*served(), *(x for n in range(4) for x in pyspy(n, IDLE))], None)
    assert launch.ended != "hung" and not launch.hypotheses


def test_dumps_of_a_timer_in_two_processes_are_told_apart(tmp_path: Path) -> None:
    launch = seen(tmp_path, [*served(), *timer(1, STEP), *timer(2, SENDING)], None)
    assert launch.ended == "hung"
    assert any("broadcast_pyobj, the others in replay" in h.title for h in launch.hypotheses)


def timeouts(work: list[str]) -> list[str]:
    return [
        f"[rank{n}]:[E501 10:12:11.12345{n} ProcessGroupNCCL.cpp:683] [PG ID 2 PG GUID 3 Rank {n}] Watchdog caught "
        f"collective operation timeout: WorkNCCL({text}, Timeout(ms)=600000) ran for 60001{n} milliseconds before "
        "timing out."
        for n, text in enumerate(work)
    ]


USUAL = "SeqNum=811, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("SeqNum=810, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096", "collective 810 of its group, the others in 811"),
        ("SeqNum=811, OpType=_ALLGATHER_BASE, NumelIn=7, NumelOut=28", "_ALLGATHER_BASE of 7 elements"),
    ],
)
def test_the_rank_in_another_collective_is_the_suspect(other: str, why: str, tmp_path: Path) -> None:
    launch = seen(tmp_path, [*served(), *timeouts([USUAL, other, USUAL, USUAL])], None)
    assert launch.first_failure is not None
    assert launch.first_failure.suspect_ranks == ["TP1"]
    assert why in launch.first_failure.suspect_why


def test_equal_collectives_accuse_nobody(tmp_path: Path) -> None:
    launch = seen(tmp_path, [*served(), *timeouts([USUAL] * 4)], None)
    assert launch.first_failure is not None and launch.first_failure.suspect_ranks == []


# -- slow ---------------------------------------------------------------------------------------------------------


def batch(second: int, speed: float, *, running: int = 8, queue: int = 0, graph: bool = True, who: str = "TP0") -> str:
    return (
        f"{at(second, who)} Decode batch, #running-req: {running}, #token: 900, token usage: 0.20, "
        f"cuda graph: {graph}, gen throughput (token/s): {speed:.2f}, #queue-req: {queue}, "
    )


def prompt(second: int) -> str:
    return (
        f"{at(second, 'TP0')} Prefill batch, #new-seq: 1, #new-token: 2200, #cached-token: 0, token usage: 0.10, "
        "#running-req: 4, #queue-req: 0, "
    )


SLOW = {
    "Throughput collapsed while as many requests ran": [batch(40 + n, 900 if n < 10 else 40) for n in range(20)],
    "Requests wait in the queue": [batch(40 + n, 300, running=4, queue=9 * n) for n in range(20)],
    "No prompt reuses a cached prefix": [prompt(40 + n) for n in range(40)],
    "TP1 is slower than the other ranks": [
        batch(40 + n, 40 if n % 2 else 400, who=f"TP{n % 2}") for n in range(24)
    ],
}  # fmt: skip
CALM = {
    "fewer requests": [batch(40 + n, 40.0 * (20 - n), running=20 - n) for n in range(20)],
    "steady": [batch(40 + n, 300 + n) for n in range(20)],
    "short": [batch(40, 900), batch(41, 10)],
}


@pytest.mark.parametrize("title", SLOW)
def test_batch_lines_of_a_slow_server_tell_where_to_look(title: str, tmp_path: Path) -> None:
    lines = [*served(), *SLOW[title]]
    launch = seen(tmp_path, lines, "slow")
    told = [h for h in launch.hypotheses if h.kind == "engine"]
    assert [h.title for h in told] == [title] and told[0].verdict == "possible" and told[0].grounds[0].where
    assert not seen(tmp_path, lines, None).hypotheses


@pytest.mark.parametrize("name", CALM)
def test_ordinary_batch_lines_tell_nothing(name: str, tmp_path: Path) -> None:
    launch = seen(tmp_path, [*served(), *CALM[name]], "slow")
    assert not [h for h in launch.hypotheses if h.kind == "engine"]


def test_speed_that_nobody_complained_about_is_a_risk(tmp_path: Path) -> None:
    eager = [batch(40 + n, 60, running=60, graph=False) for n in range(20)]
    launch = seen(tmp_path, [*served(), *eager], None)
    assert [r.finding for r in launch.risks] == ["decode-batch-above-captured-sizes"]
    assert not seen(tmp_path, [*served(), *CALM["steady"]], None).risks
