"""Interim scan: plain Python over whole files, same table as the real engine. To be replaced."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from forensics.engine.table import HEADED, STAMPED, EventTable, Series, Shape
from forensics.schema.options import Options
from forensics.schema.rank import Rank
from forensics.schema.report import SourceInfo

WRAP = re.compile(r"^(?:[A-Za-z][\w.-]*-\d+\s+\| |\S+ (?:stdout|stderr) [FP] |\([^()]*pid=\d+[^()]*\) )")
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
HEAD = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)((?: [A-Z_]+\d+)*)\] ?(?:(INFO|WARNING|ERROR|CRITICAL|DEBUG) [\w./]+:\d+: )?")
KINDS: list[tuple[str, str]] = [
    ("decode-batch", r"^Decode batch"), ("prefill-batch", r"^Prefill batch"), ("server-args", r"server_args="),
    ("access", r'- "[A-Z]+ [^"]*" \d{3}'), ("command", r"^(\+|\$) .*(sglang|python)"),
    ("stage-mark", r"^(Init torch distributed|Init parallel|Load weight|Memory pool end|Capture cuda graph|max_total_num_tokens=|The server is fired|KV Cache is allocated|sglang is using nccl)"),
    ("progress", r"\d+%\|| Completed \|"), ("traceback-head", r"Traceback \(most recent call last\)"),
    ("frame", r'^\s+File "'), ("cuda-assert", r"Assertion .* failed"), ("cuda-advice", r"^(CUDA kernel errors might|For debugging consider|Compile with `TORCH)"),
    ("chain", r"^(During handling of the above|The above exception was)"), ("pg-watchdog", r"^\[rank\d+\]:\[[EWI]"),
    ("cxx-frame", r"^frame #"), ("cxx-abort", r"^(terminate called|  what\(\)|Aborted|Segmentation)"), ("faulthandler", r"^(Fatal Python|Thread 0x|Current thread)"),
    ("nccl", r"NCCL (INFO|WARN)"), ("gloo", r"^\[Gloo\]"), ("sigquit", r"(?i)sigquit"), ("argparse", r"^usage: |: error: "),
    ("exception", r"^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)(:|$)"), ("blank", r"^\s*$"),
]
COMPILED = [(k, re.compile(p)) for k, p in KINDS]


class FileSource:
    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.data = path.read_bytes()

    def pread(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


class SimpleUnwrapper:
    def message(self, raw: bytes, flags: int) -> tuple[str, int]:
        text = ANSI.sub("", raw.decode("utf-8", "replace")).rstrip("\r")
        wrap = WRAP.match(text)
        start = wrap.end() if wrap else 0
        head = HEAD.match(text[start:])
        start += head.end() if head else 0
        return text[start:], start


def scan(paths: Sequence[Path], options: Options | None = None) -> EventTable:
    """Scan files into one event table (interim)."""
    un = SimpleUnwrapper()
    sources, infos = [], []
    cols: dict[str, list] = {k: [] for k in ("source", "offset", "length", "line", "time", "rank", "shape", "flags")}
    ranks: dict[Rank, int] = {}
    shapes: dict[tuple[str, str], int] = {}
    shape_list: list[list] = []
    hot: dict[str, list] = {"decode": [], "prefill": []}
    counts: dict[str, int] = {}
    for si, path in enumerate(paths):
        src = FileSource(path)
        sources.append(src)
        off = 0
        now = float("nan")
        n = 0
        for raw in src.data.split(b"\n"):
            n += 1
            text = ANSI.sub("", raw.decode("utf-8", "replace")).rstrip("\r")
            wrap = WRAP.match(text)
            body = text[wrap.end():] if wrap else text
            head = HEAD.match(body)
            flags, rank, level = 0, -1, None
            if head:
                flags = STAMPED | HEADED
                stamp = head.group(1).replace(",", ".")
                now = datetime.fromisoformat(stamp).replace(tzinfo=timezone.utc).timestamp()
                parsed = Rank.parse(head.group(2))
                if parsed:
                    rank = ranks.setdefault(parsed, len(ranks))
                level = head.group(3)
                body = body[head.end():]
            kind = next((k for k, p in COMPILED if p.search(body)), None) or (level.lower() if level in ("INFO", "WARNING", "ERROR", "DEBUG") else ("message" if head else "text"))
            counts[kind] = counts.get(kind, 0) + 1
            if kind in ("decode-batch", "prefill-batch"):
                hot[kind[:-6]].append((len(cols["offset"]), si, n, now, rank, body))
            elif kind != "blank":
                key = (kind, re.sub(r"\d+(\.\d+)?", "0", body)[:200])
                if key not in shapes:
                    shapes[key] = len(shape_list)
                    shape_list.append([len(shape_list), kind, key[1], len(cols["offset"]), 0])
                shape_list[shapes[key]][4] += 1
                for name, value in zip(cols, (si, off, len(raw), n, now, rank, shapes[key], flags)):
                    cols[name].append(value)
            off += len(raw) + 1
        infos.append(SourceInfo(path=str(path), bytes=len(src.data), lines=n - (1 if src.data.endswith(b"\n") else 0)))
    dtypes = dict(source=np.int16, offset=np.int64, length=np.int32, line=np.int64, time=np.float64, rank=np.int16, shape=np.int32, flags=np.uint8)
    arrays = {k: np.array(v, dtype=dtypes[k]) for k, v in cols.items()}
    series = {k: _series(k, v) for k, v in hot.items()}
    return EventTable(sources=tuple(sources), infos=tuple(infos), ranks=tuple(ranks), shapes=tuple(Shape(*s) for s in shape_list), series=series, counts=counts, unwrapper=un, **arrays)


NAMES = {"#running-req": "running", "#queue-req": "queue", "token usage": "token_usage", "gen throughput (token/s)": "throughput", "accept len": "accept_len", "#cached-token": "cached_tokens", "#new-token": "new_tokens", "#new-seq": "new_seqs", "cuda graph": "cuda_graph", "#token": "tokens"}


def _series(kind: str, rows: list) -> Series:
    columns: dict[str, list[float]] = {v: [] for v in NAMES.values()}
    for *_, body in rows:
        found = dict(re.findall(r"([#\w][\w #()/-]*): (True|False|[\d.]+)", body))
        for label, name in NAMES.items():
            value = found.get(label)
            columns[name].append(float("nan") if value is None else {"True": 1.0, "False": 0.0}.get(value) if value in ("True", "False") else float(value.rstrip(".")))
    a = lambda i, t: np.array([r[i] for r in rows], dtype=t)
    return Series(kind=kind, row=a(0, np.int64), source=a(1, np.int16), line=a(2, np.int64), time=a(3, np.float64), rank=a(4, np.int16), columns={k: np.array(v) for k, v in columns.items()})
