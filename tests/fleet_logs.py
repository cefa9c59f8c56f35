"""Many small logs in the program's formats, for tests of fleets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from forensics.fleet.job import run_job

START = datetime(2026, 3, 2, 8, 0, 0, tzinfo=UTC)
FAILURES = ("none", "oom", "odd", "weights")


def log(
    number: int,
    failure: str,
    *,
    version: str = "0.5.9",
    begin: datetime | None = None,
    steps: int = 12,
    nodes: int = 1,
    node: int = 0,
    address: str = "None",
) -> str:
    """One server's life. `failure` is one of FAILURES; `number` varies what may vary."""
    clock = [begin or START + timedelta(minutes=number)]

    def at(rank: str = "", after: float = 1) -> str:
        clock[0] += timedelta(seconds=after)
        return f"[{clock[0]:%Y-%m-%d %H:%M:%S}{' ' + rank if rank else ''}]"

    ranks = [f"TP{r}" for r in range(2 * node, 2 * node + 2)]
    place = "None" if address == "None" else f"'{address}'"
    lines = [
        f"{at()} server_args=ServerArgs(model_path='/models/m{number % 3}', tp_size={2 * nodes}, dp_size=1, pp_size=1, nnodes={nodes}, node_rank={node}, dist_init_addr={place}, port={30000 + number % 50}, disaggregation_mode='null')",
        f"{at()} sglang version: {version}",
    ]
    for text in (
        "Init torch distributed begin.",
        "Init torch distributed ends. elapsed=1.02 s, mem usage=1.20 GB",
        "Load weight begin. avail mem=78.10 GB",
    ):
        lines += [f"{at(rank, 0.5)} {text}" for rank in ranks]
    if failure == "weights":
        lines += _raised(at, ranks[0], "RuntimeError: Error(s) in loading state_dict: size mismatch")
        return "\n".join(lines) + "\n"
    for text in (
        f"Load weight end. elapsed=2.{number % 90:02d} s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=60.10 GB, mem usage=18.00 GB.",
        "KV Cache is allocated. #tokens: 65536, K size: 8.00 GB, V size: 8.00 GB",
        "Memory pool end. avail mem=40.00 GB",
    ):
        lines += [f"{at(rank, 0.5)} {text}" for rank in ranks]
    lines.append(f"{at()} The server is fired up and ready to roll!")
    for step in range(steps):
        lines.append(
            f"{at(ranks[0])} Decode batch, #running-req: {1 + step % 9}, #token: {100 + number * 7 + step}, token usage: 0.0{step % 10}, cuda graph: True, gen throughput (token/s): {900 + (number * 13 + step) % 400}.25, #queue-req: 0"
        )
    if failure == "oom":
        lines += _raised(
            at,
            ranks[1],
            f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {2 + number % 5}.00 GiB. GPU 1 has a total capacity of 79.11 GiB of which 1.02 GiB is free.",
        )
    if failure == "odd":
        lines += _raised(
            at, ranks[0], f"ValueError: lattice widget {number * 31} refused the frobnication of slot {number % 7}"
        )
    return "\n".join(lines) + "\n"


def _raised(at, rank: str, said: str) -> list[str]:
    return [
        f"{at(rank)} Scheduler hit an exception: Traceback (most recent call last):",
        '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2800, in run_scheduler_process',
        "    scheduler.event_loop_overlap()",
        '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py", line 1200, in forward',
        "    return self.forward_decode(batch)",
        said,
        "",
        f"{at()} Received sigquit from a child process. It usually means the child failed.",
    ]


def write_fleet(folder: Path, count: int, services: int = 4, machines: int = 10) -> list[Path]:
    """`count` logs as `<service>/node-<m>/run-<i>/server.log`; every third fails."""
    paths = []
    for number in range(count):
        failure = FAILURES[1 + number // 3 % 3] if number % 3 == 0 else "none"
        path = (
            folder
            / f"chat-{'abcdefgh'[number % services]}"
            / f"node-{number % machines}"
            / f"run-{number}"
            / "server.log"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(log(number, failure), encoding="utf-8")
        paths.append(path)
    return paths


class Here:
    """An engine that runs every job in this very process, for tests that are not about engines. After `most` jobs it is
    interrupted as by Ctrl-C."""

    def __init__(self, most: int = 1_000_000) -> None:
        self.most = most
        self.seen: list[str] = []

    def run(self, jobs, work=run_job):
        for job in jobs[: self.most]:
            self.seen.append(job.incident.id)
            yield work(job)
        if self.most < len(jobs):
            raise KeyboardInterrupt

    def close(self) -> None: ...


def same_bytes(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    names = sorted(p.relative_to(one) for p in one.rglob("*") if p.is_file())
    others = sorted(p.relative_to(other) for p in other.rglob("*") if p.is_file())
    return names == others and all((one / n).read_bytes() == (other / n).read_bytes() for n in names)
