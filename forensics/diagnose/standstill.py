"""What a server that stands still was doing: the last record before the silence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.engine.table import STAMPED
from forensics.frozen import frozen
from forensics.late import Late
from forensics.rulebook.case import Case
from forensics.schema.launch import Failure

MIN_SILENCE_S = 20.0
_LOOK_BACK = 400
_LAST_RECORDS = 6
_BARE = frozenset({"progress", "text", "message"})
"""Kinds of lines that say what goes on without a time stamp."""


@frozen
class Work:
    """Work that was under way: `row` states it."""

    title: str
    why: str
    row: int
    collect: tuple[tuple[str, str], ...] = ()
    do: tuple[tuple[str, str], ...] = ()


@frozen
class _Kind:
    pattern: Late[str]
    title: str
    collect: tuple[tuple[str, str], ...]
    do: tuple[tuple[str, str], ...] = ()


_COMPILERS = ("whether a compiler runs on the host", "ps -ef | grep -E 'nvcc|ptxas|cicc|ninja|inductor' | head")
_KINDS = (
    _Kind(
        Late(r"(?i)\bjit\b|\bcompil(?:e|ing|ation)\b|\bninja\b|building extension|autotun|inductor|dynamo"),
        "Kernels were still being compiled",
        (_COMPILERS,),
        (("start once without load until the kernels are compiled and cached (or compile them ahead of time), then "
          "serve", ""),),
    ),
    _Kind(
        Late(r"(?i)\bdownload|\bfetching\b|snapshot"),
        "Files were still being downloaded",
        (("how fast the cache of the hub grows", "du -sh ~/.cache/huggingface"),),
    ),
    _Kind(
        Late(r"(?i)load(?:ing)? (?:weight|safetensors|checkpoint|shards|model)|shards:"),
        "Weights were still being loaded",
        (("how fast the storage reads", "iostat -x 2 5"),),
    ),
    _Kind(Late(r"(?i)capturing (?:batches|num tokens)|capture .{0,20}graph"), "Graphs were still being captured",
          (_COMPILERS,)),
)  # fmt: skip


def last_work(case: Case, failure: Failure) -> Work | None:
    """What the launch was at before the silence that ends with this failure; None where the log does not tell."""
    table = case.table
    end = table.time_of(failure.row)
    if end is None:
        return None
    rows = case.launch.rows
    at = int(np.searchsorted(rows, failure.row))
    for row in rows[max(0, at - _LOOK_BACK) : at][::-1].tolist():
        time = table.time_of(row) if table.flags[row] & STAMPED else None
        if time is not None and end - time < MIN_SILENCE_S:
            continue  # printed together with the alarm
        text = table.text(row).strip()
        if text and (time is not None or table.kind(row) in _BARE):
            return _work(text, row, None if time is None else end - time)
    return None


def last_record(case: Case) -> Work | None:
    """What a launch was at where its log stops without a failure; None where the last records do not tell."""
    for row in case.launch.rows[-_LAST_RECORDS:][::-1].tolist():
        text = case.table.text(row).strip()
        found = _work(text, row, None) if text else None
        if found is not None:
            return replace(found, why=f"the last such record of the log is: {text[:120]}")
    return None


def _work(text: str, row: int, seconds: float | None) -> Work | None:
    for kind in _KINDS:
        if kind.pattern.search(text[:300]):
            since = f"{seconds:.0f} s before the failure" if seconds is not None else "before the silence"
            why = f"the last record {since} is: {text[:120]}"
            return Work(kind.title, why, row, kind.collect, kind.do)
    return None
