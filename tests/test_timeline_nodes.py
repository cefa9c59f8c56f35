"""Nodes of one launch: what came first is told by their clocks, wherever their lines stand in the input."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from timeline_logs import SIGQUIT, args, at, decode, first_line, launches, startup, trace

from forensics.timeline.clock import BY_POSITION, Clock

RANKS = ("TP0", "TP1"), ("TP2", "TP3")
LOST = "RuntimeError: [pair.cc:534] Connection closed by peer [10.0.0.2]:40122"


def node(number: int, second: int, failing: str, message: str, fast: int = 0) -> list[str]:
    """One node of two: it starts, and `failing` raises at `second`; its clock is `fast` seconds ahead."""
    lines = [args(fast, tp_size=4, nnodes=2, node_rank=number), *startup(fast + 1, RANKS[number], ready=False)]
    return [*lines, *trace(fast + second, failing, message), f"{at(fast + second + 1)} {SIGQUIT}"]


@pytest.mark.parametrize("files", [1, 2])
def test_the_earliest_by_time_on_any_node_is_the_first_failure(tmp_path: Path, files: int) -> None:
    first, second = node(0, 40, "TP1", LOST), node(1, 30, "TP2", "ValueError: the layer has no weight")
    _table, found = launches(tmp_path, *([first + second] if files == 1 else [first, second]))
    assert len(found) == 1
    failure = found[0].failure(found[0].first_failure)
    assert failure is not None
    assert failure.text == "ValueError: the layer has no weight"
    assert str(failure.rank) == "TP2"


def test_the_same_error_on_both_nodes_is_stated_by_the_earlier_one(tmp_path: Path) -> None:
    text = "ValueError: the output size is not divisible"
    _table, found = launches(tmp_path, node(0, 40, "TP1", text) + node(1, 30, "TP3", text))
    failure = found[0].failure(found[0].first_failure)
    assert failure is not None
    assert str(failure.rank) == "TP3"
    assert failure.count == 2


def test_clocks_that_are_hours_apart_are_not_compared(tmp_path: Path) -> None:
    late = [line.replace(" 10:", " 18:") for line in node(1, 30, "TP2", "ValueError: later by eight hours")]
    _table, found = launches(tmp_path, node(0, 40, "TP1", "ValueError: first in the file") + late)
    assert found[0].failure(found[0].first_failure).text == "ValueError: first in the file"  # type: ignore[union-attr]


def test_without_nodes_the_position_decides() -> None:
    assert [BY_POSITION.of(row) for row in (3, 9)] == [3, 9]
    clock = Clock(np.array([0, 1, 5]), np.array([2, 0, 1]))
    assert [clock.of(row) for row in (0, 1, 5)] == [2, 0, 1]
    assert clock.all(np.array([0, 5])).tolist() == [1, 2]


def test_a_link_that_flaps_and_one_late_health_probe_are_no_failure(tmp_path: Path) -> None:
    port = "h1:7:14 [3] transport/net_ib.cc:100 NCCL WARN NET/IB : mlx5_3:1 Got async event : port"
    probe = f"{at(60)} Health check failed. Server couldn't get a response from detokenizer for last 20 seconds."
    lines = [
        args(0),
        *startup(1, [""]),
        decode(30),
        f"{port} error",
        f"{port} active",
        decode(40),
        probe,
        decode(70),
        decode(80),
    ]
    _, found = launches(tmp_path, lines)
    assert (found[0].first_failure, found[0].ended) == (None, "running")


def test_a_client_that_hangs_up_is_no_failure(tmp_path: Path) -> None:
    raised = [
        f"{at(40)} ERROR:    Exception in ASGI application",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3/uvicorn/protocols/http/h11_impl.py", line 10, in run_asgi',
        '  File "/usr/lib/python3/anyio/streams/memory.py", line 20, in send_nowait',
        "anyio.BrokenResourceError",
    ]
    _, found = launches(tmp_path, [args(0), *startup(1, [""]), decode(30), *raised, decode(50), decode(60)])
    assert found[0].first_failure is None


def test_a_module_that_cannot_be_imported_is_no_request(tmp_path: Path) -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "/s/sglang/launch_server.py", line 3, in <module>',
        '  File "/s/sglang/srt/entrypoints/openai/protocol.py", line 20, in <module>',
        "ImportError: cannot import name 'Response' from 'openai.types'",
    ]
    table, found = launches(tmp_path, lines)
    assert first_line(table, found[0]) == 4
    assert found[0].failure(found[0].first_failure).stage == "config"  # type: ignore[union-attr]


def test_verification_of_drafts_is_decode_whatever_its_helpers_are_called(tmp_path: Path) -> None:
    frames = ("event_loop_overlap", "run_batch", "verify", "generate_attn_arg_prefill")
    _, found = launches(
        tmp_path, [args(0), *startup(1, [""]), decode(30), *trace(31, "", "RuntimeError: shape", frames)]
    )
    assert found[0].failure(found[0].first_failure).stage == "decode"  # type: ignore[union-attr]


def test_a_node_whose_clock_is_wrong_is_put_right_by_the_rendezvous(tmp_path: Path) -> None:
    late = node(1, 30, "TP2", "ValueError: really the first", fast=20)
    _, found = launches(tmp_path, node(0, 40, "TP1", "ValueError: first by its stamp") + late)
    assert found[0].failure(found[0].first_failure).text == "ValueError: really the first"  # type: ignore[union-attr]
