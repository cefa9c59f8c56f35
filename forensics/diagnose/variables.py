"""What was varied between two launches: flags and environment, without what cannot matter.

A `server_args=` dump states every field, also those that the server chose itself; the launch command states only what
a person chose. Where both launches print their command, the command decides; else the dumps are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from forensics.diagnose.controls import equal
from forensics.frozen import frozen
from forensics.schema.facts import Value
from forensics.schema.launch import Launch
from forensics.schema.span import Span
from forensics.timeline.attempts import Changed, Stated, between, stated
from forensics.timeline.catalog import catalog

NEUTRAL = frozenset(
    {
        "admin_api_key", "api_key", "base_gpu_id", "bucket_e2e_request_latency", "bucket_inter_token_latency",
        "bucket_time_to_first_token", "chat_template", "collect_tokens_histogram", "crash_dump_folder",
        "crash_dump_path", "decode_log_interval", "dist_init_addr", "dist_init_method", "download_dir",
        "enable_cache_report", "enable_metrics", "enable_metrics_for_all_schedulers",
        "enable_request_time_stats_logging", "enable_trace", "export_metrics_to_file",
        "export_metrics_to_file_dir", "file_storage_path", "file_storage_pth", "gc_warning_threshold_secs",
        "gpu_id_step", "host", "log_level", "log_level_http", "log_requests", "log_requests_format",
        "log_requests_level", "log_requests_target", "nccl_port", "node_rank", "otlp_traces_endpoint", "port",
        "prefill_log_interval", "random_seed", "reasoning_parser", "served_model_name", "show_time_cost",
        "soft_watchdog_timeout", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "stat_loggers",
        "tokenizer_path", "tool_call_parser", "uvicorn_access_log_exclude_prefixes", "watchdog_timeout",
        "weight_version",
    }
)  # fmt: skip
"""Fields that place, name, seed or observe a server: a difference in them explains no failure."""

FOLLOWERS: dict[str, tuple[str, ...]] = {
    "disable_cuda_graph": ("cuda_graph_config", "cuda_graph_bs", "cuda_graph_bs_decode", "cuda_graph_max_bs",
                           "cuda_graph_max_bs_decode", "cuda_graph_mode", "disable_piecewise_cuda_graph",
                           "disable_decode_cuda_graph", "disable_prefill_cuda_graph"),
    "kv_cache_dtype": ("nsa_prefill_backend", "nsa_decode_backend", "dsa_prefill_backend", "dsa_decode_backend"),
    "attention_backend": ("prefill_attention_backend", "decode_attention_backend", "page_size",
                          "sampling_backend"),
    "speculative_algorithm": ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens",
                              "speculative_draft_model_path", "disable_overlap_schedule", "max_running_requests"),
    "enable_dp_attention": ("chunked_prefill_size", "schedule_conservativeness", "dp_size"),
    "tp_size": ("mem_fraction_static", "chunked_prefill_size"),
    "quantization": ("moe_runner_backend", "fp4_gemm_runner_backend", "fp8_gemm_runner_backend"),
}  # fmt: skip
"""Fields that the server derives from another one: they differ because their leader does."""

NEUTRAL_ENV = frozenset(
    {
        "CUDA_VISIBLE_DEVICES", "HF_HOME", "HF_HUB_OFFLINE", "HF_TOKEN", "HOME", "PATH", "PWD", "PYTHONPATH",
        "PYTHONUNBUFFERED", "SGLANG_LOGGING_CONFIG_PATH", "TERM", "TMPDIR", "TRANSFORMERS_CACHE", "USER",
    }
)  # fmt: skip


@frozen
class Varied:
    """One variable that differs. `kind`: flag or env; `name` is the server_args field or the environment name."""

    kind: str
    name: str
    before: Value
    after: Value
    where: Span | None = None

    @property
    def fact(self) -> str:
        """Dotted name of the fact behind it."""
        return f"{'args' if self.kind == 'flag' else 'env'}.{self.name}"

    def text(self) -> str:
        """`--kv-cache-dtype fp8_e4m3 -> auto`, in the spelling of a command line."""
        name = f"--{self.name.replace('_', '-')}" if self.kind == "flag" else self.name
        return f"{name} {_shown(self.before)} → {_shown(self.after)}"


def varied(before: Stated, after: Stated) -> tuple[Varied, ...]:
    """What differs between two launches, flags first, in the order of their names; without places."""
    found = [Varied(c.kind, c.name, c.before, c.after) for c in between(before, after) if _counts(c)]
    names = {v.name for v in found}
    led = {name for leader, group in FOLLOWERS.items() if leader in names for name in group}
    return tuple(v for v in found if v.name not in led)


def _counts(change: Changed) -> bool:
    """Whether a change can explain a failure."""
    neutral = NEUTRAL if change.kind == "flag" else NEUTRAL_ENV
    return change.name not in neutral and not _same(change.name, change.before, change.after)


MAX_COMPARED = 20_000
"""Settings that differ between two launches, over all pairs, that are looked at one by one: ten launches of fifty
fields each. A log in which every launch differs from all others in hundreds of fields has more."""


class Trials:
    """Variations between launches, each computed once: launches with equal settings (a crash loop) count as one."""

    def __init__(self) -> None:
        self._settings: dict[int, int] = {}
        self.coarse = False
        """Whether launches were held against each other by the number of their settings that differ, for the cost."""
        self._compared = 0
        self._sets: list[frozenset[tuple[str, str]]] = []
        self._stated: dict[int, Stated] = {}
        self._known: dict[frozenset[tuple[str, str]], int] = {}
        self._varied: dict[tuple[int, int], tuple[Varied, ...]] = {}
        self._placed: dict[tuple[int, int], tuple[Varied, ...]] = {}
        self._nearest: dict[tuple[int, ...], Launch] = {}
        self._steps: dict[tuple[int, ...], tuple[tuple[Varied, ...], ...]] = {}
        self._kept: list[Launch] = []
        self.concerned: dict[tuple[str, str, str], bool] = {}
        """Whether a finding (by id) is about a variable (kind and name); filled by those who ask."""

    def settings(self, launch: Launch) -> int:
        """A number that is equal for launches whose settings are."""
        found = self._settings.get(id(launch))
        if found is None:
            settings = _settings(launch)
            found = self._known.setdefault(settings, len(self._known))
            if found == len(self._sets):
                self._sets.append(settings)
            self._settings[id(launch)] = found
            self._kept.append(launch)
        return found

    def varied(self, before: Launch, after: Launch) -> tuple[Varied, ...]:
        """`varied`, with places in the later launch."""
        key = id(before), id(after)
        found = self._placed.get(key)
        if found is None:
            found = tuple(_placed(v, before, after) for v in self._between(before, after))
            self._placed[key] = found
        return found

    def steps(self, launches: Sequence[Launch]) -> tuple[tuple[Varied, ...], ...]:
        """What each launch but the first varied, held against the earlier one that differs least from it."""
        key = tuple(map(id, launches))
        found = self._steps.get(key)
        if found is None:
            later = list(enumerate(launches))[1:]
            found = self._steps[key] = tuple(self.varied(self.nearest(launches[:n], new), new) for n, new in later)
        return found

    def nearest(self, earlier: Sequence[Launch], launch: Launch) -> Launch:
        """The earlier launch with the fewest differences, the first of them among equals."""
        key = (*(id(e) for e in earlier), id(launch))
        found = self._nearest.get(key)
        if found is None:
            counted = [(self._distance(e, launch), n) for n, e in enumerate(earlier)]
            found = self._nearest[key] = earlier[min(counted)[1]]
        return found

    def _distance(self, before: Launch, after: Launch) -> int:
        """How many variables differ; once many were compared in detail, how many settings do."""
        key = self.settings(before), self.settings(after)
        if key[0] == key[1]:
            return 0
        if key in self._varied:
            return len(self._varied[key])
        differing = len(self._sets[key[0]] ^ self._sets[key[1]])
        self._compared += differing
        if self._compared > MAX_COMPARED:
            self.coarse = True
            return differing
        return len(self._between(before, after))

    def _between(self, before: Launch, after: Launch) -> tuple[Varied, ...]:
        """What differs, without places."""
        key = self.settings(before), self.settings(after)
        if key[0] == key[1]:
            return ()
        if key not in self._varied:
            self._varied[key] = varied(self._stated_by(before), self._stated_by(after))
        return self._varied[key]

    def _stated_by(self, launch: Launch) -> Stated:
        found = self._stated.get(id(launch))
        if found is None:
            found = self._stated[id(launch)] = stated(launch)
        return found


def _settings(launch: Launch) -> frozenset[tuple[str, str]]:
    return frozenset(
        (name, str(fact.value))
        for name, fact in launch.facts.items()
        if name.startswith(("args.", "env."))
        and not fact.how.startswith("inferred")
        and name.partition(".")[2] not in (NEUTRAL if name.startswith("args.") else NEUTRAL_ENV)
    )


def _placed(variable: Varied, before: Launch, after: Launch) -> Varied:
    place = after.facts.get(variable.fact) or before.facts.get(variable.fact)
    return Varied(variable.kind, variable.name, variable.before, variable.after, place.where if place else None)


@lru_cache(maxsize=1024)
def spellings(name: str) -> frozenset[str]:
    """All server_args fields that are one setting under the names of different releases."""
    known = catalog()
    flag = known.by_dest.get(name, "--" + name.replace("_", "-"))
    flags = {flag, *known.renamed_from(flag)}
    renamed = known.renames(flag)
    if renamed is not None and len(renamed.new) == 1:
        flags.add(renamed.new[0].partition("=")[0])
    return frozenset({name, *(known.dest(f) for f in flags if f.startswith("--"))})


def _same(name: str, a: Value, b: Value) -> bool:
    if name == "model_path":
        return str(a).rstrip("/").rsplit("/", 1)[-1] == str(b).rstrip("/").rsplit("/", 1)[-1]
    return equal(a, b)


def _shown(value: Value) -> str:
    return "(unset)" if value is None else str(value)
