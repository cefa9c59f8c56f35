"""Batch lines of large inputs, thinned by place: what stays does not depend on chunks or processes.

The input is cut into buckets at fixed offsets; chunks always hold whole buckets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
THIN_ABOVE = 128 << 20
"""Inputs up to this size keep every batch line."""
BUCKETS = 4096
METRICS = ("running", "queue", "token_usage", "throughput", "input_throughput", "accept_len")
"""Columns whose lowest and highest values are kept."""


def bucket_bytes(size: int) -> int:
    """Bytes of input per bucket; 0: nothing is thinned."""
    return 0 if size <= THIN_ABOVE else -(-size // BUCKETS // 4096) * 4096


def groups(offset: Array, rank: Array, step: int) -> Array:
    """Number of the group, bucket and rank, of each batch line."""
    bucket = offset // step
    bucket -= bucket.min(initial=0 if not len(bucket) else int(bucket[0]))
    key: Array = bucket * (int(rank.max(initial=0)) + 2) + rank + 1
    return key


def kept(key: Array, metrics: dict[str, Array]) -> Array:
    """Which batch lines stay, ascending: of each group the first and last, and those with the lowest and highest value
    of each metric."""
    # Of numbers this small the sort counts digits, ten times as fast as by comparison.
    key = key.astype(np.int16) if len(key) and int(key.max()) < 1 << 15 else key
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    start = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    stop = np.concatenate([start[1:], [len(order)]])
    group = np.repeat(np.arange(len(start)), stop - start)
    keep = np.zeros(len(order), bool)
    keep[order[start]] = True
    keep[order[stop - 1]] = True
    for values in metrics.values():
        _extremes(values[order], start, group, order, keep)
    return np.flatnonzero(keep)


def _extremes(values: Array, start: Array, group: Array, order: Array, keep: Array) -> None:
    """Mark the first line with the lowest, and with the highest, value of each group."""
    unknown = np.isnan(values)
    for pick, fill in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        filled = np.where(unknown, fill, values)
        hits = np.flatnonzero((filled == pick.reduceat(filled, start)[group]) & ~unknown)
        of_group = group[hits]
        first = np.concatenate([[True], of_group[1:] != of_group[:-1]]) if len(hits) else np.zeros(0, bool)
        keep[order[hits[first]]] = True
