"""Calls of neighbouring stages that a build may lack: facts and version inference."""

from __future__ import annotations

import importlib
from typing import Any

from forensics.engine.table import EventTable
from forensics.schema.block import Block
from forensics.schema.facts import Fact, VersionInterval
from forensics.timeline.lookup import Rows


def _function(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None


def facts_of(table: EventTable, rows: Rows, blocks: tuple[Block, ...], env_reports: tuple[str, ...]) -> dict[str, Fact]:
    """Facts that the rows state, by name; none where the stage is absent."""
    collect = _function("forensics.timeline.facts", "collect_facts")
    if collect is None:
        return {}
    found: dict[str, Fact] = collect(table, rows, blocks, env_reports)
    return found


def version_of(table: EventTable, rows: Rows, facts: dict[str, Fact]) -> VersionInterval:
    """The sglang version interval; open on both sides where the stage is absent."""
    infer = _function("forensics.timeline.version", "infer_version")
    if infer is None:
        return VersionInterval()
    interval: VersionInterval = infer(table, rows, facts)
    return interval
