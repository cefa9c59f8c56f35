"""Launches as experiments, further cases: chance, direction, releases, and relaunch commands that stay whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import NAN, SERVES, launch_text, write
from timeline_logs import args, at, decode, prefill, startup

from forensics.analysis import analyze
from forensics.diagnose.direction import away
from forensics.diagnose.variables import Varied
from forensics.knowledge.store import load
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo, Report


def report(folder: Path, text: str, symptom: str | None = None) -> Report:
    return analyze([write(folder, "server.log", text)], Options(symptom=symptom, processes=1))


def focus(found: Report) -> LaunchInfo:
    return next(x for x in found.launches if x.id == found.focus)


FAILS = launch_text(NAN, kv="fp8_e4m3", seed=1)
WORKS = launch_text(SERVES, kv="auto", seed=2)
WORKS_TOO = launch_text(SERVES, kv="fp8_e4m3", seed=3)


def test_a_setting_that_also_works_is_established_by_no_comparison(tmp_path: Path) -> None:
    assert any(h.verdict == "established" for h in focus(report(tmp_path, FAILS + WORKS)).hypotheses)
    found = report(tmp_path, FAILS + WORKS + WORKS_TOO)
    assert not any(h.verdict == "established" for h in focus(found).hypotheses)
    assert [c.name for c in found.attempts[1].changed] == ["kv_cache_dtype"]
    assert found.attempts[2].changed == []


def refused(second: int, fraction: float) -> list[str]:
    return [
        args(second, tp_size=1, mem_fraction_static=fraction),
        *startup(second + 5, ["TP0"], ready=False)[:4],
        f"{at(second + 20, 'TP0')} Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/site/sglang/srt/model_executor/model_runner.py", line 900, in init_memory_pool',
        "    raise RuntimeError(",
        "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
        "",
        f"{at(second + 21)} Received sigquit from a child process. It usually means the child failed.",
    ]


def test_a_number_moved_the_wrong_way_refutes_nothing(tmp_path: Path) -> None:
    found = report(tmp_path, "\n".join([*refused(0, 0.8), *refused(100, 0.7)]) + "\n")
    assert found.attempts[1].same_failure_as == "L1" and found.attempts[1].refutes == {}
    launch = focus(found)
    assert launch.hypotheses[0].finding == "static-memory-budget-too-small"
    assert "try 0.88" in launch.next[0].do  # beyond 0.8, which failed as well


@pytest.mark.parametrize(
    ("before", "after", "wrong"), [(0.8, 0.7, True), (0.7, 0.8, False), (None, 0.7, False), ("auto", "x", False)]
)
def test_direction_of_an_attempt(before: float | str | None, after: float | str, wrong: bool) -> None:
    found = next(f for f in load(Options()).findings if f.id == "static-memory-budget-too-small")
    assert away(found, Varied("flag", "mem_fraction_static", before, after)) is wrong


def test_another_release_is_a_change_of_its_own(tmp_path: Path) -> None:
    text = f"sglang==0.5.7\n{FAILS}sglang==0.5.9\n{WORKS}"
    found = report(tmp_path, text)
    assert [(c.name, c.before, c.after) for c in found.attempts[1].changed] == [
        ("version.sglang", "0.5.7", "0.5.9"),
        ("kv_cache_dtype", "fp8_e4m3", "auto"),
    ]
    assert not any(h.verdict == "established" for h in focus(found).hypotheses)


def command(variables: str) -> str:
    typed = f"$ {variables} python3 -m sglang.launch_server --model-path /models/dense --kv-cache-dtype fp8_e4m3\n"
    warned = (
        "[2026-05-01 10:00:20] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of "
    )
    warned += "1.0. This may lead to less accurate results!\n[2026-05-01 10:00:21] Memory pool end"
    return typed + FAILS.replace("[2026-05-01 10:00:21] Memory pool end", warned)


def test_a_relaunch_keeps_the_variables_typed_before_the_command(tmp_path: Path) -> None:
    launch = focus(report(tmp_path, command("NCCL_SOCKET_IFNAME=eth0 NCCL_IB_DISABLE=1")))
    told = [s.command for s in launch.next if "launch_server" in s.command]
    assert told and all(c.startswith("NCCL_SOCKET_IFNAME=eth0 NCCL_IB_DISABLE=1 ") for c in told)


def test_what_the_launch_printed_already_is_not_asked_for(tmp_path: Path) -> None:
    asked = "failing kernel's own call"
    assert any(asked in s.do for s in focus(report(tmp_path, command("A_B=1"))).next)
    assert not any(asked in s.do for s in focus(report(tmp_path, command("CUDA_LAUNCH_BLOCKING=1"))).next)


# -- what a cut log lacks is told -----------------------------------------------------------------------------------


def test_missing_arguments_are_told_and_nothing_is_established_on_them(tmp_path: Path) -> None:
    whole = refused(0, 0.8)
    assert focus(report(tmp_path, "\n".join(whole) + "\n")).hypotheses[0].verdict == "established"
    launch = focus(report(tmp_path, "\n".join(whole[1:]) + "\n"))
    assert any("no server_args" in note for note in launch.notes)
    assert launch.hypotheses[0].verdict != "established"


@pytest.mark.parametrize("stamp", ["2026-03-04T10:00:{:02d}.000000{:03d}Z", "2026-03-04T10:00:{:02d}+00:00"])
def test_two_words_and_a_colon_after_a_stamp_are_no_host_and_program(stamp: str, tmp_path: Path) -> None:
    lines = [
        args(0, tp_size=1, page_size=64),
        *startup(5, ["TP0"]),
        prefill(30, "TP0"),
        decode(31, "TP0"),
        f"{at(40, 'TP0')} Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/site/sglang/srt/managers/schedule_batch.py", line 985, in alloc_paged_token_slots_extend',
        "    raise RuntimeError(error_msg)",
        "RuntimeError: Prefill out of memory. Try to lower your batch size.",
        "Try to allocate 4096 tokens.",
        "Available tokens: 4160",
    ]
    text = "".join(f"{stamp.format(n % 60, n)} {line}\n" for n, line in enumerate(lines))
    assert "paged-kv-allocator-page-rounding" in [h.finding for h in focus(report(tmp_path, text)).hypotheses]
    plain = focus(report(tmp_path, "\n".join(lines) + "\n"))
    assert focus(report(tmp_path, text)).hypotheses[0].finding == plain.hypotheses[0].finding


def test_batches_of_the_launch_before_are_no_sign_that_a_server_served(tmp_path: Path) -> None:
    started = launch_text("", kv="fp8_e4m3", seed=3).replace("Prefill batch", "Tree cache initialized, no batch")
    found = report(tmp_path, FAILS + WORKS + started)
    assert any(h.verdict == "established" for h in focus(found).hypotheses)
