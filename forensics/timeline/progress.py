"""Progress: what a rank did after a fault, which tells a recovered fault from a fatal one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from forensics.engine.table import EventTable
from forensics.schema.launch import StageMark
from forensics.schema.rank import Rank
from forensics.timeline.lookup import Rows, no_rows
from forensics.timeline.stages import hot_lines

SETTLED_S = 2.0
"""Batch lines within this time of a fault may have been on their way already."""
SETTLED_LINES = 3
LAST_LINES = 256


@dataclass(slots=True)
class Progress:
    """Batch lines and stage marks of one launch, and where its teardown began (`end` is past the last row)."""

    rows: Rows
    times: npt.NDArray[np.float64]
    ranks: npt.NDArray[np.int16]
    names: tuple[Rank, ...]
    marks: tuple[StageMark, ...]
    teardown: Rows = field(default_factory=no_rows)
    end: int = 0

    @classmethod
    def of(cls, table: EventTable, inside: Rows, marks: tuple[StageMark, ...], teardown: Rows) -> Progress:
        """Collect the hot lines of a launch."""
        picked = [(s, hot_lines(s, table, inside)) for s in table.series.values()]
        rows = [s.row[m] for s, m in picked]
        if not rows:
            return cls(no_rows(), np.zeros(0), np.zeros(0, np.int16), table.ranks, marks, teardown, _end(inside))
        joined = np.concatenate(rows)
        order = np.argsort(joined, kind="stable")
        times = np.concatenate([s.time[m] for s, m in picked])[order]
        ranks = np.concatenate([s.rank[m] for s, m in picked])[order]
        return cls(joined[order], times, ranks, table.ranks, marks, teardown, _end(inside))

    def stop(self, row: int) -> int:
        """First teardown row after `row`, else the end of the launch: what comes later is no progress."""
        at = int(np.searchsorted(self.teardown, row, side="right"))
        return int(self.teardown[at]) if at < len(self.teardown) else self.end

    def after(
        self, row: int, time: float | None, rank: Rank | None, until: int | None = None, settled: float = SETTLED_S
    ) -> bool:
        """Whether the rank (its replica, where only one rank of a replica prints batches) went on after `row`."""
        stop = self.stop(row) if until is None else min(until, self.stop(row))
        return self._batches(row, time, rank, stop, settled) or (settled == SETTLED_S and self._marks(row, rank, stop))

    def _batches(self, row: int, time: float | None, rank: Rank | None, stop: int, settled: float) -> bool:
        low = int(np.searchsorted(self.rows, row, side="right"))
        high = int(np.searchsorted(self.rows, stop, side="right"))
        if low >= high:
            return False
        speaks = self._replica(rank)
        if time is not None:  # most often the last lines tell
            end = slice(max(low, high - LAST_LINES), high)
            if (speaks[self.ranks[end] + 1] & (self.times[end] >= time + settled)).any():
                return True
        keep = speaks[self.ranks[low:high] + 1]
        times = self.times[low:high][keep]
        if time is not None and not np.isnan(times).all():
            return bool((times >= time + settled).any())
        return len(times) >= SETTLED_LINES

    def _replica(self, rank: Rank | None) -> npt.NDArray[np.bool_]:
        """Mask over rank indices (shifted by one): those whose batches speak for `rank`."""
        mask = np.ones(len(self.names) + 1, dtype=bool)
        replica = rank.axis("DP") if rank is not None else None
        if replica is not None:
            mask[1:] = [n.axis("DP") in (None, replica) for n in self.names]
        return mask

    def _marks(self, row: int, rank: Rank | None, stop: int) -> bool:
        for mark in self.marks:
            if mark.row <= row or mark.row >= stop:
                continue
            if mark.stage == "serving" or (mark.rank == rank and mark.stage != "init"):
                return True
        return False


def _end(inside: Rows) -> int:
    return int(inside[-1]) + 1 if len(inside) else 0
