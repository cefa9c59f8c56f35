"""Byte ranges of one incident as Ray tasks on all nodes, asked for by the task that analyzes the incident.

While that task waits, Ray gives its core to others: a cluster of one core can do it, too.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from forensics.engine.worker import Scanned
from forensics.errors import InputError
from forensics.fleet.engine import RETRIES
from forensics.fleet.spread import Piece, scan_piece


def _scan(version: str, piece: Piece) -> tuple[str, bytes]:
    """The node, and what was seen there: as bytes, because arrays out of Ray's store cannot be written to."""
    import ray

    from forensics.version import VERSION as here

    if here != version:
        raise InputError(f"a worker has forensics {here}, this is {version}")
    return ray.get_runtime_context().get_node_id(), pickle.dumps(scan_piece(piece), 5)


class OverNodes:
    """`Spread` over the nodes of the cluster; `nodes` are those that took part."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.nodes: set[str] = set()

    def __call__(self, pieces: Sequence[Piece]) -> list[Scanned]:
        """Raises InputError where a range could not be scanned elsewhere: the incident's own worker then does it."""
        import ray as library

        ray: Any = library
        task = ray.remote(_scan).options(
            num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD", name="forensics-range"
        )
        waiting = [task.remote(self.version, piece) for piece in pieces]
        try:
            found = ray.get(waiting)
        except ray.exceptions.RayError as error:
            for reference in waiting:
                ray.cancel(reference, force=True)
            raise InputError(f"a byte range could not be scanned on another node ({type(error).__name__})") from None
        self.nodes.update(node for node, _ in found)
        return [pickle.loads(data) for _, data in found]
