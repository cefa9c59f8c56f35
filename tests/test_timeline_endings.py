"""How a launch ended: what a server survives, what ends it, and who asked it to stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from timeline_logs import SIGQUIT, args, at, decode, first_line, launches, prefill, startup, trace

from forensics.schema.launch import Launch

KV_FAILED = (
    "Prefill transfer failed for request rank=0 req.rid='7d0c1a' req.bootstrap_room=3141592653589 with exception "
    "KVTransferError(bootstrap_room=3141592653589): Failed to send kv chunk of 811 bytes"
)
OF_REQUESTS = [
    [f"{at(70, 'TP0')} {KV_FAILED}"],
    [f"{at(70)} [http_server] Error: something about this request"],
    [f'{at(70)} INFO:     10.0.0.9:5150 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error'],
    [
        "E0304 10:01:10.100000  4711 worker_pool.cpp:195] Worker: Cannot make connection for endpoint: 10.1.1.1:9000@mlx5_1"
    ],
    [
        "E0304 10:01:10.100000  4711 rdma_endpoint.cpp:408] [Handshake] Failed to modify QP to RTR, check mtu, gid: Connection timed out [110]"
    ],
    [f"{at(70)} Failed to connect to bootstrap server: timed out"],
    [
        f"{at(70, 'TP0')} Exception in thread Thread-7 (decode_thread):",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/threading.py", line 1075, in _bootstrap_inner',
        '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/disaggregation/mooncake/conn.py", line 700, in decode_thread',
        "ValueError: not enough values to unpack (expected 3, got 1)",
    ],
]
OF_THE_SERVER = [
    ["!!!!!!! Segfault encountered !!!!!!!"],
    trace(70, "TP0", "RuntimeError: shapes do not fit"),
    ["Memory access fault by GPU node-4 (Agent handle: 0x5c1a) on address 0x7e9c11c00000. Reason: Unknown."],
]  # fmt: skip


def served(folder: Path, *tail: str) -> Launch:
    lines = [args(0), *startup(5, ["TP0"]), prefill(60, "TP0"), decode(61, "TP0"), *tail]
    return launches(folder, lines)[1][0]


@pytest.mark.parametrize("tail", OF_REQUESTS)
def test_a_failed_request_at_the_end_of_a_log_ends_no_server(tail: list[str], tmp_path: Path) -> None:
    assert served(tmp_path, *tail).ended == "running"


@pytest.mark.parametrize("tail", OF_THE_SERVER)
def test_what_a_process_does_not_outlive_ends_it(tail: list[str], tmp_path: Path) -> None:
    assert served(tmp_path, *tail).ended == "crashed"


def test_a_death_sign_after_a_failed_request_is_a_death(tmp_path: Path) -> None:
    assert served(tmp_path, f"{at(70, 'TP0')} {KV_FAILED}", f"{at(72)} {SIGQUIT}").ended == "crashed"


@pytest.mark.parametrize("mark", ["^CTraceback (most recent call last):", "Traceback (most recent call last):"])
def test_ctrl_c_while_loading_is_a_stop_by_the_user(mark: str, tmp_path: Path) -> None:
    lines = [
        args(0),
        f"{at(3, 'TP0')} Load weight begin. avail mem=78.10 GB",
        "Loading safetensors checkpoint shards:  36% Completed | 60/163 [01:18<02:13,  0.77it/s]",
        mark,
        '  File "/opt/venv/lib/python3.12/site-packages/sglang/launch_server.py", line 24, in <module>',
        '  File "/usr/lib/python3.12/multiprocessing/connection.py", line 395, in _recv',
        "KeyboardInterrupt",
    ]
    launch = launches(tmp_path, lines)[1][0]
    assert launch.first_failure is None
    assert (launch.ended, launch.ended_why) == ("stopped", "stopped by the user (Ctrl-C)")


def test_ctrl_c_after_a_failure_does_not_hide_it(tmp_path: Path) -> None:
    launch = served(tmp_path, *trace(70, "TP0", "RuntimeError: shapes do not fit"), "KeyboardInterrupt")
    assert launch.first_failure is not None
    assert launch.ended == "crashed"


def test_an_interrupt_of_one_child_alone_is_no_stop_by_the_user(tmp_path: Path) -> None:
    interrupted = ["Process Process-1:", "Traceback (most recent call last):", "KeyboardInterrupt"]
    died = f"{at(72)} Subprocess scheduler_0 (pid=812) crashed with exit code 1. Triggering SIGQUIT for cleanup..."
    assert served(tmp_path, *interrupted, died, f"{at(72)} {SIGQUIT}").ended == "crashed"
    bye = f"{at(71)} INFO:     Shutting down"
    assert served(tmp_path, *interrupted, bye, died, f"{at(72)} {SIGQUIT}").ended == "stopped"


def test_a_sigterm_is_a_stop(tmp_path: Path) -> None:
    launch = served(
        tmp_path, f"{at(70)} SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
    )
    assert launch.ended == "stopped"


ROUTER = "2025-11-25 06:01:0{n} {level} {what}"


def router(*rows: tuple[str, str]) -> list[str]:
    return [ROUTER.format(n=n, level=level, what=what) for n, (level, what) in enumerate(rows)]


def test_a_router_without_an_answering_worker_goes_on(tmp_path: Path) -> None:
    lines = router(
        (" INFO", "sglang_router_rs::core::worker_manager: src/core/worker_manager.rs:210: Activated worker http://10.9.0.1:30000"),
        (" WARN", "sglang_router_rs::core::circuit_breaker: src/core/circuit_breaker.rs:212: Circuit breaker state transition "
         "from=closed to=open, state=closed, worker=http://10.9.0.1:30000"),
        ("ERROR", 'http_request{method=POST uri=/v1/completions request_id="c-1"}: sglang_router_rs::middleware: '
         "src/middleware.rs:300: request failed with server error status_code=503"),
    )  # fmt: skip
    table, found = launches(tmp_path, lines)
    failure = found[0].failure(found[0].first_failure)
    assert first_line(table, found[0]) == 2
    assert failure is not None and (failure.stage, failure.component) == ("client", "router")
    assert found[0].ended == "log-ends"


def test_the_panic_of_a_worker_thread_states_its_message_and_kills_no_router(tmp_path: Path) -> None:
    lines = [
        "[Router (Rust)] 2025-06-10 02:28:00 - INFO - Health check for worker http://10.4.0.3:8000 passed",
        "",
        "thread 'actix-rt|system:0|arbiter:12' panicked at src/router.rs:463:40:",
        "called `Result::unwrap()` on an `Err` value: PoisonError { .. }",
    ]
    table, found = launches(tmp_path, lines)
    failure = found[0].failure(found[0].first_failure)
    assert first_line(table, found[0]) == 3
    assert failure is not None and "PoisonError" in failure.text
    assert found[0].ended == "log-ends"
