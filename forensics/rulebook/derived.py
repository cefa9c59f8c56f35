"""Captures that need arithmetic over one message: what no pattern can say. A rule names one by `derive`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import re2

from forensics.rulebook.captures import typed
from forensics.schema.facts import Value

_SIZE = r"([\d.]+ (?:[KMGT]iB|bytes))"
_OWN = re2.compile(rf"this process has {_SIZE} memory in use")
_LISTED = re2.compile(rf"Process \d+ has {_SIZE} memory in use")
_PAIR = re2.compile(r"(\[?[\w.]+\]?(?:\(\))?) ?= ?(\d+)")
_HELD = re2.compile(rf"{_SIZE} is (?:allocated by PyTorch|reserved by PyTorch)")


def gpu_processes(text: str) -> Mapping[str, Value] | None:
    """`own` and `other` (bytes) of torch's out-of-memory message; None where it lists no other process.

    Outside containers torch names its own process (`this process has`). Inside it cannot match its process id, and
    lists itself among the others: then its own is the smallest entry that can hold what torch says it allocated and
    reserved; an only entry is always its own. `other` is the largest of the rest.
    """
    listed = [_bytes(m) for m in _LISTED.findall(text)]
    named = _OWN.search(text)
    if named is not None:
        own: float | None = _bytes(named.group(1))
    elif len(listed) < 2:
        return None
    else:
        held = sum(_bytes(m) for m in _HELD.findall(text))
        own = min((x for x in listed if x >= held), default=None)
        if own is not None:
            listed.remove(own)
    return {"own": own, "other": max(listed)} if listed else None


def pool_of(kind: str) -> Callable[[str], Mapping[str, Value] | None]:
    """`available`, `evictable`, `protected` and `size` of one pool (full, swa, mamba) from the `name=value` pairs of a
    leak report, in whatever order and under whatever prefix the release prints them."""

    def counts(text: str) -> Mapping[str, Value]:
        found: dict[str, Value] = {}
        for name, value in _PAIR.findall(text):
            pool = next((p for p in ("mamba", "swa") if p in name), "full")
            role = _role(name)
            if pool == kind and role:
                found.setdefault(role, int(value))
        return found

    return counts


def _role(name: str) -> str:
    for role in ("available", "evictable", "protected"):
        if role in name:
            return role
    sizes = ("tokens_per_layer", "max_total_num_tokens", "size", "total")
    return "size" if name.endswith(sizes) or ".size_" in name else ""


def _bytes(text: str) -> float:
    value = typed(text, "size")
    return float(value) if isinstance(value, (int, float)) else 0.0


DERIVED: Mapping[str, Callable[[str], Mapping[str, Value] | None]] = {
    "gpu-processes": gpu_processes,
    **{f"pool-{kind}": pool_of(kind) for kind in ("full", "swa", "mamba")},
}
"""By the name that a rule gives in `derive`."""
NEEDED: Mapping[str, str] = {"gpu-processes": " memory in use"}
"""Texts without digits without which nothing can be derived."""
