"""GPUs by name: compute capability, family and memory. Source: the vendors' product pages.

A log names its GPU in several spellings (`NVIDIA H100 80GB HBM3`, `NVIDIA_H100_80GB_HBM3`, `H100`); patterns are
searched in order, the more special name first.
"""

from __future__ import annotations

import re
from functools import cache

from forensics.frozen import frozen


@frozen
class Gpu:
    """`sm` is the compute capability without its dot (0: no NVIDIA GPU); `memory_gb` the usual memory (0: several)."""

    name: str
    sm: int
    family: str
    memory_gb: int = 0


_TABLE: tuple[tuple[str, int, str, int], ...] = (
    ("GB300", 103, "blackwell", 288), ("GB200", 100, "blackwell", 192), ("GB10", 121, "blackwell", 128),
    ("DGX Spark", 121, "blackwell", 128), ("B300", 103, "blackwell", 288), ("B200", 100, "blackwell", 192),
    ("B100", 100, "blackwell", 192), ("RTX PRO 6000", 120, "blackwell", 96), ("RTX PRO 5000", 120, "blackwell", 0),
    ("RTX PRO 4500", 120, "blackwell", 32), ("RTX PRO 4000", 120, "blackwell", 24),
    ("RTX 5090", 120, "blackwell", 32), ("RTX 5080", 120, "blackwell", 16), ("RTX 5070", 120, "blackwell", 0),
    ("RTX 5060", 120, "blackwell", 0), ("Thor", 110, "blackwell", 128), ("GH200", 90, "hopper", 0),
    ("H100", 90, "hopper", 80), ("H200", 90, "hopper", 141), ("H800", 90, "hopper", 80), ("H20", 90, "hopper", 96),
    ("RTX 6000 Ada", 89, "ada", 48), ("RTX 5000 Ada", 89, "ada", 32), ("L40S", 89, "ada", 48), ("L40", 89, "ada", 48),
    ("L20", 89, "ada", 48), ("L4", 89, "ada", 24), ("RTX 4090", 89, "ada", 24), ("RTX 4080", 89, "ada", 16),
    ("RTX 4070", 89, "ada", 0), ("RTX 4060", 89, "ada", 0), ("A100", 80, "ampere", 0), ("A800", 80, "ampere", 80),
    ("A30", 80, "ampere", 24), ("A40", 86, "ampere", 48), ("A10G", 86, "ampere", 24), ("A10", 86, "ampere", 24),
    ("A16", 86, "ampere", 16), ("A2", 86, "ampere", 16), ("RTX A6000", 86, "ampere", 48),
    ("RTX A5000", 86, "ampere", 24), ("RTX A4000", 86, "ampere", 16), ("RTX 3090", 86, "ampere", 24),
    ("RTX 3080", 86, "ampere", 0), ("RTX 3070", 86, "ampere", 8), ("Orin", 87, "ampere", 0),
    ("Jetson", 87, "ampere", 0), ("Tesla T4", 75, "turing", 16), ("T4", 75, "turing", 16),
    ("RTX 2080", 75, "turing", 0),
    ("V100", 70, "volta", 0), ("P100", 60, "pascal", 16), ("P40", 61, "pascal", 24),
    ("MI355X", 0, "amd", 288),
    ("MI350X", 0, "amd", 288), ("MI325X", 0, "amd", 256), ("MI308X", 0, "amd", 192), ("MI300X", 0, "amd", 192),
    ("MI300A", 0, "amd", 128), ("MI250X", 0, "amd", 128), ("MI250", 0, "amd", 128), ("MI210", 0, "amd", 64),
    ("MI100", 0, "amd", 32),
)  # fmt: skip


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Gpu], ...]:
    """What names each GPU; compiled when a log names one."""
    return tuple(
        (
            re.compile(r"(?<![A-Za-z0-9])" + name.replace(" ", "[ _-]*") + r"(?![A-Za-z0-9])", re.IGNORECASE),
            Gpu(name, sm, family, memory),
        )
        for name, sm, family, memory in _TABLE
    )


SMEM_SM: dict[int, frozenset[int]] = {
    49152: frozenset({50, 60, 61}),
    65536: frozenset({75}),
    98304: frozenset({70}),
    101376: frozenset({86, 89, 120, 121}),
    166912: frozenset({80, 87}),
    232448: frozenset({90, 100, 103, 110}),
}
"""Shared memory that one block may use (bytes): the compute capabilities that have this limit."""


def known_gpu(name: str) -> Gpu | None:
    """The GPU that a name means, None where the table does not hold it."""
    found = next((gpu for pattern, gpu in _patterns() if pattern.search(name)), None)
    memory = re.search(r"(?<!\d)(\d{2,3})[ _]?GB", name, re.IGNORECASE)
    if found and memory:
        return Gpu(found.name, found.sm, found.family, int(memory.group(1)))
    return found


def family_of(sm: int) -> str:
    """Family of a compute capability (without its dot); empty where unknown."""
    if 100 <= sm <= 121:
        return "blackwell"
    return {90: "hopper", 89: "ada", 75: "turing", 72: "volta", 70: "volta"}.get(
        sm, "ampere" if 80 <= sm <= 87 else "pascal" if 60 <= sm <= 62 else ""
    )


def shared_family(limit: int) -> str:
    """The family of all GPUs with this shared memory limit; empty where several families have it."""
    families = {family_of(sm) for sm in SMEM_SM.get(limit, ())}
    return families.pop() if len(families) == 1 else ""


def memory_family(gib: float) -> str:
    """Family of the only GPUs with this usable memory (GiB, as an allocator reports it); empty where several do."""
    for low, high, family in ((138.0, 142.0, "hopper"), (176.0, 186.0, "blackwell"), (262.0, 290.0, "blackwell")):
        if low <= gib <= high:
            return family
    return ""
