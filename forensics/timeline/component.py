"""What a stack says: the component that failed and the place in the server's work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from forensics.late import Late
from forensics.schema.block import Frame

COMPONENTS: tuple[tuple[Late[str], str], ...] = tuple(
    (Late(pattern), name)
    for pattern, name in (
        (
            r"distributed/|pynccl|custom_all_reduce|torch_symm_mem|c10d|gloo|deep_ep|parallel_state|communicat|nccl",
            "communication",
        ),
        (r"disaggregation/|mooncake|nixl", "kv-transfer"),
        (r"safetensors|model_loader|weight_utils|weight_loader|load_model|load_weights|torch/serialization", "loader"),
        (
            r"server_args|configs/|configuration_|hf_transformers|model_config|arg_groups|argparse|huggingface_hub",
            "config",
        ),
        (r"tokenizer|(?:chat_)?template(?:_manager)?|jinja|openai_api|entrypoints/openai", "tokenizer"),
        (r"constrained/|xgrammar|grammar|outlines|llguidance", "grammar"),
        (r"quantization/|fp8_kernel|fp8_utils|marlin|awq|gptq", "quantization"),
        (
            r"triton/|flashinfer|deep_gemm|flash_attn|flash_attention|cutlass|sgl_kernel|jit_kernel|tvm|flash_mla|cuda_graph_wrapper"
            r"|kernels/",
            "kernel",
        ),
        (r"layers/sampler|sampling|logits_processor", "sampling"),
        (r"layers/attention|attention", "attention"),
        (r"layers/moe|moe", "moe"),
        (r"speculative/|eagle", "speculative"),
        (r"cuda_graph_runner|graph_runner", "graph"),
        (r"mem_cache/|memory_pool|allocator|radix_cache|hiradix", "kv-cache"),
        (r"layers/", "layer"),
        (r"/models/|modeling_", "model"),
        (r"managers/scheduler|schedule_batch|schedule_policy|scheduler_", "scheduler"),
        (r"managers/detokenizer", "detokenizer"),
        (r"model_executor/|tp_worker", "model-runner"),
        (r"lora", "lora"),
        (r"sglang_router|router", "router"),
        (r"multiprocessing/|faulthandler|numa|psutil|subprocess", "host"),
    )
)

OF_KEY = {
    "collective-timeout": "communication",
    "process-group": "communication",
    "peer-lost": "communication",
    "load-barrier": "loader",
    "peer-wait": "communication",
    "kv-transfer": "kv-transfer",
    "register": "kv-transfer",
    "transfer-engine": "kv-transfer",
    "rdma": "communication",
    "nvshmem-late": "communication",
    "name-lookup": "communication",
    "collective-mismatch": "communication",
    "watchdog": "scheduler",
    "health": "scheduler",
    "child-died": "host",
    "killed-by-shell": "host",
    "bind": "host",
    "port-taken": "host",
    "shm": "host",
    "gpu-health": "host",
    "memory-saver": "host",
    "pool-oom": "kv-cache",
    "memory-leak": "kv-cache",
    "argparse": "config",
    "nan-sampling": "sampling",
    "nan-sanitized": "sampling",
    "nan-detected": "sampling",
    "weights-missing": "loader",
    "ptxas": "kernel",
    "device-assert": "kernel",
    "router-start": "router",
    "http-error": "tokenizer",
    "circuit-open": "router",
    "panic": "router",
    "ucx": "kv-transfer",
    "gpu-fault": "kernel",
}
"""Component by the key of a phrase, for lines without a stack."""

_DRIVER = Late(
    r"torch/(?:cuda|xpu|mps)/__init__\S* (?:_lazy_init|init|set_device|device_count|get_device_\w+|_check_\w+)$"
    r"|pynvml"
)
"""The driver's own door: what fails there is the machine, whoever asked."""
PLUMBING = Late(
    r"torch/(?:nn/modules|utils/_contextlib|_ops|_dynamo|_inductor|_tensor|functional|library)|/threading\.py|/concurrent/"
    r"|<frozen|<string>|/asyncio/|contextlib|/importlib/|functools|torch/cuda/__init__|torch/_higher_order"
)
"""Frames that every stack passes through."""

STAGE_FUNCTIONS: tuple[tuple[Late[str], str], ...] = tuple(
    (Late(pattern), stage)
    for pattern, stage in (
        (
            r"^(?:init_torch_distributed|init_distributed_environment|initialize_model_parallel|init_process_group|init_parallel\w*)$",
            "init",
        ),
        (
            r"^(?:load_model|_load_model|get_model|load_weights|load_weights_and_postprocess|get_tokenizer|get_processor)$",
            "load",
        ),
        (
            r"^(?:init_memory_pool|init_kv_cache|init_kv_cache_pool|profile_max_num_token|_?init_pools?|configure_kv_cache_dtype"
            r"|profile_available_bytes|init_cache_with_memory_pool|alloc_memory_pool|init_memory_pools"
            r"|_?handle_max_mamba_cache|_?resolve_memory_pool_config|_apply_memory_budget|config_from_budget"
            r"|_profile_available_bytes|resolve_max_num_reqs|_resolve_max_num_reqs|set_num_tokens_hybrid\w*"
            r"|calculate_pool_sizes\w*|_derive_pool_sizes|_create_buffers\w*|_build_\w*(?:kv_pool|req_pool|token_pool)"
            r"|_build_token_to_kv_pool_allocator|init_kv_buffer|_allocate_host_buffer)$",
            "kv-pool",
        ),
        (
            r"^(?:init_cuda_graphs?|init_device_graphs|init_all_cuda_graphs|init_piecewise_cuda_graphs?|capture"
            r"|_capture_one_stream|capture_one_batch_size|warmup_torch_compile|capture_cuda_graph)$",
            "graph-capture",
        ),
    )
)
_FORWARD = Late(r"torch/nn/modules|/layers/|/models/|forward")
_SPECULATIVE = Late(r"^(?:verify|forward_target_verify|draft|draft_forward|forward_draft)$")
_DRAFT_EXTEND = Late(r"draft_extend|forward_target_extend")
EVENT_LOOP = Late(r"^(?:event_loop_\w+|run_event_loop|dispatch_event_loop)$")

PHASE_FUNCTIONS: tuple[tuple[Late[str], str], ...] = tuple(
    (Late(pattern), phase)
    for pattern, phase in (
        (r"self_check|check_memory|on_idle|check_during_idle|_check_\w*leak|invariant_check|maybe_sleep", "idle"),
        (
            r"prefill|forward_extend|prepare_for_extend|prepare_for_prealloc|forward_draft_extend|alloc_for_extend|pop_bootstrapped",
            "prefill",
        ),
        (
            r"decode|update_running_batch|prepare_for_verify|forward_target_verify|\bverify\b|retract|pop_transferred|pop_preallocated",
            "decode",
        ),
    )
)


def component_of(frames: Sequence[Frame]) -> str:
    """The component that the innermost telling frame belongs to; "" where no frame tells."""
    return next((name for frame in reversed(frames) if (name := _component_at(frame.file, frame.function))), "")


@lru_cache(maxsize=2048)
def _component_at(file: str, function: str) -> str:
    """The component of one frame, "" where it tells none. Ranks and launches show the same frames."""
    place = f"{file} {function}"
    if _DRIVER.search(place):
        return "host"
    if PLUMBING.search(file):
        return ""
    return next((name for pattern, name in COMPONENTS if pattern.search(place)), "")


_OF_SOURCE = (
    (
        Late(r"\b(?:worker_pool|rdma_\w+|tcp_transport|transfer_\w+|ucx_\w+|nixl_\w+)\.(?:cpp|cc|h):\d+"),
        "kv-transfer",
    ),
    (Late(r"NCCL WARN|NCCL error|\bgloo\b"), "communication"),
    (Late(r"sglang_router|sgl_model_gateway|http_request\{"), "router"),
)


def of_message(text: str) -> str:
    """The component that a line without a stack names by its own header; "" where it names none."""
    head = text[:400]
    return next((name for pattern, name in _OF_SOURCE if pattern.search(head)), "")


def startup_stage(frames: Sequence[Frame]) -> str | None:
    """The start-up stage that a stack is in, or None. Inside the event loop there is none."""
    names = [f.function for f in frames]
    if any(EVENT_LOOP.match(n) for n in names):
        return None
    found: str | None = None
    eager = False
    for frame in frames:
        for pattern, stage in STAGE_FUNCTIONS:
            if pattern.search(frame.function):
                found = stage
        if "eager_runner" in frame.file or frame.function == "kernel_warmup":
            eager = True
        if eager and _FORWARD.search(f"{frame.file} {frame.function}"):
            return "warmup"  # kernels are warmed up inside init_cuda_graphs even where graphs are off
        if "cuda_graph_runner" in frame.file or "graph_runner" in frame.file:
            found = "graph-capture"
    return found


def phase_of(frames: Sequence[Frame]) -> str | None:
    """prefill, decode or idle from the innermost function that names one, or None. Speculative verification and
    drafting are decode, whichever helpers they call."""
    if any(_SPECULATIVE.match(f.function) for f in frames) and not any(
        _DRAFT_EXTEND.search(f.function) for f in frames
    ):
        return "decode"
    for frame in reversed(frames):
        if EVENT_LOOP.match(frame.function):
            return None
        for pattern, phase in PHASE_FUNCTIONS:
            if pattern.search(frame.function):
                return phase
    return None


def is_scheduler(frames: Sequence[Frame]) -> bool:
    """Whether the stack belongs to a scheduler process."""
    return any(f.function == "run_scheduler_process" or EVENT_LOOP.match(f.function) for f in frames)
