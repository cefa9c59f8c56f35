# ruff: noqa: E501 (pages are built of long lines)
"""Measures fleets: many generated logs on a real Ray cluster that loses a node, and the local engine per core.

    python benchmarks/fleet.py [--logs 5000] [--megabytes 2] [--sample 200] [--large 1000] [--folder DIR] [--write docs/scale.md]

The logs are those of generate.py, shifted in time; every fifth ends in a failure. Ray runs as a head and one node per
core on loopback, and one node is killed with everything in it when a third of the incidents is done. Then the number of
incidents is checked, and (with --compare) every file against the local engine's. All data is deleted at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import generate
from measure import Cost, measure

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
PYTHON = sys.executable
TEMPLATES = 4
MACHINES, SERVICES = 200, 20
OOM = (
    "[{stamp} TP3] Scheduler hit an exception: Traceback (most recent call last):\n"
    '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2811, in run_scheduler_process\n'
    "    scheduler.event_loop_overlap()\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size}.00 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.02 GiB is free.\n\n"
    "[{stamp}] Received sigquit from a child process. It usually means the child failed.\n"
)


@dataclass
class Cluster:
    """What the run on Ray gave: seconds, incidents, parts when the node was killed."""

    wall: float
    incidents: int
    distinct: int
    killed_at: int
    dataset_bytes: int
    same: bool | None


def write_logs(folder: Path, count: int, megabytes: float) -> int:
    """`count` logs of about `megabytes` each; gives their bytes in all."""
    templates = []
    for number in range(min(TEMPLATES, count)):
        path = folder / f"template-{number}.txt"
        generate.main(path, megabytes, seed=number + 1)
        templates.append(path.read_bytes())
        path.unlink()
        path.with_name(path.name + ".truth.json").unlink()
    total = 0
    for number in range(count):
        day = datetime(2026, 3, 2, tzinfo=UTC) + timedelta(days=number % 14)
        text = templates[number % len(templates)].replace(b"2026-03-05", f"{day:%Y-%m-%d}".encode())
        if number % 5 == 0:
            text += OOM.format(stamp=f"{day:%Y-%m-%d} 23:10:{number % 60:02d}", size=2 + number % 7).encode()
        path = folder / f"chat-{number % SERVICES}" / f"node-{number % MACHINES}" / f"run-{number}" / "server.log"
        path.parent.mkdir(parents=True)
        path.write_bytes(text)
        total += len(text)
    return total


def write_large(folder: Path, megabytes: float) -> None:
    """One log of one launch: its serving hours are those of a small one, again and again, an hour later each time."""
    path = folder / "server.log"
    generate.main(path, 2.0, seed=1)
    path.with_name(path.name + ".truth.json").unlink()
    text = path.read_bytes()
    served = text[text.index(b"\n", text.rindex(b"max_total_num_tokens=")) + 1 :]
    with path.open("ab") as out:
        for hour in range(1, max(1, round((megabytes * 1e6 - len(text)) / len(served))) + 1):
            when = datetime(2026, 3, 5, 8, tzinfo=UTC) + timedelta(hours=hour)
            out.write(served.replace(b"2026-03-05 08:", f"{when:%Y-%m-%d %H:}".encode()))


def local(logs: Path, out: Path, workers: int) -> Cost:
    """One run of the command on the local engine, from nothing."""
    shutil.rmtree(out, ignore_errors=True)
    cost = measure(
        [PYTHON, "-m", "forensics", "fleet", str(logs), "-o", str(out), "-q", "-j", str(workers)], memory=True
    )
    if " 0 could not be analyzed" not in cost.output:
        raise SystemExit(f"nothing was measured: {cost.output}")
    return cost


def peeking(logs: Path) -> float:
    """CPU seconds that the look at one log takes."""
    from forensics.fleet.objects import list_objects
    from forensics.fleet.peek import peek

    objects = list_objects([str(logs)]).objects
    peek(objects[0], {})
    began = time.process_time()
    for item in objects:
        peek(item, {})
    return (time.process_time() - began) / len(objects)


def on_ray(logs: Path, out: Path, count: int, nodes: int) -> Cluster:
    """The whole fleet on a cluster that loses a node."""
    from ray_cluster import cluster

    began = time.perf_counter()
    with cluster(workers=nodes) as made:
        command = [
            PYTHON,
            "-m",
            "forensics",
            "fleet",
            str(logs),
            "-o",
            str(out),
            "--engine",
            "ray",
            "--ray-address",
            made.address,
        ]
        running = subprocess.Popen(command, env=made.environment)
        while running.poll() is None and parts(out) < count // 3:
            time.sleep(0.2)
        killed = parts(out)
        if nodes > 1 and running.poll() is None:
            made.kill(1)
        if running.wait() != 0:
            raise SystemExit(f"the run on Ray failed: {made.told()}")
    wall = time.perf_counter() - began
    names = [r[0] for r in sqlite3.connect(out / "summary.sqlite").execute("select name from incidents")]
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    return Cluster(wall, len(names), len(set(names)), killed, size, None)


def parts(out: Path) -> int:
    return len(list(out.glob("parts/*/*.zst")))


def compare(one: Path, other: Path) -> bool:
    """Whether two datasets hold the same files with the same bytes."""
    from fleet_logs import same_bytes

    return same_bytes(one, other)


PAGE = """# Scale

Generated by the benchmark; do not edit. Reproduce with

    {command}

Machine: {machine}. Others may have used it at the same time: where wall and CPU time disagree, CPU time is the steadier figure, and the plan is reckoned from it.

## The run on Ray

{logs} generated logs, {gigabytes:.2f} GB in all ({megabytes:g} MB each), on a real Ray cluster of a head and {nodes} one-core nodes on loopback. One node was killed with every process in it when {killed} incidents were done.{smaller}

| incidents in the dataset | of them distinct | lost | doubled | wall | MB per wall second | dataset |
|---|---|---|---|---|---|---|
| {incidents} | {distinct} | {lost} | {doubled} | {ray_wall:.0f} s | {ray_rate:.1f} | {dataset_mb:.1f} MB ({dataset_kb:.1f} kB per incident) |

{same}

## Rate per core

The local engine on {sample} of the logs ({sample_gb:.2f} GB), start-up, listing, grouping and tables included:

| workers | wall | CPU | MB per wall second | MB per CPU second | peak memory of all processes |
|---|---|---|---|---|---|
{rows}

{linear}

One log of {large_mb:.0f} MB: {large_cpu:.1f} s CPU, {large_rate:.1f} MB per CPU second, {large_memory:.0f} MB peak memory. Small logs cost more per byte because each incident costs about {fixed:.2f} s of CPU whatever its size.

## A plan for 10,000 servers with 1 GB of log a day each

Computed from the figures above, not measured: the rate and the memory are those of the one {large_mb:.0f} MB log.

| | |
|---|---|
| bytes a day | 10 TB in 10,000 incidents |
| CPU | {core_hours:.0f} core hours a day (10 TB at {large_rate:.1f} MB per CPU second) |
| cores, spread over the day | {spread:.1f} busy, {spread_at:.0f} at 60 % use |
| cores, all within one hour | {hour:.0f} busy, {hour_at:.0f} at 60 % use |
| memory | {memory:.1f} GB per core, {memory_hour:.0f} GB for the one-hour plan |
| local disk (spool) | 1 GB per core while its incident is read, {hour_at:.0f} GB for the one-hour plan |
| network from the store | {gbit:.2f} Gbit/s per busy core, {gbit_hour:.0f} Gbit/s for the one-hour plan |
| storage requests a day | {gets:,.0f} reads (64 blocks of 16 MiB and 2 peeks per log) and 10 listings of 1,000 |
| dataset a day | {dataset_day:.2f} GB |
| cost a day | {cost_cpu:.2f} USD for cores, {cost_gets:.2f} USD for requests |

Assumptions:

- Uncompressed logs with the mix of lines of `benchmarks/generate.py`. With zst in the store (logs shrink 10 to 20 times) the network and the disk of the store shrink with it; the CPU stays, plus about a second per GB for unpacking.
- The large log is one launch whose serving lines are those of a 2 MB log, repeated hour by hour: a real day holds more kinds of messages and is slower. Reckon with half the rate, and measure one of your own logs.
- One log per server and day. A job on 8 nodes is one incident of 8 GB: it is read by `--split-above` byte ranges, on Ray by several nodes.
- The cores are like those of this machine; twice as fast cores halve the row. Sixty percent use leaves room for retries and for the last incidents of a run.
- 0.05 USD per core hour with its memory and disk, 0.0004 USD per 1,000 reads, no charge for traffic within the region. Put in your own prices: both are one multiplication.
- Growth in proportion to the cores is assumed, not measured beyond what the table above shows. Incidents share nothing, and the driver only writes finished parts ({dataset_kb:.1f} kB per incident), lists and peeks. Peeking costs the driver about {peek:.0f} ms per log, in threads, before the first incident starts: {peek_day:.0f} minutes for 10,000 logs on one core.
"""


def page(found: dict[str, object], values: dict[str, float]) -> str:
    return PAGE.format(**found, **values)


def plan(rate: float, memory: float, kb: float) -> dict[str, float]:
    """The figures of the plan from MB per CPU second, MB of memory per worker, and kB of dataset per incident."""
    core_hours = 10e6 / rate / 3600
    gets = 10_000 * (64 + 2)
    return {
        "core_hours": core_hours,
        "spread": core_hours / 24,
        "spread_at": -(-core_hours / 24 // 0.6),
        "hour": core_hours,
        "hour_at": core_hours / 0.6,
        "memory": memory / 1000,
        "memory_hour": memory / 1000 * core_hours / 0.6,
        "gbit": rate * 8 / 1000,
        "gbit_hour": 10e12 * 8 / 3600 / 1e9,
        "gets": float(gets),
        "dataset_day": kb * 10_000 / 1e6,
        "cost_cpu": core_hours * 0.05,
        "cost_gets": gets / 1000 * 0.0004,
    }


def linear(one: Cost, most: Cost, workers: int, load: float) -> str:
    """What the two runs show about growth with the cores, and what they do not. Where a single worker waited for others,
    the wall times compare how busy the machine was, whichever way they fall."""
    growth, speedup = most.cpu / one.cpu, one.wall / most.wall
    alone = one.wall <= 1.3 * one.cpu
    text = f"With {workers} workers the CPU time for the same work is {growth:.2f} times that with one"
    text += ": the workers cost each other little. " if growth < 1.15 else ", the start of one more process included. "
    if alone and 0.8 * workers <= speedup <= 1.1 * workers:
        return text + f"The wall time is {speedup:.2f} times shorter: linear to the {workers} cores here."
    if alone:
        return text + f"The wall time is {speedup:.2f} times shorter, less than {workers} cores promise."
    busy = f"one worker alone waited {one.wall / one.cpu:.1f} times as long as it computed (load average {load:.0f})"
    return (
        text
        + f"That the wall time falls in proportion is **not shown by this run**: other programs used the machine, {busy}. The wall times above say nothing either way; repeat it on an idle machine."
    )


def machine() -> str:
    cores = len(os.sched_getaffinity(0))
    model = next(
        (
            x.partition(":")[2].strip()
            for x in Path("/proc/cpuinfo").read_text().splitlines()
            if x.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{model}, {cores} cores, Python {platform.python_version()}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=5000)
    parser.add_argument("--megabytes", type=float, default=2.0)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--large", type=float, default=1000.0)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--write", type=Path)
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="fleet-bench-", dir=chosen.folder))
    try:
        text = measured(work, chosen)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if chosen.write:
        chosen.write.write_text(text, encoding="utf-8")
    print(text)


def measured(work: Path, chosen: argparse.Namespace) -> str:
    """All measurements, then the page."""
    cores = len(os.sched_getaffinity(0))
    size = write_logs(_made(work / "sample"), chosen.sample, chosen.megabytes)
    costs = {workers: local(work / "sample", work / "out", workers) for workers in sorted({1, cores})}
    write_large(_made(work / "large"), chosen.large)
    large = local(work / "large", work / "out", 1)
    shutil.rmtree(work / "large")
    load = os.getloadavg()[1]
    peek = peeking(work / "sample")
    _log(f"local engine: {costs}, large: {large}")
    shutil.rmtree(work / "sample")
    total = write_logs(_made(work / "logs"), chosen.logs, chosen.megabytes)
    _log(f"{chosen.logs} logs written, {total} bytes")
    found = on_ray(work / "logs", work / "ray", chosen.logs, max(2, cores))
    _log(f"ray: {found}")
    if chosen.compare:
        local(work / "logs", work / "local", cores)
        found.same = compare(work / "ray", work / "local")
        _log(f"same bytes: {found.same}")
    return _page(chosen, size, total, costs, large, found, max(2, cores), peek, load)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _log(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def _page(
    chosen: argparse.Namespace,
    size: int,
    total: int,
    costs: dict[int, Cost],
    large: Cost,
    found: Cluster,
    nodes: int,
    peek: float,
    load: float,
) -> str:
    rows = "\n".join(
        f"| {n} | {c.wall:.1f} s | {c.cpu:.1f} s | {size / 1e6 / c.wall:.1f} | {size / 1e6 / c.cpu:.1f} | {c.memory:.0f} MB |"
        for n, c in costs.items()
    )
    one, most = costs[min(costs)], costs[max(costs)]
    kb = found.dataset_bytes / 1000 / chosen.logs
    rate = chosen.large / large.cpu
    same = {
        True: "Every file of the dataset, Parquet and SQLite included, equals the local engine's byte for byte.",
        False: "The dataset differs from the local engine's.",
        None: "That the bytes equal those of the local engine is held by `tests/test_fleet_ray.py` on a smaller fleet; this run did not compare them.",
    }[found.same]
    options = f"--logs {chosen.logs} --megabytes {chosen.megabytes:g} --sample {chosen.sample} --large {chosen.large:g}{' --compare' if chosen.compare else ''}"
    fixed = max(0.0, (one.cpu - size / 1e6 / rate) / chosen.sample)
    told: dict[str, object] = {
        "command": f"python benchmarks/fleet.py {options} --write docs/scale.md", "machine": machine(), "same": same, "rows": rows,
        "smaller": "" if chosen.logs >= 5000 else " The benchmark's own default, 5,000 logs of 2 MB (10 GB), was not run for this page.",
        "linear": linear(one, most, max(costs), load),
    }  # fmt: skip
    values = {
        "logs": chosen.logs, "gigabytes": total / 1e9, "megabytes": chosen.megabytes, "nodes": nodes, "killed": found.killed_at,
        "incidents": found.incidents, "distinct": found.distinct, "lost": chosen.logs - found.distinct, "doubled": found.incidents - found.distinct,
        "ray_wall": found.wall, "ray_rate": total / 1e6 / found.wall, "dataset_mb": found.dataset_bytes / 1e6, "dataset_kb": kb,
        "sample": chosen.sample, "sample_gb": size / 1e9, "large_mb": chosen.large,
        "large_cpu": large.cpu, "large_rate": rate, "large_memory": large.memory, "fixed": fixed,
        "peek": 1000 * peek, "peek_day": peek * 10_000 / 60,
    }  # fmt: skip
    return page(told, {**values, **plan(rate, large.memory, kb)})


if __name__ == "__main__":
    main()
