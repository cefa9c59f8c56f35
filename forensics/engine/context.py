"""Kinds that a line has only by what stands above it, and the repeats that need not stay rows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.chunk import Rows
from forensics.engine.table import HEADED

Array = npt.NDArray[Any]
_CARRIES = {
    "python-warning": 1,
    "argparse": 100_000,
    "compile": 40,
    "advice": 12,
    "cxx-frame": 0,
    "request-dump": 200,
    "env-report": 40,
    "nvidia-smi": 4,
    "py-spy": 0,
}
"""Kinds that the lines below them belong to, and for how many lines at most."""
_INDENTED = {"argparse", "python-warning", "request-dump"}
"""Of these, only indented lines belong."""
NCCL_KEPT = 32
"""NCCL INFO rows kept per shape; the rest are counted."""
_PERCENT = re.compile(r"0{1,3}(?:\.0{1,6})?%.*", re.DOTALL)


def context_kinds(
    rows: Rows, shapes: list[tuple[str, str]], counts: list[int], backwards: bool
) -> tuple[list[tuple[str, str]], list[int]]:
    """Give plain-text lines the kind of the block that they continue; `rows.shape` is changed in place.

    A line belongs to the nearest line above that is no continuation, when all between are neighbours without a log
    header. Returns the shapes (new variants appended) and their counts."""
    if not len(rows.line) or not shapes:
        return shapes, counts
    kind_names = [kind for kind, _ in shapes]
    loose = np.array([kind in ("text", "frame-source") for kind in kind_names])
    indented = np.array([text[:1] in (" ", "\t", "^") for _, text in shapes])
    reach = np.array([_CARRIES.get(kind, 0) for kind in kind_names])
    strict = np.array([kind in _INDENTED for kind in kind_names])
    following = loose[rows.shape] & ((rows.flags & HEADED) == 0)
    position = np.arange(len(rows.line))
    anchor = np.maximum.accumulate(np.where(following, -1, position))
    distance = np.where(anchor >= 0, np.abs(rows.line - rows.line[anchor]), 1 << 40)
    unbroken = distance <= position - anchor
    host = rows.shape[anchor]
    hit = following & (anchor >= 0) & unbroken & (distance <= reach[host]) & (~strict[host] | indented[rows.shape])
    hit &= ~(np.array([kind == "frame-source" for kind in kind_names])[rows.shape] & ~strict[host])
    table = {shape: i for i, shape in enumerate(shapes)}
    shapes, counts = list(shapes), list(counts)
    old = rows.shape.copy()
    for pair in np.unique(np.stack([host[hit], old[hit]]), axis=1).T if hit.any() else ():
        source_shape, mine = int(pair[0]), int(pair[1])
        wanted = (kind_names[source_shape], shapes[mine][1])
        number = table.setdefault(wanted, len(shapes))
        if number == len(shapes):
            shapes.append(wanted)
            counts.append(0)
        which = np.flatnonzero(hit & (host == source_shape) & (old == mine))
        rows.shape[which] = number
        counts[number] += len(which)
        counts[mine] -= len(which)
    del backwards
    return shapes, counts


def thin_repeats(rows: Rows, shapes: list[tuple[str, str]]) -> Rows:
    """Drop the inside of runs of progress bars (first and last stay) and NCCL INFO lines past the first of a shape."""
    if not len(rows.line):
        return rows
    keep = np.ones(len(rows.line), bool)
    labels: dict[str, int] = {}
    label = np.array(
        [labels.setdefault(_PERCENT.sub("", text), len(labels)) if kind == "progress" else -1 for kind, text in shapes]
    )
    mine = label[rows.shape]
    bar = mine >= 0
    same_before = np.concatenate([[False], bar[1:] & (mine[1:] == mine[:-1]) & (rows.rank[1:] == rows.rank[:-1])])
    same_after = np.concatenate([same_before[1:], [False]])
    keep &= ~(same_before & same_after)
    chatter = np.array([kind == "nccl" and " NCCL INFO " in text for kind, text in shapes])
    keep &= ~_beyond_first(rows.shape, chatter[rows.shape], NCCL_KEPT)
    if keep.all():
        return rows
    pick = np.flatnonzero(keep)
    return Rows(
        *(getattr(rows, n)[pick] for n in ("offset", "length", "lead", "line", "time", "rank", "shape", "flags"))
    )


def _beyond_first(shape: Array, chosen: Array, kept: int) -> Array:
    """Which chosen rows come after the first `kept` of their shape."""
    out = np.zeros(len(shape), bool)
    pick = np.flatnonzero(chosen)
    if not len(pick):
        return out
    order = pick[np.argsort(shape[pick], kind="stable")]
    sorted_shape = shape[order]
    start = np.flatnonzero(np.concatenate([[True], sorted_shape[1:] != sorted_shape[:-1]]))
    nth = np.arange(len(order)) - np.repeat(start, np.diff(np.concatenate([start, [len(order)]])))
    out[order[nth >= kept]] = True
    return out
