"""One cheap experiment where no known cause fits: take out the part of the server that failed, and change nothing else.

Rows of data: which innermost frames or words point to a part, which condition says that the part is in use, and the
change that takes it out. A part that its own frames name comes before one that is merely switched on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from forensics.diagnose.tried import has_step
from forensics.frozen import frozen
from forensics.late import Late
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import evaluate
from forensics.schema.finding import FixStep
from forensics.schema.launch import Failure
from forensics.timeline import component
from forensics.timeline.catalog_fix import check_changes

MAX_SWITCHES = 2
INNERMOST = 6
_RUNNING = frozenset({"warmup", "graph-capture", "prefill", "decode", "idle"})
_SERVING = frozenset({"prefill", "decode", "idle"})
_MEMORY = Late(r"(?i)\bout of memory\b|not enough (?:host )?memory")
_ELSEWHERE = frozenset({"host", "config", "tokenizer", "loader", "router", "detokenizer", "kv-transfer"})
"""Components that none of the features below is part of."""


@frozen
class Switch:
    """One part of the server. `place` finds it in frames or message; `used` is a condition over the launch; `steps`
    take it out; `name` for the report; `merely`: worth trying in these stages where only `used` speaks for it."""

    name: str
    place: Late[str]
    used: str
    steps: tuple[FixStep, ...]
    merely: frozenset[str] = frozenset()


def _off(*names: str) -> tuple[FixStep, ...]:
    return tuple(FixStep("flag", "remove", n, with_above=bool(i)) for i, n in enumerate(names))


def _set(name: str, value: str | None = None, kind: str = "flag") -> tuple[FixStep, ...]:
    return (FixStep(kind, "set", name, value),)


def _row(name: str, place: str, used: str, steps: tuple[FixStep, ...], merely: frozenset[str] = frozenset()) -> Switch:
    return Switch(name, Late(place), used, steps, merely)


SWITCHES: tuple[Switch, ...] = (
    _row(
        "the hierarchical cache",
        r"hiradix|hicache|cache_controller|memory_pool_host|load_back|write_backup",
        "args.enable_hierarchical_cache",
        _off("--enable-hierarchical-cache"),
        _SERVING,
    ),
    _row(
        "the LoRA adapters", r"\blora|/lora/|_lora", "feature.lora", _off("--lora-paths", "--enable-lora"), _SERVING
    ),
    _row(
        "speculative decoding",
        r"speculative/|eagle|\bdraft|\bverify\b|ngram|_mtp\b|nextn",
        "feature.speculative",
        _off("--speculative-algorithm"),
        _RUNNING,
    ),
    _row(
        "torch.compile",
        r"_dynamo|_inductor|torch_compile|/compilation/",
        "args.enable_torch_compile",
        _off("--enable-torch-compile"),
        _RUNNING,
    ),
    _row("piecewise graphs", r"piecewise", "", _set("--disable-piecewise-cuda-graph")),
    _row(
        "sglang's own all-reduce",
        r"custom_all_?reduce",
        "launch.ranks > 1 and not args.disable_custom_all_reduce",
        _set("--disable-custom-all-reduce"),
    ),
    _row(
        "the all-reduce fusion",
        r"allreduce_fusion|flashinfer_comm|trtllm_allreduce",
        "args.enable_flashinfer_allreduce_fusion",
        _off("--enable-flashinfer-allreduce-fusion"),
    ),
    _row("symmetric memory", r"symm_mem|symmetric", "args.enable_symm_mem", _off("--enable-symm-mem")),
    _row("expert balancing", r"eplb|expert_location|expert_distribution", "args.enable_eplb", _off("--enable-eplb")),
    _row(
        "the overlap of two batches",
        r"two_batch_overlap|operations_strategy",
        "args.enable_two_batch_overlap",
        _off("--enable-two-batch-overlap"),
    ),
    _row("DeepEP", r"deep_ep|deepep|token_dispatcher", "feature.deepep", _off("--moe-a2a-backend")),
    _row("DeepGEMM", r"deep_gemm|deepgemm", "", _set("SGLANG_ENABLE_JIT_DEEPGEMM", "0", "env")),
    _row("kernel autotuning", r"autotun", "", _set("--disable-flashinfer-autotune")),
    _row(
        "this grammar backend",
        r"constrained/|xgrammar|[Gg]rammar|outlines",
        'not args.grammar_backend = "llguidance"',
        _set("--grammar-backend", "llguidance"),
    ),
    _row("mixed chunks", r"mix_with_running|mixed_chunk", "args.enable_mixed_chunk", _off("--enable-mixed-chunk"),
         _SERVING),
    _row("sampling in flashinfer", r"sampler|sampling", "not args.sampling_backend = pytorch",
         _set("--sampling-backend", "pytorch")),
    _row(
        "the MoE kernels that the server chose",
        r"layers/moe|fused_moe|cutlass_moe|trtllm.*moe|moe_runner",
        'not args.moe_runner_backend = triton and not args.quantization ~ "fp4|int4|awq|gptq|w4"',
        _set("--moe-runner-backend", "triton"),
    ),
    _row(
        "the attention backend that the server chose",
        r"layers/attention|flashinfer/|flash_attn|flashmla|flash_mla|/fa3|attention_backend",
        "not args.attention_backend = triton and not feature.dsa",
        _set("--attention-backend", "triton"),
    ),
    _row(
        "the overlapped schedule",
        r"overlap|future_map|process_batch_result|filter_batch|merge_batch",
        "feature.overlap",
        _set("--disable-overlap-schedule"),
    ),
    _row(
        "prefix caching",
        r"radix_cache|chunk_cache|tree_cache|evict\b|inc_lock_ref|dec_lock_ref",
        "not args.disable_radix_cache",
        _set("--disable-radix-cache"),
    ),
    _row(
        "graph capture",
        r"graph_runner|CUDAGraph|cuda_graph|capture_begin",
        "not args.disable_cuda_graph",
        _set("--disable-cuda-graph"),
        frozenset({"graph-capture"}),
    ),
)  # fmt: skip


def switches_of(case: Case, failure: Failure, group: Sequence[Case]) -> tuple[tuple[str, tuple[FixStep, ...]], ...]:
    """At most `MAX_SWITCHES` parts to take out, each with the change that does it as this release spells it; none that
    a launch of `group` has tried. Empty for faults of memory, host, network and requests."""
    if failure.stage in ("client", "config") or _MEMORY.search(failure.text):
        return ()
    found: list[tuple[str, tuple[FixStep, ...]]] = []
    for switch in _candidates(case, failure):
        change = _spelled(switch, case)
        if change and not any(all(has_step(c.launch, s) for s in change) for c in group):
            found.append((switch.name, change))
        if len(found) == MAX_SWITCHES:
            break
    return tuple(found)


def _candidates(case: Case, failure: Failure) -> Iterator[Switch]:
    place = _place(case, failure)
    named = [s for s in SWITCHES if s.place.search(place)]
    yield from (s for s in named if _used(s, case))
    if failure.component in _ELSEWHERE:
        return
    merely = [s for s in SWITCHES if failure.stage in s.merely and s not in named]
    yield from (s for s in merely if _used(s, case))


def _place(case: Case, failure: Failure) -> str:
    """The innermost telling frames of the exception that states the failure, and its message."""
    block = case.blocks[failure.blocks[0]] if failure.blocks else None
    raised = next((r.frames for r in block.raised if r.frames), ()) if block is not None else ()
    frames = [f for f in raised or (block.frames if block else ()) if not component.PLUMBING.search(f.file)]
    told = " ".join(f"{f.file} {f.function}" for f in frames[-INNERMOST:])
    return f"{told} {failure.text[:600]}"


def _used(switch: Switch, case: Case) -> bool:
    return not switch.used or evaluate(switch.used, case).value is True


def _spelled(switch: Switch, case: Case) -> tuple[FixStep, ...]:
    """The change as the releases of the launch spell it; empty where they have no such switch."""
    for change in check_changes(switch.steps, case.launch.version):
        usable = tuple(s for s in change if s.kind in ("flag", "env"))
        if usable and usable[0] is change[0]:
            return usable
    return ()
