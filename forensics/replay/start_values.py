"""What a server puts into its own arguments at start-up where nobody gave a value.

A `server_args=` dump is printed after that, so it states the server's choices like a person's. The choices are those of
sglang's `ServerArgs.__post_init__` and its handlers (later `arg_groups/`), read over the releases 0.3.6 to 0.5.23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from forensics.timeline.catalog import catalog

Args = Mapping[str, object]
"""All fields of a dump by name."""

OBJECTS = frozenset({"cuda_graph_config", "model_config", "custom_sigquit_handler"})
"""Fields that the server always replaces by an object of its own: what was given cannot be told."""

_TIERS = frozenset({2048, 4096, 8192, 16384})
_GRAPH_TIERS = frozenset({8, 24, 32, 80, 160, 256, 512})
"""Choices by the memory of the GPU (and whether there are fewer than four ranks)."""
_SHARES = frozenset({0.88, 0.87, 0.85, 0.83, 0.82, 0.81, 0.79, 0.78})
"""Shares of the memory that older releases chose by the number of ranks."""
_BY_MEMORY = frozenset({"chunked_prefill_size", "cuda_graph_max_bs", "cuda_graph_max_bs_decode", "page_size"})
_LADDERS: tuple[tuple[range, ...], ...] = (
    (range(1, 3), range(4, 13, 4), range(16, 257, 8), range(272, 512, 16), range(512, 1 << 16, 32)),
    (range(1, 9), range(10, 33, 2), range(40, 65, 4), range(72, 257, 8), range(272, 1 << 16, 16)),
    (range(1, 3), range(4, 9, 4), range(16, 257, 8)),
    (range(1, 33), range(40, 161, 16)),
    (range(1, 1 << 16),),
    (range(1, 17), range(18, 31, 2), range(32, 81, 4), range(84, 1 << 16, 8)),
    *(
        (range(4, 33, 4), range(48, 257, 16), range(288, 513, 32), range(first, 1025, 64), range(1280, 4097, 256),
         range(4608, 1 << 17, 512))
        for first in (576, 640)
    ),
    (range(4, 33, 4), range(48, 257, 16), range(288, 513, 32), range(640, 4097, 128), range(4352, 1 << 17, 256)),
)  # fmt: skip
"""Sizes that graphs are captured for, up to a largest one, with and without speculation, of decode and prefill."""
_SIZES = {
    "cuda_graph_bs": "cuda_graph_max_bs",
    "cuda_graph_bs_decode": "cuda_graph_max_bs_decode",
    "cuda_graph_bs_prefill": "cuda_graph_max_bs_prefill",
    "piecewise_cuda_graph_tokens": "piecewise_cuda_graph_max_tokens",
}
_DERIVED = {
    "tokenizer_path": "model_path",
    "served_model_name": "model_path",
    "speculative_moe_runner_backend": "moe_runner_backend",
    "speculative_moe_a2a_backend": "moe_a2a_backend",
    "speculative_draft_model_quantization": "quantization",
    "speculative_draft_model_revision": "revision",
    "speculative_boundary_reduction": "boundary_reduction",
    "piecewise_cuda_graph_max_tokens": "chunked_prefill_size",
    "expert_distribution_recorder_buffer_size": "eplb_rebalance_num_iterations",
}
"""Fields that take over another one's value."""
_FIXED: dict[str, tuple[object, ...]] = {
    "grammar_backend": ("xgrammar",),
    "load_balance_method": ("round_robin",),
    "expert_distribution_recorder_buffer_size": (1000,),
    "speculative_moe_runner_backend": ("auto",),
    "speculative_moe_a2a_backend": ("none",),
    "speculative_draft_model_revision": ("main",),
    "piecewise_cuda_graph_max_tokens": (2048, 4096),
    "boundary_reduction": ("rs+rsv",),
    "mm_feature_transport": ("cpu", "cuda_ipc"),
    "mamba_scheduler_strategy": ("no_buffer",),
    "mamba_radix_cache_strategy": ("no_buffer", "extra_buffer"),
    "flashinfer_allreduce_fusion_backend": ("auto",),
    "page_size": (1,),
}
"""Values that do not hang on the machine or on other fields."""


def _sampling(args: Args) -> object:
    """FlashInfer is looked for on CUDA alone, and deterministic inference does without."""
    plain = args.get("device") != "cuda" or bool(args.get("enable_deterministic_inference"))
    return "pytorch" if plain else "flashinfer"


_WHERE: dict[str, Callable[[Args], object]] = {
    "sampling_backend": _sampling,
    "enable_lora": lambda args: bool(args.get("lora_paths")),
    "expert_distribution_recorder_mode": lambda args: "stat" if args.get("enable_eplb") else None,
    "ep_dispatch_algorithm": lambda args: "static" if args.get("enable_eplb") else None,
    "max_running_requests": lambda args: 48 if args.get("speculative_algorithm") else None,
    "load_balance_method": lambda args: (
        "follow_bootstrap_room" if args.get("disaggregation_mode") == "prefill" else "round_robin"
    ),
    "schedule_conservativeness": lambda args: 0.3 if args.get("enable_dp_attention") else None,
    "disable_cuda_graph": lambda args: args.get("device") == "cpu",
}
"""Values that follow from other fields."""


def chosen(dest: str, value: object, args: Args, defaults: Sequence[object], memory: float | None = None) -> bool:
    """Whether the server would put this value into an argument that nobody gave, so that it can be left out.
    `defaults`: of the releases that the log can be of; `memory`: of one GPU in GB, where the log states it."""
    if dest == "device":
        return value != "cpu"  # the hardware is found; only the choice of the CPU on a machine with a GPU is one
    if dest == "mem_fraction_static":
        return _computed(value)
    if dest in _SIZES:
        return _ladder(value, args.get(_SIZES[dest]))
    if dest == "chunked_prefill_size":
        return value == _prefill_tier(memory, args) and None in defaults
    if dest in _WHERE and value == _WHERE[dest](args) and value is not None:
        return True
    source = _DERIVED.get(dest)
    if source is not None and args.get(source) is not None and value == args[source]:
        return True
    if not any(default in (None, "auto") for default in defaults):
        return False
    return value in _FIXED.get(dest, ()) or value in _once_default(dest)


def perhaps_chosen(dest: str, value: object, args: Args) -> bool:
    """Whether the server may have chosen this value, by the machine or the model. It is stated all the same: that
    changes nothing where the server would choose it again."""
    if dest == "chunked_prefill_size":
        return value in _TIERS
    if dest == "mem_fraction_static":
        return value in _SHARES or (isinstance(value, float) and 0.7 < value < 0.95 and round(value * 200) % 2 == 1)
    if dest in ("cuda_graph_max_bs", "cuda_graph_max_bs_decode"):
        return value in _GRAPH_TIERS
    if dest == "page_size":
        return value in (16, 32, 64, 128, 256)
    if dest == "disable_overlap_schedule":
        return bool(args.get("speculative_algorithm")) or "mamba" in str(args.get("model_path")).lower()
    if dest == "ep_size":
        return value == args.get("tp_size")
    if dest in ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"):
        return True
    return dest in _MACHINE


_MACHINE = frozenset(
    {
        "attention_backend", "decode_attention_backend", "prefill_attention_backend", "mm_attention_backend",
        "moe_runner_backend", "nsa_prefill_backend", "nsa_decode_backend", "dsa_prefill_backend", "dsa_decode_backend",
        "linear_attn_decode_backend", "linear_attn_prefill_backend", "swa_full_tokens_ratio", "fp8_gemm_runner_backend",
        "fp4_gemm_runner_backend", "kv_cache_dtype", "mamba_ssm_dtype", "piecewise_cuda_graph_max_tokens",
        "disable_piecewise_cuda_graph", "enable_flashinfer_allreduce_fusion",
    }
)  # fmt: skip
"""Fields whose value the server chooses by the GPU or the model where nobody gave one."""


def as_given(dest: str, value: object, args: Args) -> object:
    """The value before the server changed it: with data-parallel attention it divides the prefill chunk by the number
    of groups, and takes three tenths of the conservativeness. Stated as dumped, it would be changed again."""
    if not args.get("enable_dp_attention"):
        return value
    if dest == "chunked_prefill_size" and isinstance(value, int) and value > 0:
        return value * _groups(args)
    if dest == "schedule_conservativeness" and isinstance(value, int | float):
        return round(value / 0.3, 4)
    return value


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _computed(value: object) -> bool:
    """A share of the memory as the server rounds it: people write steps of half a percent."""
    if not isinstance(value, float) or not 0.4 < value < 1:
        return False
    steps = value * 200
    return abs(steps - round(steps)) > 1e-6


def _ladder(value: object, most: object) -> bool:
    """Whether graph sizes are those that the server derives from the largest one, which has a field of its own."""
    if not isinstance(value, list | tuple) or not isinstance(most, int):
        return False
    sizes = list(value)
    return any(sizes == rungs or sizes == [*rungs, most] for rungs in (_rungs(ladder, most) for ladder in _LADDERS))


def _rungs(ladder: Sequence[range], most: int) -> list[int]:
    return [size for part in ladder for size in part if size <= most]


def _prefill_tier(memory: float | None, args: Args) -> int | None:
    """The prefill chunk that the server chooses by the GPU's memory in GB; that of a data-centre GPU (of a
    CPU: the general one) where it is unknown."""
    tiers = ((35, 2048), (60, 4096), (160, 8192))
    unknown = 4096 if args.get("device") == "cpu" else 8192
    size = unknown if memory is None else next((size for most, size in tiers if memory < most), 16384)
    return size // _groups(args) if args.get("enable_dp_attention") else size


def _groups(args: Args) -> int:
    return max(1, _whole(args.get("dp_size")), _whole(args.get("attn_dp_size")))


def _once_default(dest: str) -> tuple[object, ...]:
    """Defaults that other releases state: where this one leaves the choice to start-up, it comes to the same."""
    book = catalog()
    flag = book.by_dest.get(dest)
    if flag is None or dest in _BY_MEMORY or (dest in _MACHINE and dest != "swa_full_tokens_ratio"):
        return ()
    values = (change["value"] for change in book.flags[flag].get("default", ()))
    return tuple(v for v in values if isinstance(v, str | int | float) and not isinstance(v, bool))
