"""Where one life of the server ends and the next begins, inside one input.

Every `server_args=` starts a launch unless it is a further print of the same one: the other node's log, another
service of one deployment (prefill and decode), a replica, or a child process.
"""

from __future__ import annotations

import numpy as np

from forensics.engine.table import STAMPED, EventTable
from forensics.frozen import frozen
from forensics.late import Late
from forensics.schema.block import Block
from forensics.timeline.firsts import firsts
from forensics.timeline.lookup import OPAQUE, Rows, are_in, distinct, rows_of_shapes, within
from forensics.timeline.roles import CAUSE, phrase_of
from forensics.timeline.sieve import needle
from forensics.timeline.stages import mark_of, near_marks

_FIELD = Late(
    r"['\"]?\b(node_rank|nnodes|disaggregation_mode|dist_init_addr|model_path|port|random_seed|base_gpu_id"
    r"|tp_size|dp_size|pp_size|ep_size|enable_dp_attention)['\"]?\s*[:=]\s*('[^']*'|\"[^\"]*\"|[\w.:/-]+)"
)
_SERVICE = Late(rb"^\s*([A-Za-z][\w.-]*?)(?:-\d+)?\s+\| ")
_ENDED = needle(
    r"SIGQUIT|sigquit|kill_process_tree called|^Killed|\bKilled\b|SIGTERM received|Finished server process"
    r"|crashed with exit code|Shutting down|scheduler (?:is dead|died)|^Exit code: |^[\w./ -]{1,80}: error: "
    r"|^nanobind: |^\s*- leaked |leaked semaphore|leaked shared_memory|^See https://nanobind|^\s*- \.\.\. skipped"
)
_LAUNCH_COMMAND = Late(r"sglang[._](?:launch_server|bench|srt)|sglang\.launch|sglang serve|sglang_router|sglang\.bench")
_SERVER_COMMAND = Late(r"launch_server|sglang serve|sglang_router")
_USAGE = Late(r"^usage:|^[\w./ -]{1,80}: error: ")
_HTTP_DOWN = needle(r"^(?:INFO: +)?(?:Waiting for application|Application s|Finished server|Shutting down)")
_INIT = needle(r"^(?:Init (?:torch distributed|nccl|parallel) begin)")
_ENTRY = Late(
    r"_run_module_as_main|launch_server\.py|\brun_server$|\blaunch_server$|bin/sglang\b|/cli/(?:main|serve)\.py"
)
_CHILD = Late(
    r"run_scheduler_process|multiprocessing/spawn|run_detokenizer_process|run_data_parallel_controller_process"
)
_SAME_START_S = 900.0
_FIELDS_READ = 1 << 16
MAX_INITS = 4096
MAX_HELD = 512
"""Prints of one launch that a further one is compared with."""
STRAGGLE_S = 15.0
"""A new launch needs longer than this from the end of the old one to the set-up of its process groups."""
CONFIG_S = 600.0
"""Lines of the config stage stand at most this long before `server_args=`."""
_PRINTED = needle(r"^(?:server_args: \{|server_args=)")


@frozen
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
    if not len(rows):
        return []
    places, starts = _all_starts(table)
    low, high = np.searchsorted(places, (rows[0], rows[-1] + 1)).tolist()
    kept = set(within(places[low:high], rows).tolist())
    return [start for start in starts[low:high] if start.row in kept]


def _all_starts(table: EventTable) -> tuple[Rows, list[Start]]:
    """All `server_args=` lines of the table, read once: their rows, and what they say."""
    found: tuple[Rows, list[Start]] | None = table.memo.get("starts")
    if found is None:
        stated = [s.id for s, _ in firsts(table).matching(_PRINTED)]
        printed = rows_of_shapes(table, (*stated, *(s.id for s in table.shapes if s.kind == "server-args")))
        found = table.memo["starts"] = (printed, _read_starts(table, printed))
    return found


def _read_starts(table: EventTable, rows: Rows) -> list[Start]:
    starts = []
    for row in rows.tolist():
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
    first = firsts(table)
    ids = {s.id for s in table.shapes if s.kind in ("exit", "sigquit")}
    for shape in first.near(_ENDED):
        if table.shapes[shape].kind not in OPAQUE and _ENDED.pattern.search(first.text(shape)[:2000]):
            ids.add(shape)
    return within(rows_of_shapes(table, ids), rows)


def command_rows(table: EventTable, rows: Rows) -> Rows:
    """Rows of command lines that start sglang."""
    kept = within(table.rows_of_kind("command"), rows)
    return np.array([r for r in kept.tolist() if _LAUNCH_COMMAND.search(table.text(r))], dtype=np.int64)


def usage_rows(table: EventTable, rows: Rows) -> Rows:
    """First and last rows of argparse usages (a launch that fails there prints no server_args)."""
    kept = within(table.rows_of_kind("argparse"), rows)
    return np.array([r for r in kept.tolist() if _USAGE.search(table.text(r))], dtype=np.int64)


@frozen
class _Anchor:
    """A row that shows a launch: `args`, `command`, `usage`, `death` (the parent's own traceback), `init`."""

    row: int
    kind: str
    start: Start | None = None


def cuts(table: EventTable, rows: Rows, blocks: tuple[Block, ...] = ()) -> list[int]:
    """First rows of the second and later launches of one input (`rows` are all rows of that input)."""
    if not len(rows):
        return []
    dead = deaths(blocks, rows)
    joined = np.concatenate([end_rows(table, rows), np.array([b for _, b in dead], dtype=np.int64)])
    ends = np.array(distinct(joined), dtype=np.int64)
    inits = init_rows(table, rows)
    found: list[int] = []
    held: list[Start] = []
    last = int(rows[0]) - 1
    begun = last
    opened = False
    for anchor in _anchors(table, rows, [a for a, _ in dead], inits):
        ended = _any_between(ends, last - 1, anchor.row - _own_cleanup(table, anchor))
        started = _any_between(inits, begun, anchor.row)
        if anchor.start is not None and held and _same(held, anchor.start, ended, started):
            _hold(held, anchor.start)
            last = anchor.row
            continue
        if anchor.kind == "init" and _straggles(table, inits, ends, begun, anchor.row):
            continue
        if _begins(anchor, ended, started, bool(held), opened, table):
            boundary = _boundary(table, rows, ends, last, anchor)
            if boundary > int(rows[0]):
                found.append(boundary)
            held, begun = [], anchor.row
        if anchor.start is not None:
            held.append(anchor.start)
        last = anchor.row
        opened = True
    return found


def _hold(held: list[Start], new: Start) -> None:
    """One more print of a launch: the first ones and the latest are remembered."""
    del held[MAX_HELD - 1 :]
    held.append(new)


def _begins(anchor: _Anchor, ended: bool, started: bool, held: bool, opened: bool, table: EventTable) -> bool:
    """Whether an anchor begins a launch of its own, rather than belonging to the one that is open."""
    if anchor.kind == "command":
        return ended or ((held or started) and _SERVER_COMMAND.search(table.text(anchor.row)) is not None)
    if anchor.kind in ("death", "init"):
        return ended and (opened or started)
    return ended or held or started


def _own_cleanup(table: EventTable, anchor: _Anchor) -> int:
    """1 where the row before is the parent's clean-up of its children on its way out: its own traceback comes next."""
    before = anchor.row - 1
    if anchor.kind != "death" or before < 0 or table.source[before] != table.source[anchor.row]:
        return 0
    text = table.text(before)
    return int("kill_process_tree called" in text and "include_parent=False" in text)


def _straggles(table: EventTable, inits: Rows, ends: Rows, begun: int, row: int) -> bool:
    """Whether a rank comes up for the first time while its launch is torn down: replicas outlive a parent that died."""
    rank, now = int(table.rank[row]), table.time[row]
    if rank < 0 or bool((table.rank[inits[(inits > begun) & (inits < row)]] == rank).any()):
        return False
    low, high = np.searchsorted(ends, (begun, row)).tolist()
    return bool((np.abs(table.time[ends[low:high]] - now) <= STRAGGLE_S).any())


def _anchors(table: EventTable, rows: Rows, dead: list[int], inits: Rows) -> list[_Anchor]:
    found = [_Anchor(int(r), "command") for r in command_rows(table, rows)]
    found += [_Anchor(int(r), "usage") for r in usage_rows(table, rows)]
    found += [_Anchor(s.row, "args", s) for s in find_starts(table, rows)]
    found += [_Anchor(r, "death") for r in dead]
    found += [_Anchor(int(r), "init") for r in inits[:MAX_INITS]]
    return sorted(found, key=lambda a: a.row)


def _any_between(found: Rows, low: int, high: int) -> bool:
    return bool(np.searchsorted(found, low, side="right") < np.searchsorted(found, high, side="left"))


def init_rows(table: EventTable, rows: Rows) -> Rows:
    """Rows at which a scheduler process begins to come up."""
    return within(rows_of_shapes(table, (s.id for s, _ in firsts(table).matching(_INIT))), rows)


def deaths(blocks: tuple[Block, ...], rows: Rows) -> list[tuple[int, int]]:
    """First and last rows of tracebacks with which the parent process died of its own error."""
    found = []
    for block in blocks:
        if block.kind != "traceback" or block.rank is not None or not block.raised or not _holds(rows, block.head):
            continue
        stack = [(f.file, f.function) for f in block.frames]
        if not any(_ENTRY.search(f"{file} {name}") for file, name in stack):
            continue
        if any(_CHILD.search(f"{file} {name}") for file, name in stack):
            continue
        phrase = phrase_of(f"{block.raised[0].type}: {block.raised[0].message}".split("\n", 1)[0])
        if phrase is None or phrase.nature == CAUSE:
            found.append((block.rows[0], block.rows[-1]))
    return found


def _holds(rows: Rows, row: int) -> bool:
    at = int(np.searchsorted(rows, row))
    return at < len(rows) and int(rows[at]) == row


def _same(held: list[Start], new: Start, ended: bool, started: bool) -> bool:
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
    if new.fields == first.fields and new.fields and not started:
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


def _boundary(table: EventTable, rows: Rows, ends: Rows, last: int, anchor: _Anchor) -> int:
    """First row of the launch that an anchor shows: after everything that surely belongs to the one before."""
    row = anchor.row
    if anchor.kind in ("command", "usage"):
        return _with_shell_lines(table, row, last)
    between = rows[np.searchsorted(rows, last, "right") : np.searchsorted(rows, row)]
    if not len(between):
        return row
    foreign = np.zeros(len(between), dtype=bool)
    foreign |= table.rank[between] >= 0
    foreign |= are_in(between, ends)
    foreign |= are_in(between, _old_rows(table))
    foreign |= between < _last_hot(table, row, last)
    now = table.time[row]
    if not np.isnan(now):
        foreign |= (table.time[between] < now - CONFIG_S) & ((table.flags[between] & STAMPED) > 0)
    at = np.flatnonzero(foreign)
    if not len(at):
        return int(between[0])
    return int(between[at[-1] + 1]) if at[-1] + 1 < len(between) else row


def _last_hot(table: EventTable, row: int, last: int) -> int:
    """The row below the last batch line between two anchors (0: none): above it a server is up."""
    found = 0
    for series in table.series.values():
        first, stop = np.searchsorted(series.row, (last, row), "right")
        same = series.row[first:stop][series.source[first:stop] == table.source[row]]
        found = max(found, int(same.max()) if len(same) else 0)
    return found


def _old_rows(table: EventTable) -> Rows:
    """Lines that speak of a server that is up, or of a failure: none of the config stage."""
    found = table.memo.get("old rows")
    if found is None:
        first = firsts(table)
        ids = {s.id for s in table.shapes if s.kind in _OLD_KINDS or s.kind == "error"}
        for shape in {*near_marks(table), *first.near(_HTTP_DOWN)} - ids:
            text = first.text(shape)[:400]
            if mark_of(text) is not None or _HTTP_DOWN.pattern.search(text):
                ids.add(shape)
        found = table.memo["old rows"] = rows_of_shapes(table, ids)
    kept: Rows = found
    return kept


def _with_shell_lines(table: EventTable, row: int, last: int) -> int:
    """Shell lines directly above a command (`nohup:`, `+ export …`, prompts) and usage lines belong to it."""
    while (
        row - 1 > last
        and table.kind(row - 1) in ("shell", "command", "argparse")
        and not _ENDED.pattern.search(table.text(row - 1))
    ):
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
        "py-spy",
        "nccl",
        "transport",
        "progress",
        "gloo",
    }
)
