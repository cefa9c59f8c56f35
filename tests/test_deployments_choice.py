"""The control that an expert would hold against a launch, for a dozen launches."""

from __future__ import annotations

import numpy as np
import pytest

from forensics.diagnose.controls import nearest
from forensics.knowledge.store import load
from forensics.schema.facts import Fact, Value, VersionInterval
from forensics.schema.launch import Launch
from forensics.schema.options import Options
from forensics.timeline.facts_features import _DSA, _HYBRID, _MLA, _MOE, _MULTIMODAL

V3 = "DeepseekV3ForCausalLM"
FAMILY = {80: "ampere", 89: "ada", 90: "hopper", 100: "blackwell", 103: "blackwell", 120: "blackwell", 121: "blackwell"}
CHOICES = [
    ("GlmMoeDsaForCausalLM", 8, None, "blackwell", "modelopt_fp4", {}, "kimi-k2-thinking-nvfp4-8x-rtx-pro-6000"),
    ("DeepseekV3ForCausalLM", 8, 120, None, "modelopt_fp4", {}, "kimi-k2-thinking-nvfp4-8x-rtx-pro-6000"),
    ("DeepseekV3ForCausalLM", 8, 90, None, None, {}, "dsv3-fp8-8xh200"),
    ("DeepseekV3ForCausalLM", 4, 100, None, "modelopt_fp4", {}, "dsr1-nvfp4-4xb200-pr8773"),
    ("DeepseekV3ForCausalLM", 4, 100, None, "modelopt_fp4", {"dp_attention": True}, "dsr1-nvfp4-4xb200-dp-attention"),
    ("DeepseekV3ForCausalLM", 4, 103, None, "modelopt_fp4", {}, "dsr1-nvfp4-b300-benchmark"),
    ("DeepseekV32ForCausalLM", 8, 100, None, None, {"speculative": True}, "dsv32-exp-8xb200"),
    ("DeepseekV4ForCausalLM", 4, 120, None, None, {}, "dsv4-flash-fp4-4xrtxpro6000"),
    ("GlmMoeDsaForCausalLM", 8, 90, None, None, {"speculative": True}, "glm5-fp8-8xh200-mtp"),
    ("Qwen3_5MoeForConditionalGeneration", 4, 120, None, "modelopt_fp4", {}, "qwen35-nvfp4-4xrtxpro6000"),
    ("Qwen3_5MoeForConditionalGeneration", 8, 90, None, "fp8", {"speculative": True}, "qwen35-fp8-8xh200-mtp"),
    ("LlamaForCausalLM", 8, 80, None, None, {}, "llama31-70b-8xa100"),
    ("MiniMaxM2ForCausalLM", 8, 120, None, None, {}, "minimax-m25-fp8-8xrtxpro6000"),
    ("Glm4MoeForCausalLM", 8, None, "amd", None, {}, "glm45-8xmi"),
    ("GptOssForCausalLM", 8, 100, None, None, {}, "gpt-oss-120b-mxfp4-8xb200"),
]


@pytest.mark.parametrize("architecture, ranks, sm, family, quantization, features, wanted", CHOICES)
def test_nearest_control(
    architecture: str,
    ranks: int,
    sm: int | None,
    family: str | None,
    quantization: str | None,
    features: dict[str, bool],
    wanted: str,
) -> None:
    facts: dict[str, Value] = {
        "model.architecture": architecture,
        "launch.ranks": ranks,
        "args.quantization": quantization,
        "gpu.family": family or FAMILY[sm or 100],
    }
    if sm is not None:
        facts["gpu.sm"] = sm
    facts.update(_features(architecture))
    facts.update({f"feature.{n}": v for n, v in features.items()})
    found = nearest(_launch(facts), load(Options()).deployments)
    assert found is not None
    assert found[0].id == wanted


NAMED: list[tuple[str, int | None, dict[str, Value], str]] = [
    # what the launch is; the control
    (V3, 8, {"gpu.name": "NVIDIA H20", "gpu.sm": 90, "weights.quantization": "fp8"}, "dsv3-fp8-8xh200"),
    (V3, 8, {"gpu.name": "NVIDIA H20-3e", "gpu.sm": 90, "weights.quantization": "w4afp8"}, "dsr1-w4afp8-8xh20"),
    (V3, 16, {"gpu.name": "NVIDIA H20", "gpu.sm": 90, "weights.quantization": "fp8", "feature.multi_node": True}, "dsv3-fp8-2node-16xh20"),
    (V3, 16, {"gpu.name": "NVIDIA H100 80GB HBM3", "gpu.sm": 90, "feature.multi_node": True, "feature.dp_attention": True}, "dsv3-fp8-2node-16xh100-dp-attention"),
    (V3, 8, {"gpu.name": "AMD Instinct MI300X", "gpu.family": "amd", "weights.quantization": "fp8"}, "dsr1-0528-fp8-8xmi300x"),
    (V3, 8, {"gpu.name": "AMD Instinct MI355X", "gpu.family": "amd", "weights.quantization": "quark"}, "dsr1-mxfp4-mi355x"),
    (V3, 8, {"gpu.name": "NVIDIA B200", "gpu.sm": 100, "weights.quantization": "fp8"}, "dsr1-0528-fp8-8xb200-plain"),
    (V3, 8, {"gpu.name": "NVIDIA B200", "gpu.sm": 100, "args.quantization": "modelopt_fp4"}, "dsr1-nvfp4-4xb200-pr8773"),
    (V3, 8, {"gpu.name": "NVIDIA B200", "gpu.sm": 100, "weights.quantization": "modelopt_fp4"}, "dsr1-nvfp4-4xb200-pr8773"),
    (V3, 12, {"gpu.name": "NVIDIA B200", "gpu.sm": 100, "args.quantization": "modelopt_fp4", "feature.pd": True, "feature.dp_attention": True, "feature.speculative": True}, "dsr1-nvfp4-pd-b200"),
    (V3, 8, {"gpu.name": "NVIDIA A100-SXM4-80GB", "gpu.sm": 80, "args.quantization": "moe_wna16"}, "dsr1-awq-8xa100"),
    ("DeepseekV4ForCausalLM", 8, {"gpu.name": "NVIDIA GB200", "gpu.sm": 100, "feature.multi_node": True, "feature.speculative": True}, "dsv4-pro-fp4-gb200-gb300"),
    ("GlmMoeDsaForCausalLM", 8, {"gpu.name": "NVIDIA GB300", "gpu.sm": 103, "feature.pd": True, "feature.dp_attention": True}, "glm5-pd-gb200-gb300"),
    ("GlmMoeDsaForCausalLM", 8, {"gpu.name": "NVIDIA RTX PRO 6000 Blackwell Server Edition", "gpu.sm": 120, "args.quantization": "modelopt_fp4"}, "kimi-k2-thinking-nvfp4-8x-rtx-pro-6000"),
    ("KimiK25ForConditionalGeneration", 8, {"gpu.name": "NVIDIA B200", "gpu.sm": 100, "args.quantization": "modelopt_fp4"}, "kimi-k25-nvfp4-8xb200"),
    ("Qwen3NextForCausalLM", 4, {"gpu.name": "NVIDIA H100 80GB HBM3", "gpu.sm": 90}, "qwen3-next-80b-4xh100"),
    ("Qwen3ForCausalLM", 2, {"gpu.name": "NVIDIA GeForce RTX 5090", "gpu.sm": 120}, "qwen3-4b-2x5090"),
    ("Qwen3MoeForCausalLM", 32, {"gpu.name": "NVIDIA H20", "gpu.sm": 90, "feature.multi_node": True}, "qwen3-235b-fp8-pp-4node-h20"),
    ("LlamaForCausalLM", 1, {"gpu.name": "NVIDIA H100 80GB HBM3", "gpu.sm": 90, "feature.speculative": True}, "spec-eagle3-llama31-8b-1xh100"),
    ("Qwen2ForCausalLM", 2, {"gpu.name": "NVIDIA H200", "gpu.sm": 90, "args.tp_size": 2, "args.dp_size": 1}, "own-run-tp2-2xh200"),
    ("Qwen2ForCausalLM", 2, {"gpu.name": "NVIDIA H200", "gpu.sm": 90, "args.tp_size": 1, "args.dp_size": 2}, "own-run-dp2-2xh200"),
    ("LlamaForCausalLM", 2, {"gpu.family": "cpu", "args.device": "cpu", "args.tp_size": 2}, "own-run-cpu-tp2"),
    (V3, None, {"gpu.family": "cpu", "args.device": "cpu", "args.quantization": "w8a8_int8"}, "dsv31-terminus-cpu-xeon"),
    ("Qwen3ForCausalLM", 4, {"args.device": "npu"}, "qwen3-32b-ascend-a3"),
    (V3, 16, {"args.device": "npu", "args.quantization": "modelslim", "feature.dp_attention": True}, "dsr1-w4a8-ascend-a3"),
]  # fmt: skip


@pytest.mark.parametrize("architecture, ranks, facts, wanted", NAMED, ids=[n[3] for n in NAMED])
def test_nearest_control_of_a_named_machine(
    architecture: str, ranks: int | None, facts: dict[str, Value], wanted: str
) -> None:
    known: dict[str, Value] = {"model.architecture": architecture, "launch.ranks": ranks, "args.quantization": None}
    sm = facts.get("gpu.sm")
    if isinstance(sm, int):
        known["gpu.family"] = FAMILY[sm]
    found = nearest(_launch({**known, **_features(architecture), **facts}), load(Options()).deployments)
    assert found is not None and found[0].id == wanted


def test_a_gpu_name_tells_cards_of_one_capability_apart() -> None:
    facts: dict[str, Value] = {
        "model.architecture": "Qwen3_5MoeForConditionalGeneration",
        "launch.ranks": 8,
        "args.quantization": "fp8",
        "gpu.sm": 90,
    }
    for name, wanted in (("NVIDIA H100 80GB HBM3", "qwen35-fp8-8xh100"), ("NVIDIA H200", "qwen35-fp8-8xh200-mtp")):
        found = nearest(_launch({**facts, "gpu.name": name}), load(Options()).deployments)
        assert found is not None and found[0].id == wanted


def test_nothing_comparable_gives_no_control() -> None:
    assert nearest(_launch({"model.architecture": "UnheardOfForCausalLM"}), load(Options()).deployments) is None


def _features(architecture: str) -> dict[str, Value]:
    patterns = {"dsa": _DSA, "mla": _MLA, "moe": _MOE, "hybrid": _HYBRID, "multimodal": _MULTIMODAL}
    return {f"feature.{name}": bool(p.search(architecture)) for name, p in patterns.items()}


def _launch(facts: dict[str, Value]) -> Launch:
    return Launch(
        id="L1",
        rows=np.arange(0),
        sources=(0,),
        lines=(1, 1),
        reached="config",
        ended="log-ends",
        ended_row=None,
        ended_why="",
        expected=(),
        seen=(),
        missing=(),
        stages={},
        marks=(),
        facts={n: Fact(n, v, None) for n, v in facts.items()},
        version=VersionInterval(),
    )
