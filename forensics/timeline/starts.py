"""Where one life of the server ends and the next begins, inside one input.

Every `server_args=` starts a launch unless it is a further print of the same one: the other node's log, another
service of one deployment (prefill and decode), a replica, or a child process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from forensics.engine.table import EventTable
from forensics.timeline.lookup import Rows, rows_of_shapes, shapes_where

_FIELD = re.compile(
    r"['\"]?\b(node_rank|nnodes|disaggregation_mode|dist_init_addr|model_path|port|random_seed|base_gpu_id"
    r"|tp_size|dp_size|pp_size|ep_size|enable_dp_attention)['\"]?\s*[:=]\s*('[^']*'|\"[^\"]*\"|[\w.:/-]+)"
)
_SERVICE = re.compile(rb"^\s*([A-Za-z][\w.-]*?)(?:-\d+)?\s+\| ")
_ENDED = re.compile(
    r"SIGQUIT|sigquit|kill_process_tree called|^Killed|\bKilled\b|SIGTERM received|Finished server process"
    r"|crashed with exit code|Shutting down|scheduler (?:is dead|died)|^Exit code: |^[\w./ -]{1,80}: error: "
)
_LAUNCH_COMMAND = re.compile(
    r"sglang[._](?:launch_server|bench|srt)|sglang\.launch|sglang serve|sglang_router|sglang\.bench"
)
_SAME_START_S = 900.0
_FIELDS_READ = 1 << 16


@dataclass(frozen=True, slots=True)
class Start:
    """A `server_args=` line and the fields that tell launches apart."""

    row: int
    time: float | None
    fields: dict[str, str]
    service: str
    ranked: bool

    def field(self, name: str, default: str = "") -> str:
        return self.fields.get(name, default)


def find_starts(table: EventTable, rows: Rows) -> list[Start]:
    """The `server_args=` lines among `rows`, in order."""
    kept = rows[np.isin(rows, table.rows_of_kind("server-args"))]
    starts = []
    for row in kept.tolist():
        text = table.text(row)[:_FIELDS_READ]
        fields = {m.group(1): m.group(2).strip("'\"") for m in reversed(list(_FIELD.finditer(text)))}
        starts.append(Start(row, table.time_of(row), fields, service_of(table.raw(row)), int(table.rank[row]) >= 0))
    return starts


def service_of(raw: bytes) -> str:
    """The service name that a compose prefix gives, without its replica number."""
    match = _SERVICE.match(raw[:200])
    return match.group(1).decode("utf-8", "replace") if match else ""


def end_rows(table: EventTable, rows: Rows) -> Rows:
    """Rows that tell of a server's end."""
    ids = shapes_where(
        table,
        lambda s, t: (
            s.kind in ("exit", "sigquit") or (s.kind not in ("request-dump", "access") and _ENDED.search(t) is not None)
        ),
    )
    found = rows_of_shapes(table, ids)
    return found[np.isin(found, rows)]


def command_rows(table: EventTable, rows: Rows) -> Rows:
    """Rows of command lines that start sglang."""
    kept = rows[np.isin(rows, table.rows_of_kind("command"))]
    return np.array([r for r in kept.tolist() if _LAUNCH_COMMAND.search(table.text(r))], dtype=np.int64)


def usage_rows(table: EventTable, rows: Rows) -> Rows:
    """First rows of argparse usages (a launch that fails there prints no server_args)."""
    kept = rows[np.isin(rows, table.rows_of_kind("argparse"))]
    return np.array([r for r in kept.tolist() if table.text(r).startswith("usage:")], dtype=np.int64)


def cuts(table: EventTable, rows: Rows) -> list[int]:
    """First rows of the second and later launches of one input (`rows` are all rows of that input)."""
    if not len(rows):
        return []
    ends = end_rows(table, rows)
    found: list[tuple[int, int]] = []  # (boundary, anchor)
    held: list[Start] = []
    anchors = sorted(
        [(int(r), None) for r in command_rows(table, rows)]
        + [(int(r), None) for r in usage_rows(table, rows)]
        + [(s.row, s) for s in find_starts(table, rows)],
        key=lambda pair: pair[0],
    )
    last = int(rows[0])
    open_anchor = False
    for row, start in anchors:
        ended = bool(len(ends)) and bool(((ends > last) & (ends < row)).any())
        if start is not None and held and _same(held, start, ended):
            held.append(start)
            last = row
            continue
        fresh = not held and not found and not ended and not open_anchor
        continues = open_anchor and not ended  # the command line or usage that this server_args belongs to
        if not fresh and not continues and (start is not None or ended or _busy(table, rows, last, row)):
            found.append((_boundary(table, rows, ends, last, row, start), row))
            held = []
        if start is not None:
            held.append(start)
        open_anchor = start is None
        last = row
    return [boundary for boundary, _ in found]


def _busy(table: EventTable, rows: Rows, low: int, high: int) -> bool:
    """Whether anything with a log header stands between two anchors without server_args."""
    between = rows[(rows > low) & (rows < high)]
    return bool(len(between)) and bool((table.flags[between] & 2).any())


def _same(held: list[Start], new: Start, ended: bool) -> bool:
    """Whether `new` is a further print of the launch that `held` started."""
    first = held[0]
    nodes = {s.field("node_rank", "0") for s in held}
    if new.ranked:
        return True
    if (
        _number(new, "nnodes") > 1
        and new.field("node_rank", "0") not in nodes
        and new.field("nnodes") == first.field("nnodes")
    ):
        return _near(held, new)
    modes = {s.field("disaggregation_mode", "null") for s in held}
    if new.field("disaggregation_mode", "null") not in modes and modes != {"null"}:
        return _near(held, new) and (not ended or _backwards(held, new))
    if ended:
        return False
    if new.service and new.service not in {s.service for s in held if s.service} and any(s.service for s in held):
        return _near(held, new)
    if new.fields == first.fields and new.fields:
        return _close(held, new, 120.0)
    replica = new.field("port") not in {s.field("port") for s in held} and new.field("model_path") == first.field(
        "model_path"
    )
    return replica and _close(held, new, 60.0)


def _number(start: Start, name: str) -> int:
    text = start.field(name, "0")
    return int(text) if text.isdigit() else 0


def _near(held: list[Start], new: Start) -> bool:
    return _close(held, new, _SAME_START_S)


def _backwards(held: list[Start], new: Start) -> bool:
    return new.time is not None and held[-1].time is not None and new.time < held[-1].time


def _close(held: list[Start], new: Start, seconds: float) -> bool:
    times = [s.time for s in held if s.time is not None]
    return new.time is None or not times or min(abs(new.time - t) for t in times) <= seconds


def _boundary(table: EventTable, rows: Rows, ends: Rows, last: int, row: int, start: Start | None) -> int:
    """First row of the launch whose anchor is `row`: after everything that surely belongs to the one before."""
    if start is None:
        return _with_shell_lines(table, row, last)
    between = rows[(rows > last) & (rows < row)]
    if not len(between):
        return row
    foreign = np.zeros(len(between), dtype=bool)
    foreign |= table.rank[between] >= 0
    foreign |= np.isin(between, ends)
    kinds = np.array([s.kind in _OLD_KINDS for s in table.shapes], dtype=bool)
    foreign |= kinds[table.shape[between]]
    at = np.flatnonzero(foreign)
    return int(between[at[-1] + 1]) if len(at) and at[-1] + 1 < len(between) else (row if len(at) else int(between[0]))


def _with_shell_lines(table: EventTable, row: int, last: int) -> int:
    """Shell lines directly above a command (`nohup:`, `+ export …`, prompts) belong to it."""
    while row - 1 > last and table.kind(row - 1) in ("shell", "command") and not _ENDED.search(table.text(row - 1)):
        row -= 1
    return row


_OLD_KINDS = frozenset(
    {
        "exception",
        "frame",
        "frame-source",
        "traceback-head",
        "chain",
        "cuda-assert",
        "cxx-abort",
        "cxx-frame",
        "cxx-log",
        "stage-mark",
        "uvicorn",
        "access",
        "sigquit",
        "exit",
        "pg-watchdog",
        "faulthandler",
        "argparse",
        "progress",
        "gloo",
    }
)
