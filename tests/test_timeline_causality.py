"""Which failure is the first: victims, echoes, recovered faults, advice and shutdown noise never are."""

from __future__ import annotations

from pathlib import Path

from timeline_logs import SIGQUIT, args, at, decode, first_line, launches, prefill, startup, table_of, trace

from forensics.schema.launch import Launch

TP2 = ["TP0", "TP1"]
ASSERT = "/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [{},0,0], thread: [5,0,0] Assertion `index out of bounds` failed."


def up(tp: int = 2) -> list[str]:
    return [args(0, tp_size=tp), *startup(5, [f"TP{i}" for i in range(tp)] if tp > 1 else [""])]


def roles(launch: Launch) -> dict[str, str]:
    return {f.mechanism.split(":")[0]: f.role for f in launch.failures}


def test_an_assert_flood_is_one_failure_without_a_rank(tmp_path: Path) -> None:
    lines = [
        *up(),
        decode(40, "TP0"),
        *[ASSERT.format(i) for i in range(200)],
        *trace(41, "TP1", "torch.AcceleratorError: CUDA error: device-side assert triggered"),
        f"{at(42)} {SIGQUIT}",
    ]
    table, (launch,) = launches(tmp_path, lines)
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert first_line(table, launch) == len(up()) + 2
    assert first.rank is None
    assert first.count == 200
    assert [str(r) for r in first.reporters] == ["TP1"]
    assert first.stage == "decode"
    assert next(f for f in launch.failures if "device-side" in f.mechanism).role == "cascade"


def test_the_echo_of_an_assert_may_be_printed_before_it(tmp_path: Path) -> None:
    lines = [
        *up(),
        decode(40, "TP0"),
        *trace(41, "TP1", "torch.AcceleratorError: CUDA error: device-side assert triggered"),
        ASSERT.format(1),
        f"{at(42)} {SIGQUIT}",
    ]
    _, (launch,) = launches(tmp_path, lines)
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert "Assertion" in first.text


def test_a_lost_peer_is_not_the_cause_where_another_rank_states_one(tmp_path: Path) -> None:
    lost = trace(
        41,
        "TP0",
        "RuntimeError: [pair.cc:537] Read error [127.0.0.1]:22220: Connection reset by peer",
        ("event_loop_overlap", "recv_requests"),
    )
    cause = trace(42, "TP1", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    table, (launch,) = launches(tmp_path, [*up(), *lost, *cause, f"{at(43)} {SIGQUIT}"])
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert first.rank is not None
    assert str(first.rank) == "TP1"
    assert first_line(table, launch) == len(up()) + len(lost) + 6


def test_a_lost_peer_alone_is_the_first_failure_and_suspects_the_peer(tmp_path: Path) -> None:
    lost = trace(
        41,
        "TP0",
        "RuntimeError: [pair.cc:537] Read error [127.0.0.1]:22220: Connection reset by peer",
        ("event_loop_overlap", "recv_requests"),
    )
    _, (launch,) = launches(tmp_path, [*up(), decode(40, "TP0"), *lost, f"{at(43)} {SIGQUIT}"])
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert str(first.rank) == "TP0"
    assert [str(r) for r in first.suspect_ranks] == ["TP1"]


def test_the_original_of_a_chain_states_the_failure(tmp_path: Path) -> None:
    chain = [
        f"{at(41)} Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/cuda_graph_runner.py", line 3, in capture',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 54.00 MiB. GPU 0 has a total capacity of 79.80 GiB of which 18.31 MiB is free.",
        "",
        "During handling of the above exception, another exception occurred:",
        "",
        "Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 3, in run_scheduler_process',
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 54.00 MiB.",
        "Possible solutions:",
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
        "",
        f"{at(43)} Received sigquit from a child process. It usually means the child failed.",
    ]
    base = [args(0), *startup(5, [""], ready=False)]
    table, (launch,) = launches(tmp_path, [*base, *chain])
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert first_line(table, launch) == len(base) + 3
    assert first.stage == "graph-capture"
    assert any("no fragmentation" in r for r in first.reading)
    assert all(f.role == "advice" for f in launch.failures if f.mechanism == "capture-advice")


def test_a_fault_that_the_server_survived_is_not_the_cause_of_a_later_death(tmp_path: Path) -> None:
    early = [f"{at(60)} ERROR:    something odd happened to a request"]
    work = [decode(s) for s in range(62, 300, 10)]
    late = trace(600, "", "ValueError: page index out of range")
    table, (launch,) = launches(tmp_path, [*up(1), *early, *work, *late, f"{at(601)} {SIGQUIT}"])
    assert first_line(table, launch) == len(up(1)) + 1 + len(work) + 6
    survived = next(f for f in launch.failures if "something odd" in f.text)
    assert survived.outcome == "recovered"


def test_bad_requests_are_no_failure_of_the_server(tmp_path: Path) -> None:
    lines = [
        *up(1),
        f"{at(40)} [http_server] Error: The input (9000 tokens) is longer than the model's context length (2048 tokens).",
        f'{at(40)} INFO:     127.0.0.1:50001 - "POST /generate HTTP/1.1" 400 Bad Request',
        prefill(41),
        decode(42),
    ]
    _, (launch,) = launches(tmp_path, lines)
    assert launch.first_failure is None
    assert launch.ended == "running"


def test_what_dies_after_an_orderly_stop_is_no_failure(tmp_path: Path) -> None:
    lines = [
        *up(1),
        decode(40),
        f"{at(50)} SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        f"{at(51)} Subprocess detokenizer (pid=77) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
    ]
    _, (launch,) = launches(tmp_path, lines)
    assert launch.first_failure is None
    assert launch.ended == "stopped"


def test_nan_warnings_count_only_where_nothing_else_fails(tmp_path: Path) -> None:
    warning = [f"{at(40)} Detected errors during sampling! NaN in the logits."]
    work = [decode(s) for s in range(41, 60, 3)]
    table, (launch,) = launches(tmp_path, [*up(1), *warning, *work])
    assert first_line(table, launch) == len(up(1)) + 1
    other = tmp_path / "other"
    other.mkdir()
    table, (launch,) = launches(
        other, [*up(1), *warning, *work, *trace(70, "", "IndexError: list index out of range"), f"{at(71)} {SIGQUIT}"]
    )
    assert first_line(table, launch) == len(up(1)) + 1 + len(work) + 6


def test_a_killed_child_without_any_exception(tmp_path: Path) -> None:
    lines = [
        *up(1),
        decode(40),
        f"{at(42)} Subprocess scheduler_0 (pid=77) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
        f"{at(42)} {SIGQUIT}",
    ]
    table, (launch,) = launches(tmp_path, lines)
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert first_line(table, launch) == len(up(1)) + 2
    assert any("SIGKILL" in r for r in first.reading)
    assert launch.ended == "crashed"


def test_collective_timeouts_suspect_the_rank_without_one(tmp_path: Path) -> None:
    texts = []
    for rank in (2, 0, 3):
        texts.append(
            f"[rank{rank}]:[E304 10:20:17.115120385 ProcessGroupNCCL.cpp:683] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600005 milliseconds before timing out."
        )
    base = [args(0, tp_size=4), *startup(5, [f"TP{i}" for i in range(4)], ready=False)]
    table, (launch,) = launches(tmp_path, [*base, *texts, "Fatal Python error: Aborted"])
    first = launch.failure(launch.first_failure)
    assert first is not None
    assert first_line(table, launch) == len(base) + 1
    assert [str(r) for r in first.reporters] == ["TP2", "TP0", "TP3"]
    assert [str(r) for r in first.suspect_ranks] == ["TP1"]
    assert any("first collective after loading" in r for r in first.reading)


def test_a_port_in_use_is_stated_by_its_own_line(tmp_path: Path) -> None:
    lines = [
        args(0),
        *startup(5, [""], ready=False),
        f"{at(20)} INFO:     Started server process [4029]",
        f"{at(20)} ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 30000): address already in use",
        f"{at(20)} INFO:     Waiting for application shutdown.",
    ]
    table, (launch,) = launches(tmp_path, lines)
    assert first_line(table, launch) == len(lines) - 1
    assert launch.ended == "hung"


def test_a_cut_trace_leaves_the_header(tmp_path: Path) -> None:
    lines = [*up(1), decode(40), *trace(41, "", "x")[:-2]]
    table, (launch,) = launches(tmp_path, lines)
    assert first_line(table, launch) == len(up(1)) + 2


def test_same_results_on_a_second_run(tmp_path: Path) -> None:
    lines = [*up(), decode(40, "TP0"), *trace(41, "TP1", "ValueError: x"), f"{at(42)} {SIGQUIT}"]
    table = table_of(tmp_path, lines)
    assert len(table) > 0
    one, two = launches(tmp_path, lines)[1], launches(tmp_path, lines)[1]
    assert [f for x in one for f in x.failures] == [f for x in two for f in x.failures]
