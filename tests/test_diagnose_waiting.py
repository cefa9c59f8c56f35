"""Logs of ranks that only waited: who is missing comes before any guess; stacks name who stands elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from diagnose_kit import focus, write

from forensics import analyze
from forensics.schema.options import Options

SAMPLES = Path(__file__).parents[1] / "samples/cases"
TIMEOUT = (
    "[rank{n}]:[E501 10:20:0{n}.1234 ProcessGroupNCCL.cpp:633] [Rank {n}] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=81231, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600012 milliseconds "
    "before timing out."
)
LOOP = "    event_loop_overlap (sglang/srt/managers/scheduler.py:1098)"


def test_an_excerpt_of_waiting_ranks_names_the_missing_number_before_any_guess(tmp_path: Path) -> None:
    text = "\n".join(TIMEOUT.format(n=n) for n in (4, 0, 1, 3, 5)) + "\n"
    found = focus(analyze([str(write(tmp_path, "1.log", text))], Options()))
    assert found.first_failure is not None and found.first_failure.stage == "unknown"
    assert "global rank 2" in found.first_failure.suspect_why
    top = found.hypotheses[0]
    assert (top.kind, top.verdict) == ("engine", "possible")
    assert found.first_failure.suspect_why in top.why


def test_the_rank_whose_stack_stands_elsewhere_is_the_suspect_although_all_report(tmp_path: Path) -> None:
    rows = ["[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=4)"]
    rows += [f"[2026-05-01 10:00:01 TP{n}] Init torch distributed begin." for n in range(4)]
    rows += ["[2026-05-01 10:01:00] The server is fired up and ready to roll!"]
    rows += [
        "[2026-05-01 10:02:00 TP0] Decode batch, #running-req: 4, #token: 900, token usage: 0.01, cuda graph: True, "
        "gen throughput (token/s): 90.00, #queue-req: 0"
    ]
    for n in range(4):
        inner = "build (srt/constrained/grammar.py:88)" if n == 2 else "recv_requests (srt/managers/scheduler.py:901)"
        rows += [
            f"[2026-05-01 10:07:0{n} TP{n}] Pyspy dump for PID 70{n}:",
            f"Process 70{n}: sglang::scheduler_TP{n}",
            "Python v3.12.3 (/usr/bin/python3.12)",
            "",
            f'Thread 70{n} (idle): "MainThread"',
            f"    {inner.replace('srt/', 'sglang/srt/')}",
            LOOP,
            "",
            f"[2026-05-01 10:07:0{n} TP{n}] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        ]
    found = focus(analyze([str(write(tmp_path, "1.log", "\n".join(rows) + "\n"))], Options())).first_failure
    assert found is not None
    assert [str(r) for r in found.suspect_ranks] == ["TP2"]
    assert "build" in found.suspect_why and "recv_requests" in found.suspect_why


def test_a_peer_lost_while_loading_is_no_process_killed_from_outside(tmp_path: Path) -> None:
    rows = ["[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=4, nnodes=2, node_rank=1)"]
    rows += [f"[2026-05-01 10:00:0{n} TP{n}] Load weight begin. avail mem=79.00 GB" for n in (2, 3)]
    for n in (2, 3):
        rows += [
            f"[2026-05-01 10:03:0{n} TP{n}] Scheduler hit an exception: Traceback (most recent call last):",
            '  File "/opt/x/sglang/srt/model_executor/model_runner.py", line 1072, in load_model',
            "    dist.monitored_barrier(",
            "RuntimeError: [/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:31822",
            "",
        ]
    top = focus(analyze([str(write(tmp_path, "1.log", "\n".join(rows) + "\n"))], Options())).hypotheses[0]
    assert (top.kind, top.verdict) == ("engine", "possible")
    assert "[10.0.0.1]:31822" in top.title


@pytest.mark.parametrize(("nodes", "rank"), [(1, "TP2"), (2, None)])
def test_torchs_own_rank_is_the_tensor_parallel_rank_on_one_node(nodes: int, rank: str | None, tmp_path: Path) -> None:
    text = (SAMPLES / "a-gb300-flashinfer-0614-wedge" / "log.txt").read_text()
    changed = re.sub(r"nnodes=1\b", f"nnodes={nodes}", text)
    assert nodes == 1 or changed != text
    (tmp_path / "1.log").write_text(changed)
    first = analyze([str(tmp_path / "1.log")], Options()).launches[-1].first_failure
    assert first is not None
    assert first.rank == rank
