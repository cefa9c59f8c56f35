"""The Blackwell NaN story from end to end: six launches in one log, the fixed launch, and the controls."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

import forensics
from forensics.schema.options import Options
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report

SAGA = Path(__file__).parents[1] / "samples" / "cases" / "saga"
DEEPGEMM = "deepgemm-scale-format-mismatch"
CRASHED = {"L1": 1, "L2": 2, "L3": 3, "L4": 4, "L5": 5}


@cache
def report(*names: str) -> Report:
    return forensics.analyze([SAGA / name for name in names])


def launch(found: Report, name: str) -> LaunchInfo:
    return next(x for x in found.launches if x.id == name)


def focus(found: Report) -> LaunchInfo:
    assert found.focus
    return launch(found, found.focus)


def live(info: LaunchInfo) -> list[HypothesisInfo]:
    return [h for h in info.hypotheses if h.verdict != "ruled-out"]


def order(info: LaunchInfo) -> list[str | None]:
    return [h.finding for h in live(info)]


def by_finding(info: LaunchInfo, name: str) -> HypothesisInfo:
    return next(h for h in info.hypotheses if h.finding == name)


def test_session_has_six_launches_with_their_changed_flags() -> None:
    found = report("session.log")
    changed = {a.launch: {c.name: c.after for c in a.changed} for a in found.attempts}
    assert list(changed) == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert changed["L1"] == {}
    assert changed["L2"] == {"attention_backend": "triton"}
    assert changed["L3"] == {"nsa_decode_backend": "flashmla_sparse"}
    assert changed["L4"] == {"nsa_decode_backend": "trtllm", "nsa_prefill_backend": "trtllm"}
    assert changed["L5"] == {"disable_cuda_graph": True}
    assert list(changed["L6"].values()) == ["cutlass"]


@pytest.mark.parametrize("number", [1, 3, 4, 5])
def test_crashed_attempts_state_first_failure_reporters_and_stage(number: int) -> None:
    truth = json.loads((SAGA / f"attempt-{number}.truth.json").read_text())
    first = focus(report(f"attempt-{number}.log")).first_failure
    assert first is not None
    assert first.where.line == truth["first_failure"]["line"]
    assert first.rank is None
    assert first.reporters[0] == truth["first_failure"]["reporters"][0]
    assert first.stage == "decode"


def test_the_start_up_assertion_of_launch_two_is_its_own_cause() -> None:
    info = launch(report("session.log"), "L2")
    assert info.first_failure is not None
    assert (info.first_failure.rank, info.first_failure.stage) == ("TP4", "graph-capture")
    assert info.first_failure.where.line in range(664, 701)
    assert order(info)[0] == "nsa-backend-rejects-fp8-kv-cache"
    assert live(info)[0].verdict == "established"


def test_launch_two_says_nothing_about_the_nan() -> None:
    found = report("session.log")
    assert next(a for a in found.attempts if a.launch == "L2").same_failure_as is None


@pytest.mark.parametrize("name", ["L1", "L3", "L4", "L5"])
def test_order_of_hypotheses_in_every_nan_launch(name: str) -> None:
    names = order(launch(report("session.log"), name))
    places = [
        names.index(n)
        for n in (
            DEEPGEMM,
            "fp8-kv-cache-without-scales",
            "nsa-backend-numerics-on-sm120",
            "rope-parameters-moved-in-transformers-5",
        )
    ]
    assert places[0] == 0
    assert max(places[1], places[2]) < places[3]


def test_from_the_session_alone_it_is_likely_and_never_established() -> None:
    for name in ("L1", "L3", "L4", "L5"):
        assert live(launch(report("session.log"), name))[0].verdict == "likely"
    for number in (1, 3, 4, 5):
        assert live(focus(report(f"attempt-{number}.log")))[0].verdict == "likely"


def test_every_named_hypothesis_has_grounds_that_can_be_opened() -> None:
    info = focus(report("session.log"))
    for name in (DEEPGEMM, "fp8-kv-cache-without-scales", "nsa-backend-numerics-on-sm120"):
        grounds = by_finding(info, name).grounds
        assert any(g.side == "for" and g.where for g in grounds), name
        assert any(g.side == "against" and g.where for g in grounds), name
        assert all(g.id.startswith(f"{by_finding(info, name).id}.G") for g in grounds)


def test_the_control_that_prints_the_same_warning_speaks_against() -> None:
    grounds = by_finding(focus(report("session.log")), DEEPGEMM).grounds
    assert any("prints it too" in g.why and g.side == "against" for g in grounds)


def test_with_the_fixed_launch_it_is_established_by_the_one_changed_variable() -> None:
    top = live(focus(report("session.log", "fixed.log")))[0]
    assert (top.finding, top.verdict) == (DEEPGEMM, "established")
    assert "SGLANG_ENABLE_JIT_DEEPGEMM" in top.why
    assert sum(h.verdict == "established" for h in live(focus(report("session.log", "fixed.log")))) == 1


def test_the_fixed_launch_clears_what_stayed_the_same() -> None:
    found = report("session.log", "fixed.log")
    fixed = found.attempts[-1]
    assert DEEPGEMM in fixed.supports
    assert {"nsa-backend-numerics-on-sm120", "fp8-kv-cache-without-scales"} <= set(fixed.refutes)


@pytest.mark.parametrize("name", ["L1", "L3", "L4", "L5"])
def test_shared_memory_is_ruled_out_by_a_passed_stage(name: str) -> None:
    found = by_finding(launch(report("session.log"), name), "kernel-tile-exceeds-shared-memory")
    assert found.verdict == "ruled-out"
    assert "was passed" in found.why
    assert found.grounds[0].where


def test_graphs_are_ruled_out_by_the_launch_without_them() -> None:
    found = by_finding(launch(report("session.log"), "L5"), "cuda-graph-padding-poisons-batch")
    assert found.verdict == "ruled-out"
    assert "L5" in found.why or "sglang" in found.why


def test_attention_backends_are_shown_as_tried_without_effect() -> None:
    attempts = {a.launch: a for a in report("session.log").attempts}
    for name in ("L3", "L4"):
        assert attempts[name].same_failure_as == "L1"
        assert "failed in the same way" in attempts[name].refutes["nsa-backend-numerics-on-sm120"]


def test_the_unfinished_launch_has_no_verdict() -> None:
    info = launch(report("session.log"), "L6")
    assert (info.reached, info.ended, info.progress) == ("load", "log-ends", "load 25 %")
    assert info.hypotheses == []
    assert "25 %" in next(a for a in report("session.log").attempts if a.launch == "L6").outcome


def test_differences_to_the_good_deployment_and_which_are_untested() -> None:
    comparison = focus(report("session.log")).comparison
    assert comparison is not None
    assert comparison.deployment == "kimi-k2-thinking-nvfp4-8x-rtx-pro-6000"
    tested = {d.name: d.tested for d in comparison.differences}
    assert tested["args.disable_cuda_graph"] is True
    for name in ("feature.dsa", "args.kv_cache_dtype", "args.moe_runner_backend", "args.fp4_gemm_runner_backend"):
        assert tested[name] is False, name


def test_the_next_step_is_the_untried_switch_on_the_launch_command() -> None:
    step = focus(report("session.log")).next[0]
    assert step.kind == "experiment"
    assert step.command.startswith("env SGLANG_ENABLE_JIT_DEEPGEMM=0 python3 -m sglang.launch_server")
    assert all("--disable-cuda-graph " not in s.do for s in focus(report("session.log")).next)


@pytest.mark.parametrize("name", ["kimi-k2-thinking-good.log", "kimi-k2-thinking-good-nowarn.log", "fixed.log"])
def test_good_launches_have_no_hypotheses(name: str) -> None:
    found = report(name)
    assert found.failed() is False
    assert [x.hypotheses for x in found.launches] == [[]]


def test_the_warning_of_a_good_launch_is_a_risk() -> None:
    assert DEEPGEMM in {r.finding for r in focus(report("kimi-k2-thinking-good.log")).risks}
    assert DEEPGEMM not in {r.finding for r in focus(report("kimi-k2-thinking-good-nowarn.log")).risks}


def test_stated_garbage_turns_the_risk_into_a_possible_cause(tmp_path: Path) -> None:
    found = forensics.analyze(SAGA / "kimi-k2-thinking-good.log", Options(symptom="garbage"))
    top = {h.finding: h.verdict for h in focus(found).hypotheses}
    assert top[DEEPGEMM] == "possible"
    assert set(top.values()) <= {"possible", "ruled-out"}


def test_the_last_lines_of_a_start_say_what_is_and_is_not_known(tmp_path: Path) -> None:
    lines = (SAGA / "kimi-k2-thinking-good.log").read_text().splitlines(keepends=True)
    ready = next(n for n, text in enumerate(lines) if "fired up and ready" in text)
    (tmp_path / "tail.log").write_text("".join(lines[ready - 4 : ready + 1]))
    info = focus(forensics.analyze(tmp_path / "tail.log"))
    assert info.hypotheses == []
    notes = " ".join(info.notes)
    assert "prefill and one decode step work" in notes
    assert "head of the log" in notes
    assert info.ranks.missing == []


def test_tail_of_init_calls_no_rank_missing(tmp_path: Path) -> None:
    lines = (SAGA / "kimi-k2-thinking-good.log").read_text().splitlines(keepends=True)
    ends = [n for n, text in enumerate(lines) if "Init torch distributed ends" in text]
    (tmp_path / "tail.log").write_text("".join(lines[ends[3] : ends[7] + 1]))
    info = focus(forensics.analyze(tmp_path / "tail.log"))
    assert info.ranks.missing == []
    assert info.first_failure is None
    assert any("none can be called missing" in n for n in info.notes)


def test_reports_are_equal_byte_for_byte() -> None:
    one = forensics.analyze(SAGA / "session.log").model_dump_json()
    assert one == report("session.log").model_dump_json()
