"""The part of the input that the caller asks for: `--since` and `--until`."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from forensics.engine.table import EventTable
from forensics.errors import UsageError
from forensics.schema.options import Options
from forensics.timeline.lookup import Rows


def leaves_out(table: EventTable, options: Options) -> bool:
    """Whether `--since` and `--until` leave lines out. UsageError where no line with a time is left."""
    if options.since is None and options.until is None:
        return False
    stamped = np.flatnonzero(~np.isnan(table.time))
    kept = len(in_window(table, stamped, options))
    if len(stamped) and not kept:
        low, high = (datetime.fromtimestamp(t, UTC).isoformat(sep=" ", timespec="seconds")[:19]
                     for t in (table.time[stamped].min(), table.time[stamped].max()))  # fmt: skip
        raise UsageError(
            "no line of the input lies between --since and --until", hint=f"its times run from {low} to {high}"
        )
    return kept < len(stamped)


def in_window(table: EventTable, rows: Rows, options: Options) -> Rows:
    """The rows between `--since` and `--until`; a row without a time stays."""
    if options.since is None and options.until is None:
        return rows
    times = table.time[rows]
    keep = np.ones(len(rows), dtype=bool)
    if options.since is not None:
        keep &= ~(times < options.since)
    if options.until is not None:
        keep &= ~(times > options.until)
    return rows[keep]
