"""Failures whose own words say what they are, whatever caused them: what each is, what it is not, and what to do.

Rows of data: the program's, the driver's or the operating system's wording. None names a known cause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Plain:
    """One wording: `title` and `why` for the report; `do` are direct steps, `collect` data (text, command)."""

    pattern: re.Pattern[str]
    title: str
    why: str
    do: tuple[tuple[str, str], ...] = ()
    collect: tuple[tuple[str, str], ...] = ()


def _row(pattern: str, title: str, why: str, *do: tuple[str, str], collect: tuple[tuple[str, str], ...] = ()) -> Plain:
    return Plain(re.compile(pattern), title, why, do, collect)


_KERNEL = (
    ("the failing kernel's own call: CUDA_LAUNCH_BLOCKING=1 before the same command", ""),
    ("Xid lines of the driver at that time", "dmesg -T | grep -i xid"),
)
_LATE = "the error is reported late, so the frames show where it was noticed, not the faulting kernel"
_SLOTS = ("lower --max-running-requests, or compare it with the slots that each pipeline micro-batch gets", "")
_MODEL_CODE = (
    "compare the model's config.json (architecture, quantization_config) and the names in its weight index with what "
    "the installed sglang release supports for this architecture",
    "python3 -m sglang.check_env",
)

PLAIN: tuple[Plain, ...] = (
    _row(
        r"Memory access fault by GPU node|HW Exception by GPU node|HSA_STATUS_ERROR_(?:MEMORY|EXC|ILL)",
        "A GPU kernel faulted (ROCm)",
        "the ROCm runtime names GPU and address and ends the process; the abort that follows is a consequence",
        collect=(("the failing kernel: AMD_SERIALIZE_KERNEL=3 before the same command", ""),),
    ),
    _row(r"unspecified launch failure", "A GPU kernel faulted (unspecified launch failure)", _LATE, collect=_KERNEL),
    _row(r"illegal instruction was", "A GPU kernel faulted (illegal instruction)", _LATE, collect=_KERNEL),
    _row(r"misaligned address", "A GPU kernel faulted (misaligned address)", _LATE, collect=_KERNEL),
    _row(
        r"illegal memory access|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS",
        "A GPU kernel faulted (illegal memory access)",
        _LATE,
        collect=_KERNEL,
    ),
    _row(
        r"Not enough host memory available",
        "Host memory is too small for the hierarchical cache",
        "the line compares what the cache asks for with what the host has free; GPU memory is not meant",
        ("ask for less with --hicache-size or --hicache-ratio, or free host memory (reserved huge pages do not count)",
         "grep -i -E 'avail|huge' /proc/meminfo"),
    ),
    _row(
        r"alloc_req_slots runs out of memory",
        "The pool of request slots is used up",
        "request slots are rows of a table that is sized at the start; GPU memory did not run out",
        _SLOTS,
    ),
    _row(
        r"alloc_token_slots",
        "The KV cache pool has no free token slots",
        "the pool is sized at the start; the GPU itself did not run out of memory",
        ("read the numbers of the line: tokens asked for, available and evictable; then lower the load or raise "
         "--mem-fraction-static", ""),
    ),
    _row(
        r"No space left on device|\[Errno 28\]",
        "The disk or the shared memory is full",
        "the operating system says so (ENOSPC); GPU memory is not meant",
        ("free space where the failing frame writes, or move that directory", "df -h"),
    ),
    _row(
        r"\[Errno 13\]|PermissionError",
        "A file may not be read or written",
        "the operating system says so (EACCES)",
        ("make the path in the message readable or writable for the user of the server", "ls -ld PATH"),
    ),
    _row(
        r"gated repo|GatedRepoError|401 Client Error",
        "The hub refuses the download: the repository is gated or the token is missing",
        "the hub says so (401)",
        ("accept the licence on the model's page, then log in or set HF_TOKEN", "env HF_TOKEN=TOKEN hf auth whoami"),
    ),
    _row(
        r"driver (?:version )?(?:on your system )?is (?:too old|insufficient)",
        "The NVIDIA driver is too old for this build of PyTorch",
        "the CUDA runtime refuses the driver",
        ("update the driver, or install a build for the CUDA release that nvidia-smi shows", "nvidia-smi"),
    ),
    _row(
        r"cannot open shared object file",
        "A shared library is missing",
        "the dynamic linker names the file",
        ("install the package that holds the named library, or add its directory to LD_LIBRARY_PATH", ""),
    ),
    _row(
        r"undefined symbol: cu[A-Z]",
        "The driver lacks a function that a package was built for",
        "a symbol of the CUDA driver is missing: the driver is older than the package expects",
        ("update the driver, or install the package built for its CUDA release", "nvidia-smi"),
    ),
    _row(
        r"undefined symbol: ",
        "Two binary packages do not fit together",
        "the dynamic linker misses a symbol: one package was built against another release of the other",
        ("reinstall both packages from one release set", "pip list"),
    ),
    _row(
        r"unexpected keyword argument|expected at most \d+ argument|module '[\w.]{1,200}' has no attribute"
        r"|'\w{0,100}Config' object has no attribute|cannot import name",
        "Two packages, or a package and a configuration, do not fit together",
        "a name or an argument is missing where one piece of code calls another: most often a difference of releases",
        ("compare the versions of the packages in the innermost frames with what this sglang release pins", "pip list"),
    ),
)  # fmt: skip

_LOADER = re.compile(r"(?:^|\n)(?:KeyError|ValueError|RuntimeError|AssertionError)\b")
FEATURES: dict[str, tuple[str, str, str]] = {
    "lora": ("feature.lora", "--enable-lora, --lora-paths", "without the LoRA adapters"),
    "speculative": ("feature.speculative", "--speculative-algorithm", "without speculative decoding"),
    "kv-cache": ("feature.hicache", "--enable-hierarchical-cache", "without the hierarchical cache"),
    "graph": ("feature.cuda_graph", "", "with --disable-cuda-graph"),
}
"""Component of the failing frames: the feature it belongs to, its switch, the experiment."""


def plain_of(text: str) -> Plain | None:
    """The row for a failure's text, or None."""
    head = text[:2000]
    return next((row for row in PLAIN if row.pattern.search(head)), None)


def steps_of_component(component: str, text: str, on: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Direct steps that the failing component suggests. `on`: names of `feature.*` facts that are true."""
    if component == "loader" and _LOADER.search(text):
        return (_MODEL_CODE,)
    if component == "grammar":
        return (
            ("find the request of that second and its schema; send it alone, then with another --grammar-backend", ""),
        )
    row = FEATURES.get(component)
    if row is None or row[0] not in on:
        return ()
    switch = f" ({row[1]})" if row[1] else ""
    return ((f"relaunch {row[2]}{switch} and nothing else changed", ""),)
