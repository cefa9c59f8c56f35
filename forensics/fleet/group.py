"""Which logs belong to one incident: rotated parts of one log, and the nodes of one job over the same time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

import re2

from forensics.errors import UsageError
from forensics.fleet.objects import LogObject
from forensics.fleet.peek import Peek
from forensics.frozen import frozen
from forensics.ingest.inputs import rotation_of
from forensics.ingest.sources import node_hint

Pattern: TypeAlias = Any
"""A compiled RE2 pattern."""
SLACK = 300.0
"""Seconds by which clocks of one job's nodes may differ, and by which its logs may miss each other."""
_NODE_WORD = re.compile(r"(node|host|worker|machine)([-_.]?(?:rank)?[-_.]?)\d+", re.I)
_RUN_ID = re.compile(
    r"\d{4}[-_/]\d\d[-_/]\d\d|\b[0-9a-f]{8,}\b|\d{5,}"
    r"|(?<![a-z])(?:run|attempt|try|job|task|pod|replica|instance|launch|restart)[-_.]?\d+",
    re.I,
)


@frozen
class Seen:
    """An object with what its two ends gave away."""

    item: LogObject
    peek: Peek


@frozen
class Chain:
    """The parts of one log (rotated files), with what is known of all of them."""

    parts: tuple[Seen, ...]

    @property
    def node(self) -> str | None:
        return next((p.peek.node for p in self.parts if p.peek.node), None)

    @property
    def nodes(self) -> int:
        return max(p.peek.nodes for p in self.parts)

    @property
    def job(self) -> str:
        return next((p.peek.job for p in self.parts if p.peek.job), "")

    @property
    def begin(self) -> float | None:
        return min((p.peek.begin for p in self.parts if p.peek.begin is not None), default=None)

    @property
    def end(self) -> float | None:
        return max((p.peek.end for p in self.parts if p.peek.end is not None), default=None)

    @property
    def name(self) -> str:
        return self.parts[0].item.name


def compiled_pattern(text: str, flag: str) -> Pattern:
    """A user's pattern, in linear time whatever it is; UsageError where it is none."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise UsageError(f"{flag} {text!r}: {reason}", hint="the syntax is RE2 (no look-around, no \\1)") from None


def captured(pattern: Pattern, name: str) -> str:
    """What a pattern takes out of a name: its first group, else all that it matched; "" where it does not match."""
    found = pattern.search(name)
    if not found:
        return ""
    return next((g for g in found.groups() if g), "") or str(found.group(0))


def group_by(seen: Sequence[Seen], pattern: str) -> list[tuple[LogObject, ...]]:
    """Objects with the same capture of `pattern` in their names are one incident; the others are alone."""
    regex = compiled_pattern(pattern, "--group-by")
    groups: dict[tuple[str, str], list[LogObject]] = defaultdict(list)
    for one in seen:
        key = captured(regex, one.item.name)
        groups[(key, "" if key else one.item.name)].append(one.item)
    return [tuple(items) for _, items in sorted(groups.items())]


def group(seen: Sequence[Seen]) -> list[tuple[LogObject, ...]]:
    """Incidents in the order of their first object's name.

    Rotated parts are one log. Logs of different nodes are one incident where their times overlap and they state one
    job (rendezvous address and model), or lie side by side as `….node0.log`, `….node1.log` and state nothing else."""
    buckets: dict[str, list[Chain]] = defaultdict(list)
    chains = _chains(seen)
    known = _jobs_by_path(chains)
    for chain in chains:
        buckets[_bucket(chain, known)].append(chain)
    found = [tuple(p.item for c in cluster for p in c.parts) for b in buckets.values() for cluster in _overlapping(b)]
    return sorted((tuple(sorted(items, key=lambda o: o.name)) for items in found), key=lambda items: items[0].name)


def _chains(seen: Sequence[Seen]) -> list[Chain]:
    rotated: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for one in seen:
        folder, _, name = one.item.name.rpartition("/")
        rotated[(folder, rotation_of(name)[0])].append(one)
    return [Chain(tuple(sorted(parts, key=lambda p: p.item.name))) for _, parts in sorted(rotated.items())]


def _path_key(chain: Chain) -> str:
    return _NODE_WORD.sub(r"\1\2#", chain.name)


def _jobs_by_path(chains: Sequence[Chain]) -> dict[str, set[str]]:
    """Jobs that the logs of one name (but for the node) state: a log whose head is lost belongs to them, too."""
    known: dict[str, set[str]] = defaultdict(set)
    for chain in chains:
        if chain.job and chain.node:
            known[_path_key(chain)].add(chain.job)
    return known


def _bucket(chain: Chain, known: dict[str, set[str]]) -> str:
    """What a chain may share with others; its own name where it stands alone."""
    alone = f"log {chain.name}"
    if chain.job:
        return f"job {chain.job}"
    if chain.node is None or chain.nodes == 1:
        return alone
    jobs = known.get(_path_key(chain), set())
    if len(jobs) == 1:
        return f"job {next(iter(jobs))}"
    # a folder `node-17/` is a machine of the fleet; only a node in the file's own name speaks of one job
    own = node_hint(chain.name.rpartition("/")[2]) is not None
    return f"side by side {_path_key(chain)}" if own and not jobs else alone


def _overlapping(bucket: list[Chain]) -> list[list[Chain]]:
    """Chains of one bucket that overlap in time and come from different nodes."""
    if len(bucket) == 1:
        return [bucket]
    ordered = sorted(bucket, key=lambda c: (c.begin is None, c.begin or 0.0, c.name))
    clusters: list[list[Chain]] = []
    for chain in ordered:
        home = next((c for c in reversed(clusters[-8:]) if _fits(chain, c)), None)
        if home is None:
            clusters.append([chain])
        else:
            home.append(chain)
    return clusters


def _fits(chain: Chain, cluster: list[Chain]) -> bool:
    if chain.node is None or any(c.node is None or c.node == chain.node for c in cluster):
        return False
    ends = [c.end for c in cluster if c.end is not None]
    if chain.begin is None or not ends:
        return True
    return chain.begin <= max(ends) + SLACK


def service_of(name: str) -> str:
    """The service that a log belongs to by its name: the folder without nodes, dates and ids of single runs."""
    folder = name.rpartition("/")[0] or "."
    return _RUN_ID.sub("#", _NODE_WORD.sub(r"\1\2#", folder))
