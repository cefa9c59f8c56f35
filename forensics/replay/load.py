"""How much load the probe needs: at least what the failing launch had when it failed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forensics.errors import ForensicsError
from forensics.replay.probe import Load
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

_MOST_REQUESTS = 2000


def choose_load(
    names: Sequence[str],
    launch: LaunchInfo | None,
    concurrency: int,
    requests: int,
    tokens: int,
    seconds: float,
    settle: float = 5.0,
) -> Load:
    """`concurrency`/`requests` 0 are read from the log: the most running requests of its decode lines, and twice the
    requests that the failing launch had begun, so that the probe passes the point of the failure."""
    running, begun = _seen(names, launch) if names and not (concurrency and requests) else (0, 0)
    crowd = concurrency or max(4, running)
    count = requests or min(_MOST_REQUESTS, max(4 * crowd, 2 * begun, 32))
    return Load(crowd, count, tokens, seconds, settle)


def _seen(names: Sequence[str], launch: LaunchInfo | None) -> tuple[int, int]:
    from forensics.engine.scan import scan
    from forensics.ingest.inputs import open_inputs

    try:
        table = scan(open_inputs(names, Options()), Options())
    except ForensicsError:
        return 0, 0
    first, last = launch.lines if launch else (0, 1 << 62)
    decode, prefill = table.series.get("decode"), table.series.get("prefill")
    running = begun = 0
    if decode is not None and len(decode.line):
        inside = (decode.line >= first) & (decode.line <= last)
        values = decode.columns.get("running", np.zeros(0))[inside[: len(decode.columns.get("running", []))]]
        running = int(np.nanmax(values)) if len(values) and not np.all(np.isnan(values)) else 0
    if prefill is not None and len(prefill.line):
        inside = (prefill.line >= first) & (prefill.line <= last)
        values = prefill.columns.get("new_seqs", np.zeros(0))[inside[: len(prefill.columns.get("new_seqs", []))]]
        begun = int(np.nansum(values)) if len(values) else 0
    return running, begun
