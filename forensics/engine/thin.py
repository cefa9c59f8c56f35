"""Batch lines of large inputs, thinned by place: what stays does not depend on chunks or processes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forensics.engine.chunk import Hot

THIN_ABOVE = 256 << 20
"""Inputs up to this size keep every batch line."""
BUCKETS = 4096
_METRICS = ("running", "queue", "token_usage", "throughput", "input_throughput", "accept_len")


def bucket_bytes(size: int) -> int:
    """Bytes of input per bucket; 0: nothing is thinned."""
    return 0 if size <= THIN_ABOVE else -(-size // BUCKETS // 4096) * 4096


def concat(parts: list[Hot]) -> Hot:
    """Parts of one kind in order, with the union of their columns."""
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    columns = {
        name: np.concatenate([p.columns.get(name, np.full(len(p.line), np.nan)) for p in parts])
        if parts
        else np.zeros(0)
        for name in names
    }

    def joined(field: str, kind: type) -> npt.NDArray[np.generic]:
        return np.concatenate([getattr(p, field) for p in parts]) if parts else np.zeros(0, kind)

    return Hot(
        joined("offset", np.int64),
        joined("line", np.int64),
        joined("time", np.float64),
        joined("rank", np.int16),
        columns,
    )


def take(hot: Hot, pick: npt.NDArray[np.generic]) -> Hot:
    """The chosen batch lines."""
    return Hot(
        hot.offset[pick], hot.line[pick], hot.time[pick], hot.rank[pick], {k: v[pick] for k, v in hot.columns.items()}
    )


class Thinner:
    """Collects the batch lines of one kind in order; closes a bucket when the next one begins.

    Of each bucket and rank it keeps the first and last line, and those with the lowest and highest value of each of
    the metrics that people plot."""

    def __init__(self, size: int) -> None:
        self.step = bucket_bytes(size)
        self.kept: list[Hot] = []
        self.open: list[Hot] = []
        self.dropped = 0

    def add(self, hot: Hot) -> None:
        """Take the batch lines of the next chunk."""
        if not len(hot.line):
            return
        if not self.step:
            self.kept.append(hot)
            return
        self.open.append(hot)
        if self.open[0].offset[0] // self.step == hot.offset[-1] // self.step:
            return
        whole = concat(self.open)
        last = whole.offset[-1] // self.step
        closed = whole.offset // self.step < last
        self._close(take(whole, np.flatnonzero(closed)))
        self.open = [take(whole, np.flatnonzero(~closed))]

    def finish(self) -> list[Hot]:
        """All that is kept."""
        if self.open:
            self._close(concat(self.open))
            self.open = []
        return self.kept

    def _close(self, hot: Hot) -> None:
        if not len(hot.line):
            return
        key = (hot.offset // self.step) * 65536 + (hot.rank.astype(np.int64) + 1)
        order = np.argsort(key, kind="stable")
        sorted_key = key[order]
        start = np.flatnonzero(np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]]))
        stop = np.concatenate([start[1:], [len(order)]])
        keep = np.zeros(len(order), bool)
        keep[order[start]] = True
        keep[order[stop - 1]] = True
        group = np.repeat(np.arange(len(start)), stop - start)
        for name in _METRICS:
            if name in hot.columns:
                _extremes(hot.columns[name][order], start, group, order, keep)
        self.dropped += len(order) - int(keep.sum())
        self.kept.append(take(hot, np.flatnonzero(keep)))


def _extremes(
    values: npt.NDArray[np.float64],
    start: npt.NDArray[np.int64],
    group: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    keep: npt.NDArray[np.bool_],
) -> None:
    for pick, fill in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        filled = np.where(np.isnan(values), fill, values)
        best = pick.reduceat(filled, start)
        hits = np.flatnonzero((filled == best[group]) & ~np.isnan(values))
        _, first = np.unique(group[hits], return_index=True)
        keep[order[hits[first]]] = True
