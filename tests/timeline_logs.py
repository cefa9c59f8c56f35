"""Small logs in the program's formats, for tests of the timeline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from forensics.engine.scan import scan
from forensics.engine.table import EventTable
from forensics.grammar.blocks import find_blocks
from forensics.schema.launch import Launch
from forensics.schema.options import Options
from forensics.timeline.failures import find_failures
from forensics.timeline.launches import find_launches


def at(second: int, rank: str = "", day: str = "2026-03-04", hour: int = 10) -> str:
    minute, rest = divmod(second, 60)
    extra, minute = divmod(minute, 60)
    return f"[{day} {hour + extra:02d}:{minute:02d}:{rest:02d}{' ' + rank if rank else ''}]"


def args(second: int, **fields: object) -> str:
    held: dict[str, object] = {
        "model_path": "/models/m",
        "tp_size": 1,
        "dp_size": 1,
        "pp_size": 1,
        "nnodes": 1,
        "node_rank": 0,
        "port": 30000,
        "disaggregation_mode": "null",
        **fields,
    }
    return f"{at(second)} server_args=ServerArgs({', '.join(f'{k}={v!r}' for k, v in held.items())})"


def startup(second: int, ranks: Iterable[str], ready: bool = True) -> list[str]:
    lines = []
    ranks = list(ranks)
    for offset, text in enumerate(
        (
            "Init torch distributed begin.",
            "Init torch distributed ends. elapsed=1.02 s, mem usage=1.20 GB",
            "Load weight begin. avail mem=78.10 GB",
            "Load weight end. elapsed=2.00 s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=60.10 GB, mem usage=18.00 GB.",
            "KV Cache is allocated. #tokens: 65536, K size: 8.00 GB, V size: 8.00 GB",
            "Memory pool end. avail mem=40.00 GB",
            "Capture cuda graph begin. This can take up to several minutes. avail mem=39.00 GB",
            "Capture cuda graph end. Time elapsed: 9.10 s. mem usage=1.00 GB. avail mem=38.00 GB.",
        )
    ):
        lines += [f"{at(second + offset, rank)} {text}" for rank in ranks]
    if ready:
        lines += [
            f"{at(second + 9, ranks[0])} max_total_num_tokens=65536, chunked_prefill_size=8192, max_running_requests=2048",
            f"{at(second + 10)} INFO:     Started server process [100]",
            f"{at(second + 10)} INFO:     Application startup complete.",
            f"{at(second + 10)} INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",
            prefill(second + 11, ranks[0]),
            f'{at(second + 11)} INFO:     127.0.0.1:50000 - "POST /generate HTTP/1.1" 200 OK',
            f"{at(second + 12)} The server is fired up and ready to roll!",
        ]
    return lines


def prefill(second: int, rank: str = "") -> str:
    return f"{at(second, rank)} Prefill batch, #new-seq: 1, #new-token: 11, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, "


def decode(second: int, rank: str = "", running: int = 4) -> str:
    return f"{at(second, rank)} Decode batch, #running-req: {running}, #token: 808, token usage: 0.04, cuda graph: True, gen throughput (token/s): 24.04, #queue-req: 0"


def trace(
    second: int,
    rank: str,
    message: str,
    functions: Iterable[str] = ("event_loop_overlap", "run_batch", "forward_decode"),
) -> list[str]:
    lines = [f"{at(second, rank)} Scheduler hit an exception: Traceback (most recent call last):"]
    for number, name in enumerate(("run_scheduler_process", *functions), start=1):
        lines.append(
            f'  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line {number}00, in {name}'
        )
    return [*lines, message, ""]


SIGQUIT = "SIGQUIT received. signum=None, frame=None. It usually means one child failed."


def table_of(folder: Path, *texts: list[str]) -> EventTable:
    paths = []
    for number, lines in enumerate(texts):
        path = folder / f"input{number}.log"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        paths.append(path)
    return scan(paths)


def launches(folder: Path, *texts: list[str]) -> tuple[EventTable, tuple[Launch, ...]]:
    table = table_of(folder, *texts)
    blocks = find_blocks(table)
    found = find_launches(table, blocks, Options())
    return table, tuple(find_failures(table, blocks, x, {}, {}) for x in found)


def first_line(table: EventTable, launch: Launch) -> int | None:
    failure = launch.failure(launch.first_failure)
    return int(table.line[failure.row]) if failure is not None else None
