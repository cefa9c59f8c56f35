"""Launches of one input as experiments: pairs, refutations, controls, next steps, baseline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from diagnose_kit import (
    NAN,
    SERVES,
    diagnose,
    finding,
    focus,
    hypothesis,
    knowledge,
    launch_text,
    verdicts,
    write,
)

import forensics
from forensics.output.markdown import render as render_markdown
from forensics.output.terminal import render as render_text

FP8 = "[2026-05-01 10:00:08] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to less accurate results!\n"
KV = "[{kind: flag, op: set, name: --kv-cache-dtype, value: auto, runnable: true}]"
GRAPHS = "[{kind: flag, op: set, name: --disable-cuda-graph, runnable: true}]"
DEPLOYMENT = """---
id: good-one
title: A launch that works
strength: served
hardware: {gpu: H200, count: 1, sm: 90, nodes: 1}
quantization: ""
model: {name: dense, architecture: LlamaForCausalLM}
features: []
versions: ""
args: {kv_cache_dtype: auto, attention_backend: flashinfer, disable_cuda_graph: true}
env: {}
facts: {}
warnings: [fp8-kv-scale-default]
sources: ["run:test"]
---
prose
"""


def test_one_changed_variable_establishes_its_cause(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, kv="fp8_e4m3", seed=1))
    good = write(tmp_path, "2.log", launch_text(SERVES, kv="auto", seed=2))
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    graphs = finding(tmp_path, "graphs", must=["nan-probabilities", "not args.disable_cuda_graph"], fix=GRAPHS)
    found = diagnose([bad, good], knowledge(kv, graphs))
    assert verdicts(found) == {"kv": "established", "graphs": "possible"}
    assert "--kv-cache-dtype fp8_e4m3 → auto" in hypothesis(found, "kv").why
    assert any(g.condition == "the good launch has it too" for g in hypothesis(found, "graphs").grounds)
    assert found.attempts[1].supports.keys() == {"kv"}
    assert found.attempts[1].refutes.keys() == {"graphs"}


def test_port_and_seed_are_no_variables(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, seed=1))
    good = write(tmp_path, "2.log", launch_text(SERVES, seed=2))
    found = diagnose([bad, good], knowledge(finding(tmp_path, "a", must=["nan-probabilities"])))
    assert found.attempts[1].changed == []
    assert verdicts(found) == {"a": "possible"}


def test_two_changed_variables_prove_nothing(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, kv="fp8_e4m3", seed=1))
    good = write(tmp_path, "2.log", launch_text(SERVES, kv="auto", dtype="bfloat16", seed=2))
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    assert verdicts(diagnose([bad, good], knowledge(kv))) == {"kv": "possible"}


def test_a_pair_that_no_finding_claims_still_names_the_variable(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, backend="triton", seed=1))
    good = write(tmp_path, "2.log", launch_text(SERVES, backend="flashinfer", seed=2))
    top = focus(diagnose([bad, good], knowledge())).hypotheses[0]
    assert (top.kind, top.verdict) == ("difference", "established")
    assert "--attention-backend triton → flashinfer" in top.title


def test_a_fix_that_failed_in_the_same_way_rules_its_cause_out(tmp_path: Path) -> None:
    text = launch_text(NAN, kv="fp8_e4m3", seed=1) + launch_text(NAN, kv="auto", seed=2)
    log = write(tmp_path, "server.log", text)
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    found = diagnose([log], knowledge(kv))
    assert verdicts(found)["kv"] == "ruled-out"
    assert "L2 failed in the same way" in hypothesis(found, "kv").why
    assert hypothesis(found, "kv").grounds[0].where
    assert "kv" in found.attempts[1].refutes


def test_a_different_failure_refutes_nothing(tmp_path: Path) -> None:
    other = '[2026-05-01 10:00:51] Scheduler hit an exception: Traceback (most recent call last):\n  File "/opt/a/sglang/srt/models/x.py", line 3, in forward\nValueError: something else\n\n[2026-05-01 10:00:52] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n'
    text = launch_text(NAN, kv="fp8_e4m3", seed=1) + launch_text(other, kv="auto", seed=2)
    log = write(tmp_path, "server.log", text)
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    found = diagnose([log], knowledge(kv), launch="1")
    assert verdicts(found) == {"kv": "possible"}


def test_the_last_failed_launch_is_the_headline_and_all_can_be_asked_for(tmp_path: Path) -> None:
    text = (
        launch_text(NAN, seed=1) + launch_text(NAN, kv="fp8_e5m2", seed=2) + launch_text(SERVES, dtype="half", seed=3)
    )
    log = write(tmp_path, "server.log", text)
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"]))
    assert diagnose([log], known).focus == "L2"
    assert diagnose([log], known, launch="1").focus == "L1"
    assert [x.id for x in diagnose([log], known, launch="all").launches] == ["L1", "L2", "L3"]


def test_next_step_offers_nothing_that_was_tried(tmp_path: Path) -> None:
    text = launch_text(NAN, graphs=True, kv="fp8_e4m3", seed=1)
    log = write(tmp_path, "server.log", text)
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    graphs = finding(tmp_path, "graphs", must=["nan-probabilities"], fix=GRAPHS)
    steps = focus(diagnose([log], knowledge(kv, graphs))).next
    assert [s.separates for s in steps if s.kind == "experiment"] == [["kv"]]
    assert "--kv-cache-dtype auto" in steps[0].do


def test_nothing_fits_gives_a_general_reading_and_what_to_collect(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(NAN))
    info = focus(diagnose([log], knowledge()))
    assert info.unexplained
    assert [h.kind for h in info.hypotheses] == ["engine"]
    assert info.hypotheses[0].verdict == "possible"
    assert "not finite" in info.hypotheses[0].why
    assert info.next


def test_the_nearest_control_lists_differences_and_its_warnings_speak_against(tmp_path: Path) -> None:
    (tmp_path / "good-one.md").write_text(DEPLOYMENT)
    log = write(tmp_path, "server.log", launch_text(FP8 + NAN, kv="fp8_e4m3"))
    path = finding(tmp_path, "a", must=["nan-probabilities"], strong=["fp8-kv-scale-default"])
    found = diagnose([log], knowledge(path, deployments=(tmp_path / "good-one.md",)))
    comparison = focus(found).comparison
    assert comparison is not None
    names = {d.name: (d.here, d.control, d.tested) for d in comparison.differences}
    assert names["args.kv_cache_dtype"] == ("fp8_e4m3", "auto", False)
    assert "args.attention_backend" in names
    assert any("good-one works and prints it too" in g.why for g in hypothesis(found, "a").grounds)


def test_baseline_is_compared_and_counts_as_a_launch(tmp_path: Path) -> None:
    bad = write(tmp_path, "bad.log", launch_text(FP8 + NAN, kv="fp8_e4m3", seed=1))
    good = write(tmp_path, "good.log", launch_text(SERVES, kv="auto", seed=2))
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    found = diagnose([bad], knowledge(kv), baseline=Path(good))
    assert verdicts(found) == {"kv": "established"}
    assert [x.id for x in found.launches] == ["L1"]
    assert found.baseline is not None
    assert any("Using FP8 KV cache" in (m.text or "") for m in found.baseline.new_messages)
    assert ("args.kv_cache_dtype", "fp8_e4m3", "auto") in [(f.name, f.here, f.control) for f in found.baseline.facts]
    assert good in [s.path for s in found.sources]


def test_a_missing_baseline_is_a_problem_not_an_end(tmp_path: Path) -> None:
    bad = write(tmp_path, "bad.log", launch_text(NAN))
    found = diagnose([bad], knowledge(), baseline=tmp_path / "none.log")
    assert found.baseline is None
    assert any("none.log" in p.message for p in found.problems)


def test_another_release_is_a_second_variable(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, kv="fp8_e4m3", seed=1))
    good = launch_text(SERVES, kv="auto", seed=2).replace(
        "device='cuda')", "device='cuda')\n[2026-05-01 11:00:01] Transformers version 5.2.0 is used for model type x."
    )
    warned = launch_text(NAN, kv="fp8_e4m3", seed=1).replace(
        "device='cuda')", "device='cuda')\n[2026-05-01 10:00:01] Transformers version 4.57.1 is used for model type x."
    )
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    other = diagnose([write(tmp_path, "3.log", warned), write(tmp_path, "4.log", good)], knowledge(kv))
    assert verdicts(other) == {"kv": "possible"}
    same = diagnose([bad, write(tmp_path, "5.log", launch_text(SERVES, kv="auto", seed=2))], knowledge(kv))
    assert verdicts(same) == {"kv": "established"}


def test_another_model_is_no_attempt_at_the_same_thing(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, seed=1))
    good = launch_text(SERVES, seed=2).replace("/models/dense", "/models/other")
    found = diagnose([bad, write(tmp_path, "2.log", good)], knowledge())
    assert [h.kind for h in focus(found).hypotheses] == ["engine"]


SAMPLES = Path(__file__).parents[1] / "samples"


@pytest.mark.parametrize(
    ("bad", "good", "cause"),
    [
        ("run-gpu-relaunchA1_fp8kv_e4m3_crash", "gpu-relaunchA2_fp8kv_e5m2_ok", "fp8-kv-cache-without-scales"),
        ("run-gpu-relaunchA1_fp8kv_e4m3_crash", "gpu-relaunchA3_kv_auto_ok", "fp8-kv-cache-without-scales"),
        ("run-gpu2-relaunchC1_tp2_float16_crash", "gpu2-tp2_healthy", "fp16-overflow"),
    ],
)
def test_pairs_of_real_runs_are_diagnosed_as_pairs(bad: str, good: str, cause: str) -> None:
    logs = [SAMPLES / "cases" / bad / "log.txt", SAMPLES / "healthy" / good / "log.txt"]
    alone = focus(forensics.analyze(logs[0])).hypotheses[0]
    pair = focus(forensics.analyze(logs)).hypotheses[0]
    assert alone.verdict == "possible"
    assert (pair.finding, pair.verdict) == (cause, "established")
    assert "single-variable comparison" in pair.why


def test_a_baseline_stands_in_the_text_and_in_the_markdown_report(tmp_path: Path) -> None:
    kv = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=KV)
    bad = write(tmp_path, "bad.log", launch_text(FP8 + NAN, kv="fp8_e4m3"))
    good = write(tmp_path, "good.log", launch_text(SERVES, kv="auto"))
    found = diagnose([bad], knowledge(kv), baseline=Path(good))
    text = render_text(found)
    assert "Against the good run" in text
    assert re.search(r"--kv-cache-dtype +fp8_e4m3 +auto", text)
    assert "only here" in text
    assert "nearest launch known to work" not in text
    markdown = render_markdown(found)
    assert "## Against the good run" in markdown
    assert re.search(r"\| .*kv-cache-dtype \| fp8_e4m3 \| auto \|", markdown.replace("\\", ""))
    assert "- only here: " in markdown


def test_a_comparison_does_not_bring_back_what_a_condition_excludes(tmp_path: Path) -> None:
    kv = finding(tmp_path, "kv", must=["nan-probabilities"], fix=KV)
    other = finding(tmp_path, "other", must=["nan-probabilities"], excludes=["not args.quantization"], fix=KV)
    bad = write(tmp_path, "bad.log", launch_text(NAN, kv="fp8_e4m3"))
    good = write(tmp_path, "good.log", launch_text(SERVES, kv="auto"))
    found = diagnose([bad], knowledge(kv, other), baseline=Path(good))
    assert hypothesis(found, "kv").verdict == "established"
    assert hypothesis(found, "other").verdict == "ruled-out"
