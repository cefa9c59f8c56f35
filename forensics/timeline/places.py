"""Where a failure happened: a start-up stage, or inside serving its phase."""

from __future__ import annotations

import re

import numpy as np

from forensics.engine.table import EventTable
from forensics.schema.block import Frame
from forensics.schema.launch import StageMark
from forensics.timeline import component, roles
from forensics.timeline.episodes import Episode
from forensics.timeline.faults import Fault
from forensics.timeline.stages import ORDER, stage_at

_OF_A_REQUEST = re.compile(
    r"^(?:\S+ \S+ +)?(?:ERROR|WARN) +http_request\{|^http_request\{|Circuit breaker state transition"
    r"|Failed to select (?:PD pair|prefill|decode|a? ?worker)"
)
"""A router's words about a request that it could not hand on: a router has no start-up stages of a server."""
_NAMED = re.compile(r"^(Decode|Prefill|Extend) (?:out of memory|transfer|bootstrap)|\b(prefill|decode)\b")


def place_of(
    table: EventTable,
    episode: Episode,
    others: list[Episode],
    marks: tuple[StageMark, ...],
    truncated: bool,
    mode: str = "",
) -> str:
    """A start-up stage, a phase, or `unknown`. `mode` is the one PD role of the launch, if it has just one."""
    fault = episode.first
    if episode.nature == roles.CLIENT or (fault.source == "line" and _OF_A_REQUEST.search(fault.text)):
        return "client"
    if table.kind(fault.row) == "access":
        return "client"
    if fault.key == "panic" and not marks:
        return "unknown"
    rank = fault.rank
    frames = fault.frames or _echo_frames(episode, others)
    default = "unknown" if truncated else "config"
    stage = stage_at(marks, fault.head, rank, default)
    if stage != "serving":
        return _startup(fault, frames, stage, truncated)
    return _phase(table, fault, frames, mode)


def _startup(fault: Fault, frames: tuple[Frame, ...], stage: str, truncated: bool) -> str:
    told = component.startup_stage(frames)
    if told is not None:
        return told
    if any(component.EVENT_LOOP.match(f.function) for f in frames):
        if not truncated and stage in ("warmup", "graph-capture", "kv-pool", "load", "init"):
            return "warmup"
        return component.phase_of(frames) or "unknown"
    if stage == "unknown":
        return component.phase_of(frames) or _named_phase(fault) or stage
    if stage == "config" and (component.is_scheduler(fault.frames) or fault.key == "child-died"):
        return "init"
    return stage


def _phase(table: EventTable, fault: Fault, frames: tuple[Frame, ...], mode: str) -> str:
    if mode:
        return mode
    told = component.phase_of(frames)
    if told is not None:
        return told
    return _named_phase(fault) or last_batch(table, fault.head) or "unknown"


def _named_phase(fault: Fault) -> str | None:
    """The phase that the message itself names."""
    named = _NAMED.search(fault.text)
    if named is None:
        return None
    word = (named.group(1) or named.group(2)).lower()
    return "prefill" if word in ("prefill", "extend") else "decode"


def last_batch(table: EventTable, row: int) -> str | None:
    """Kind of the batch line that stands last before a row, or None."""
    best: tuple[int, int, int, str] | None = None
    for kind, series in table.series.items():
        at = int(np.searchsorted(series.row, row, side="right")) - 1
        if at >= 0 and kind in ("prefill", "decode"):
            key = (int(series.row[at]), int(series.line[at]), at, kind)
            best = max(best, key) if best is not None else key
    return best[3] if best is not None else None


def _echo_frames(episode: Episode, others: list[Episode]) -> tuple[Frame, ...]:
    """Frames of the first ranked error that echoes a device assert."""
    fault = episode.first
    if fault.source != "cuda-assert":
        return ()
    return next(
        (
            tuple(o.first.frames)
            for o in others
            if o.first.head >= fault.head and o.first.key == "device-assert-echo" and o.first.frames
        ),
        (),
    )


def later(a: str, b: str) -> str:
    """The later of two start-up stages."""
    return a if ORDER.get(a, -1) >= ORDER.get(b, -1) else b
