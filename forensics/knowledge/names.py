"""Fact names that exist: the closed groups of docs/facts.md, and sglang's own arguments for `args.`."""

from __future__ import annotations

from forensics.rulebook.located import nearest
from forensics.timeline.catalog import Catalog

CLOSED: dict[str, frozenset[str]] = {
    "gpu": frozenset(
        {
            "name",
            "count",
            "memory_gb",
            "capability",
            "sm",
            "family",
            "smem_per_block",
        }
    ),
    "version": frozenset(
        {
            "sglang",
            "torch",
            "transformers",
            "cuda",
            "driver",
            "nccl",
            "triton",
            "flashinfer",
            "sgl_kernel",
            "python",
            "cuda_driver",
        }
    ),
    "weights": frozenset(
        {
            "dtype",
            "quantization",
            "gb",
            "shards",
        }
    ),
    "model": frozenset(
        {
            "path",
            "name",
            "context_len",
            "architecture",
            "type",
        }
    ),
    "kv": frozenset(
        {
            "dtype",
            "tokens",
            "gb",
            "page_size",
        }
    ),
    "launch": frozenset(
        {
            "command",
            "ranks",
            "nodes",
            "device",
            "role",
        }
    ),
    "host": frozenset(
        {
            "topology",
            "memory_gb",
            "container",
            "hypervisor",
        }
    ),
    "feature": frozenset(
        {
            "cuda_graph",
            "dp_attention",
            "speculative",
            "pd",
            "hicache",
            "deepep",
            "deepgemm",
            "dsa",
            "mla",
            "moe",
            "lora",
            "multimodal",
            "hybrid",
            "overlap",
            "radix_cache",
            "multi_node",
            "torch_compile",
            "deterministic",
        }
    ),
}
"""Docs and this list are held equal by a test."""


def unknown_fact_hint(name: str, catalog: Catalog) -> str | None:
    """None where the fact exists; else what to write instead (may be empty)."""
    group, _, rest = name.partition(".")
    if group == "env":
        return None
    if group == "args":
        if rest in catalog.by_dest or rest in fields(catalog):
            return None
        near = nearest(rest, fields(catalog), 85.0)
        return f"did you mean `args.{near}`?" if near else "`args.` holds the fields of server_args by their own names"
    known = CLOSED.get(group)
    if known is None:
        return "facts begin with " + ", ".join(f"{g}." for g in sorted({*CLOSED, "args", "env"}))
    if rest in known:
        return None
    near = nearest(rest, known, 60.0)
    return f"did you mean `{group}.{near}`?" if near else "known: " + ", ".join(f"{group}.{n}" for n in sorted(known))


def fields(catalog: Catalog) -> frozenset[str]:
    """All server_args fields of all releases that were read, older names of a field included."""
    found: set[str] = set()
    for entry in catalog.flags.values():
        found.update(change["value"] for change in entry.get("dest_history", ()))
        if entry.get("dest"):
            found.add(entry["dest"])
    return frozenset(found)


def alive(name: str, versions: tuple[str, ...], catalog: Catalog) -> bool:
    """Whether a flag exists (or may exist) in at least one of the releases."""
    life = catalog.flag_lifetime(name)
    return life is not None and any(catalog.exists(life, v) is not False for v in versions)


def lifetime_text(name: str, catalog: Catalog) -> str:
    """From when to when a flag lived, in words."""
    life = catalog.flag_lifetime(name)
    if life is None:
        return "in no release that was read"
    return f"from {life.first} to {life.last}" if life.last else f"since {life.first}"
