"""The nearest launch known to work, and how a failing launch differs from it.

Nearest: same hardware and quantization first, then architecture, then features. A control that does not state a
setting says nothing about it, so only what it states is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from forensics.frozen import frozen
from forensics.late import Late
from forensics.rulebook.case import Case
from forensics.rulebook.versions import overlap
from forensics.schema.facts import Fact, Value
from forensics.schema.finding import Deployment
from forensics.schema.launch import Launch
from forensics.schema.span import Span

STRENGTH = {"accuracy": 4, "throughput": 3, "served": 3, "benchmarked": 2, "recommended": 1}
UNSET = (None, "auto", "", False, ())
SITE = frozenset(
    {
        "api_key", "context_length", "dist_init_addr", "download_dir", "host", "log_level",
        "max_running_requests", "mem_fraction_static", "model_path", "nccl_port", "port", "random_seed",
        "served_model_name", "tokenizer_path", "watchdog_timeout",
    }
)  # fmt: skip
"""Arguments of a site, a seed or a size: they differ between any two launches and name no mechanism."""
SIZES = ("tp_size", "dp_size", "pp_size", "ep_size")
OTHER_DEVICES = frozenset({"cpu", "npu", "xpu", "hpu"})
"""Devices that are a family of their own: nothing that runs on a GPU is a control for them."""
FAMILIES = ((120, 129, "blackwell"), (100, 110, "blackwell"), (90, 99, "hopper"), (89, 89, "ada"), (80, 88, "ampere"))


@frozen
class Difference:
    """One setting in which a launch and a control differ. `name` is a dotted fact name."""

    name: str
    here: Value
    control: Value
    tested: bool
    where: Span | None


@frozen
class Comparison:
    """The nearest control with the reason for choosing it and all differences."""

    deployment: Deployment
    why: str
    differences: tuple[Difference, ...]


def nearest(launch: Launch, deployments: Iterable[Deployment]) -> tuple[Deployment, str] | None:
    """The control to hold against a launch, or None where nothing comparable is known."""
    here = _here(launch)
    scored = [(score, d) for d in deployments if (score := _score(here, d)) is not None]
    if not scored:
        return None
    best = min(scored, key=lambda pair: ([-x for x in pair[0]], pair[1].id))
    return best[1], _why(here, best[1])


@frozen
class _Here:
    """What a launch shows of that by which controls are chosen; texts in lower case, "" where unknown."""

    architecture: str
    sm: Value
    gpu: frozenset[str]
    family: str
    ranks: Value
    flag: str
    checkpoint: str
    quantized: bool
    features: frozenset[str]
    sizes: tuple[tuple[str, Value], ...]


def _here(launch: Launch) -> _Here:
    facts = launch.facts
    device = _text(launch, "args.device") or _text(launch, "launch.device")
    count, sm = facts.get("launch.ranks") or facts.get("gpu.count"), facts.get("gpu.sm")
    return _Here(
        architecture=_text(launch, "model.architecture"),
        sm=sm.value if sm is not None else None,
        gpu=frozenset(re.findall(r"\w+", _text(launch, "gpu.name"))),
        family=device if device in OTHER_DEVICES else _text(launch, "gpu.family"),
        ranks=count.value if count is not None else None,
        flag=_text(launch, "args.quantization").removeprefix("none"),
        checkpoint=_text(launch, "weights.quantization"),
        quantized="args.quantization" in facts or "weights.quantization" in facts,
        features=frozenset(n.split(".", 1)[1] for n, f in facts.items() if n[:8] == "feature." and f.value is True),
        sizes=tuple((n, f.value) for n in SIZES if (f := facts.get(f"args.{n}")) is not None),
    )


def compare(case: Case, same: Sequence[Case], deployments: Iterable[Deployment]) -> Comparison | None:
    """Hold a launch against its nearest control. `same`: other launches of the input that failed in the same way; a
    difference is tested when one of them had the control's value and still failed."""
    found = nearest(case.launch, deployments)
    if found is None:
        return None
    deployment, why = found
    stated = dict(_stated(deployment))
    names = [n for n in stated if n.split(".", 1)[1] not in SITE or not n.startswith("args.")]
    differences = [d for n in names if (d := _difference(n, stated[n], case.launch, same)) is not None]
    return Comparison(deployment, why, tuple(differences))


def _difference(name: str, control: Value, launch: Launch, same: Sequence[Case]) -> Difference | None:
    """The launch's own value against the control's; nothing where it does not state one. A launch that has the
    control's value, and failed as another one did without it, is itself the test."""
    here = value_of(launch, name)
    if here is None:
        return None
    values = [here.value, *(f.value for c in same if (f := value_of(c.launch, name)) is not None)]
    agreeing = [equal(value, control) for value in values]
    return None if all(agreeing) else Difference(name, here.value, control, any(agreeing), here.where)


MATTERS = Late(
    r"^(?:env\.SGLANG_\w*(?:DEEPGEMM|KERNEL|FP8|GEMM)|args\.(?:\w*backend|quantization|kv_cache_dtype|dtype|page_size"
    r"|enable_torch_compile|\w*cuda_graph|speculative_\w+|enable_mixed_chunk|enable_flashinfer\w*|moe_\w+"
    r"|disable_overlap_schedule|disable_radix_cache|chunked_prefill_size|disable_custom_all_reduce))$"
)
"""Settings that choose kernels, number formats and schedules: what can make numbers or kernels fail."""
_GEMM = (
    r"env\.SGLANG_\w*(?:DEEPGEMM|KERNEL|FP8|GEMM)|args\.(?:quantization|dtype|\w*gemm\w*backend|enable_torch_compile)$"
)
_MOE = r"args\.moe_\w+"
_ATTENTION = (
    r"args\.(?:\w*attention_backend|kv_cache_dtype|page_size|[nd]sa_\w+|enable_flashinfer\w*|enable_mixed_chunk)$"
)
_GRAPH = r"args\.(?:\w*cuda_graph\w*|enable_torch_compile|disable_custom_all_reduce)$"
_SPECULATION = r"args\.speculative_\w+"
_NUMBERS = (_GEMM, _MOE, _ATTENTION)
_READS: dict[str, tuple[str, ...]] = {
    "kernel": (*_NUMBERS, _GRAPH),
    "attention": (_ATTENTION, _SPECULATION, _GRAPH),
    "moe": (_MOE, _GEMM, _GRAPH),
    "quantization": (_GEMM, _MOE),
    "sampling": (*_NUMBERS, r"args\.sampling_backend$"),
    "layer": (*_NUMBERS, _GRAPH),
    "speculative": (_SPECULATION, r"args\.(?:\w*attention_backend|page_size|disable_overlap_schedule)$", _GRAPH),
    "graph": (_GRAPH, *_NUMBERS),
}
READS = {name: Late("^(?:" + "|".join(parts) + ")") for name, parts in _READS.items()}
"""Settings that the code of a component reads: what else differs cannot be behind its failure."""
_OF_THE_CHIP = Late("^(?:" + "|".join((_GEMM, _MOE)) + ")")
"""Settings that choose kernels by chip and number format: the model does not matter to them."""
_RUNNING = frozenset({"warmup", "graph-capture", "prefill", "decode"})


def suspicious(found: Comparison | None, case: Case) -> tuple[Difference, ...]:
    """Differences to the control that can plausibly matter to what this launch shows: untested settings that it has
    and the control has not, that the failing component reads, where GPU, release and model agree. None for load, host,
    network and client faults."""
    failure = case.launch.failure(case.launch.first_failure)
    if found is None or (failure is None and case.symptom not in ("garbage", "slow")):
        return ()
    if failure is not None and (failure.stage not in _RUNNING or failure.component not in READS):
        return ()
    if not _comparable(case.launch, found.deployment):
        return ()
    reads = READS[failure.component] if failure is not None else MATTERS
    alike = _same_family(case.launch, found.deployment)
    formats = _quantization(_here(case.launch), found.deployment) == 2
    return tuple(
        d
        for d in found.differences
        if not d.tested
        and MATTERS.match(d.name)
        and reads.match(d.name)
        and d.here not in UNSET
        and (alike or (formats and _OF_THE_CHIP.match(d.name) is not None))
    )


def _comparable(launch: Launch, deployment: Deployment) -> bool:
    """Whether a launch runs on the control's GPU, and its release can be one for which the control was stated."""
    if _same_gpu(_here(launch), deployment) < 3:
        return False
    stated, here = deployment.versions, launch.version.exact or launch.version.high or launch.version.low
    if not stated or here is None:
        return True
    if stated[0].isdigit():  # one release: its neighbours of the same series read the same settings
        return stated.split(".")[:2] == here.split(".")[:2]
    return overlap(launch.version, stated) != "outside"


def _same_family(launch: Launch, deployment: Deployment) -> bool:
    """Whether two models have one architecture, or releases of it (`Glm4Moe…`, `GlmMoeDsa…`)."""
    here, there = _text(launch, "model.architecture"), deployment.architecture.lower()
    if not here or not there:
        return False
    one, other = (re.match(r"[a-z]+", t) for t in (here, there))
    return here == there or (one is not None and other is not None and one[0][:4] == other[0][:4])


def value_of(launch: Launch, name: str) -> Fact | None:
    """A fact of a launch; None is unknown."""
    return launch.facts.get(name)


def equal(a: Value, b: Value) -> bool:
    """Whether two values mean the same setting: unset, `auto` and false count as one, numbers compare as numbers."""
    if a in UNSET and b in UNSET:
        return True
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return float(a) == float(b)
    return str(a).lower().removeprefix("torch.") == str(b).lower().removeprefix("torch.")


def _stated(deployment: Deployment) -> list[tuple[str, Value]]:
    stated: list[tuple[str, Value]] = []
    if deployment.architecture:
        stated.append(("model.architecture", deployment.architecture))
    stated += [(f"feature.{name}", True) for name in deployment.features]
    if deployment.features:
        known = set(deployment.features)
        stated += [
            (f"feature.{n}", False) for n in ("dsa", "mla", "moe", "speculative", "hybrid", "pd") if n not in known
        ]
    if deployment.quantization:
        stated.append(("args.quantization", deployment.quantization))
    stated += [(f"args.{name}", value) for name, value in deployment.args]
    stated += [(f"env.{name}", value) for name, value in deployment.env]
    stated += list(deployment.facts)
    return stated


def _score(here: _Here, deployment: Deployment) -> tuple[int, ...] | None:
    hardware = _hardware(here, deployment)
    quantization = _quantization(here, deployment)
    architecture = int(here.architecture == deployment.architecture.lower() != "")
    if not architecture and (hardware < 2 or quantization < 1):
        return None
    there = set(deployment.features)
    shared = len(here.features & there) - len(there - here.features)
    named, strength = int(_named(here, deployment)), STRENGTH.get(deployment.strength, 0)
    # A page's command that nobody is known to have run counts for its own architecture only.
    unproved = int(deployment.strength == "recommended" and not architecture)
    return hardware + quantization - unproved, architecture, named, shared, strength, _sizes(here, deployment)


def _sizes(here: _Here, deployment: Deployment) -> int:
    """How many parallel sizes agree: among equals, two replicas are no control for one group of two ranks."""
    there = dict(deployment.args)
    return sum(equal(value, there[n]) for n, value in here.sizes if n in there)


def _hardware(here: _Here, deployment: Deployment) -> int:
    """Likeness of the GPUs, and one more for the same number of them (which counts where the GPU is unknown, too)."""
    counted = here.ranks is not None and here.ranks == deployment.gpu_count
    return _same_gpu(here, deployment) + int(counted)


def _same_gpu(here: _Here, deployment: Deployment) -> int:
    """3: same GPU by name or compute capability, 2: same family, 0: other or unknown."""
    if _named(here, deployment) or (deployment.sm is not None and here.sm == deployment.sm):
        return 3
    return 2 if here.family and here.family == _family_there(deployment) else 0


def _family_there(deployment: Deployment) -> str:
    """Family of a deployment's GPUs; the device itself where that is no GPU."""
    device = next((str(value) for name, value in deployment.args if name == "device"), "")
    if device in OTHER_DEVICES:
        return device
    return family_of(deployment.sm) if deployment.sm is not None else "amd" * deployment.gpu.startswith("MI")


def _named(here: _Here, deployment: Deployment) -> bool:
    """Whether the launch's GPU has the deployment's name, word by word: a GB200 is no B200."""
    words = deployment.gpu.lower().split()
    return bool(words) and here.gpu.issuperset(words)


def _quantization(here: _Here, deployment: Deployment) -> int:
    """2: the same method, by flag or as the checkpoint says; 1: nothing speaks against it; 0: another, or unknown."""
    if not here.quantized:
        return 0
    flag = deployment.quantization.lower()
    own = here.flag or here.checkpoint
    there = flag or next((str(v).lower() for n, v in deployment.facts if n == "weights.quantization"), "")
    if own and there:
        return 2 * (own == there)
    return int(not here.flag and not flag)


def family_of(sm: int) -> str:
    """GPU family of a compute capability such as 120."""
    return next((name for low, high, name in FAMILIES if low <= sm <= high), "blackwell" if sm >= 100 else "")


def _text(launch: Launch, name: str) -> str:
    fact = launch.facts.get(name)
    return "" if fact is None or fact.value is None else str(fact.value).lower()


def _why(here: _Here, deployment: Deployment) -> str:
    reasons = []
    if _same_gpu(here, deployment):
        reasons.append("same GPU family" if _same_gpu(here, deployment) < 3 else "same GPU")
    if _quantization(here, deployment) == 2:
        reasons.append(f"same quantization ({deployment.quantization})")
    if deployment.architecture and here.architecture == deployment.architecture.lower():
        reasons.append("same architecture")
    return "nearest known-good launch: " + ", ".join(reasons)
