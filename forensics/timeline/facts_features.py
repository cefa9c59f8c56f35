"""`feature.*`: what the launch uses, derived from its other facts. Unknown stays unknown (no fact)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from forensics.late import Late
from forensics.schema.facts import Value
from forensics.timeline.facts_sheet import Sheet

_DSA = Late(r"GlmMoeDsa|DeepseekV32|DeepseekV4|Dsa")
_MLA = Late(r"DeepseekV[234]|DeepseekV32|GlmMoeDsa|KimiK|KimiLinear|LongcatFlash|Mla|MiniCPM3|Glm4MoeLite")
_MOE = Late(
    r"Moe|MoE|MOE|Mixtral|DeepseekV|GptOss|MiniMax|KimiK|Kimi|Grok|Dbrx|Qwen3Next|Ernie4_5_Moe|Longcat|MiMoV2|Step3|"
    r"Llama4|Olmoe|Hunyuan|Bailing|Ling|Glm4Moe|GlmMoe|Nemotron_?H.*Moe|Arctic|Jamba"
)
_HYBRID = Late(
    r"Qwen3Next|Qwen3_5|FalconH1|NemotronH|Nemotron_H|JetNemotron|KimiLinear|Jamba|Bamba|Mamba|Lfm2|GraniteMoeHybrid|"
    r"MiniMaxText01|MiniMaxM1|BailingMoeLinear|Zamba|Plamo2|Samba"
)
_MULTIMODAL = Late(
    r"VL|Vision|Vl(?=Moe|For)|Llava|Mllama|Omni|Audio|Gemma3ForConditional|Gemma4|Llama4ForConditional|Glm4v|GlmOcr|"
    r"InternS1|Pixtral|Phi4MM|MiniCPMV|MiniCPMO|KimiVL|KimiK25|DotsOCR|Mistral3|Step3VL"
)


def add_features(sheet: Sheet) -> None:
    """All features whose ground is known. `where` is the place of the deciding fact."""
    _switches(sheet)
    _graphs(sheet)
    _parallel(sheet)
    _model(sheet)
    _kernels(sheet)


def _put(sheet: Sheet, name: str, value: bool, ground: str) -> None:
    sheet.put(f"feature.{name}", value, sheet.where(ground), f"inferred: {ground}")


def _known(sheet: Sheet, names: Iterable[str]) -> str | None:
    return next((n for n in names if n in sheet.facts), None)


def _on(value: Value) -> bool:
    return bool(value) and value not in ("null", "none", "None", "disabled")


def _switches(sheet: Sheet) -> None:
    """Features that one field switches on; where the dump is printed, an absent field means off."""
    for feature, names in (
        ("dp_attention", ("args.enable_dp_attention",)),
        ("speculative", ("args.speculative_algorithm",)),
        ("pd", ("args.disaggregation_mode",)),
        ("hicache", ("args.enable_hierarchical_cache",)),
        ("lora", ("args.enable_lora", "args.lora_paths")),
        ("torch_compile", ("args.enable_torch_compile",)),
        ("deterministic", ("args.enable_deterministic_inference",)),
    ):
        known = [n for n in names if n in sheet.facts]
        on = next((n for n in known if _on(sheet.value(n))), None)
        if known:
            _put(sheet, feature, on is not None, on or known[0])
        elif _dumped(sheet):
            _put(sheet, feature, False, "args.model_path")
    for feature, off in (("overlap", "args.disable_overlap_schedule"), ("radix_cache", "args.disable_radix_cache")):
        if off in sheet.facts:
            _put(sheet, feature, not _on(sheet.value(off)), off)


def _dumped(sheet: Sheet) -> bool:
    """Whether the whole field list is known, not only the flags of a command line."""
    return "args.tokenizer_path" in sheet.facts and "args.schedule_policy" in sheet.facts


def _graphs(sheet: Sheet) -> None:
    backend = _known(sheet, ("args.cuda_graph_backend_decode",))
    if sheet.value("args.device") == "cpu":
        _put(sheet, "cuda_graph", False, "args.device")
    elif "args.cuda_graph_config" in sheet.facts:
        text = str(sheet.value("args.cuda_graph_config"))
        found = re.search(r"decode(?:=|': )\w*[({].{0,20}?backend'?(?:=|: )'(\w+)'", text)
        if found:
            _put(sheet, "cuda_graph", found.group(1) != "disabled", "args.cuda_graph_config")
    elif _on(sheet.value("args.disable_cuda_graph")):
        _put(sheet, "cuda_graph", False, "args.disable_cuda_graph")
    elif backend and sheet.value(backend) is not None:
        _put(sheet, "cuda_graph", _on(sheet.value(backend)), backend)
    elif "args.disable_cuda_graph" in sheet.facts:
        _put(sheet, "cuda_graph", True, "args.disable_cuda_graph")


def _parallel(sheet: Sheet) -> None:
    nodes = sheet.value("args.nnodes")
    if isinstance(nodes, int):
        _put(sheet, "multi_node", nodes > 1, "args.nnodes")
    backend = sheet.value("args.moe_a2a_backend")
    if backend is not None:
        _put(sheet, "deepep", backend == "deepep", "args.moe_a2a_backend")
    elif "args.enable_deepep_moe" in sheet.facts:
        _put(sheet, "deepep", _on(sheet.value("args.enable_deepep_moe")), "args.enable_deepep_moe")
    elif _dumped(sheet):
        _put(sheet, "deepep", False, "args.model_path")


def _model(sheet: Sheet) -> None:
    name = sheet.value("model.architecture")
    ground = "model.architecture"
    if not isinstance(name, str):
        return
    _put(sheet, "dsa", bool(_DSA.search(name)), ground)
    _put(sheet, "mla", bool(_MLA.search(name)), ground)
    _put(sheet, "moe", bool(_MOE.search(name)), ground)
    _put(sheet, "hybrid", bool(_HYBRID.search(name)), ground)
    asked = sheet.value("args.enable_multimodal")
    _put(sheet, "multimodal", bool(_MULTIMODAL.search(name)) or asked is True, ground)


def _kernels(sheet: Sheet) -> None:
    """DeepGEMM: switched off by its variable or on by a backend choice; its own messages prove that it runs."""
    for variable in ("env.SGLANG_ENABLE_JIT_DEEPGEMM", "env.SGL_ENABLE_JIT_DEEPGEMM"):
        if variable in sheet.facts:
            value = str(sheet.value(variable)).lower() not in ("0", "false", "no", "off")
            if not value:
                _put(sheet, "deepgemm", False, variable)
                return
    for _, masked, row in sheet.first_rows():
        if "DeepGEMM JIT" in masked or "DeepGemm is enabled" in masked:
            sheet.put("feature.deepgemm", True, sheet.table.span(row), "inferred: a DeepGEMM message")
            return
    for name in ("args.fp8_gemm_runner_backend", "args.moe_runner_backend"):
        if sheet.value(name) == "deep_gemm":
            _put(sheet, "deepgemm", True, name)
