"""The control that an expert would hold against a launch, for a dozen launches."""

from __future__ import annotations

import re

import numpy as np
import pytest

from forensics.diagnose.controls import nearest
from forensics.knowledge.store import load
from forensics.schema.facts import Fact, Value, VersionInterval
from forensics.schema.launch import Launch
from forensics.schema.options import Options
from forensics.timeline.facts_features import _DSA, _HYBRID, _MLA, _MOE, _MULTIMODAL

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
    for name, pattern in (
        ("dsa", _DSA),
        ("mla", _MLA),
        ("moe", _MOE),
        ("hybrid", _HYBRID),
        ("multimodal", _MULTIMODAL),
    ):
        facts[f"feature.{name}"] = bool(re.search(pattern, architecture))
    facts.update({f"feature.{n}": v for n, v in features.items()})
    found = nearest(_launch(facts), load(Options()).deployments)
    assert found is not None
    assert found[0].id == wanted


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
