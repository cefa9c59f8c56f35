"""What `forensics watch` costs: share of one core while a log grows, for a short and for a long log.

    python benchmarks/watch.py [--rate 1000] [--seconds 30] [--before-mb 0 300] [--troubled]

A writer appends batch and access lines, and now and then a warning (with --troubled an error that the server gets
over), at the given rate; the CPU time of the watching process is read from /proc. Start-up (imports, knowledge,
catching up) is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = Path(__file__).parent.parent / "samples" / "healthy" / "gpu2-tp2_healthy" / "log.txt"


def lines(number: int, troubled: bool = False) -> str:
    """One line of a busy two-rank server; `number` makes every value differ."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_770_000_000 + number // 1000))
    rank = number % 2
    if number % 997 == 0 and troubled:
        return (
            f"[{clock} TP{rank}] Health check failed. Server couldn't get a response from detokenizer: RuntimeError\n"
        )
    if number % 997 == 500 and troubled:
        return f"RuntimeError: the request {number} could not be parsed\n"
    if number % 997 == 0:
        return f"[{clock} TP{rank}] KV cache pool is full. Retract requests. #retracted_reqs: {number % 7}\n"
    if number % 3 == 0:
        return f'[{clock}] INFO:     10.0.0.{number % 250}:4{number % 9000:04d} - "POST /generate HTTP/1.1" 200 OK\n'
    if number % 3 == 1:
        return (
            f"[{clock} TP{rank}] Decode batch, #running-req: {number % 64}, #token: {number % 90000}, token usage: "
            f"0.{number % 90 + 10}, cuda graph: True, gen throughput (token/s): {number % 3000}.{number % 90 + 10}, "
            f"#queue-req: {number % 12}\n"
        )
    return (
        f"[{clock} TP{rank}] Prefill batch, #new-seq: {number % 8}, #new-token: {number % 8000}, #cached-token: "
        f"{number % 500}, token usage: 0.{number % 90 + 10}, #running-req: {number % 64}, #queue-req: {number % 12}\n"
    )


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(rate: int, seconds: float, before_mb: int, folder: Path, troubled: bool) -> tuple[float, float]:
    """Share of a core, and resident megabytes at the end."""
    log = folder / "server.log"
    log.write_bytes(HEAD.read_bytes().partition(b"ready to roll!")[0] + b"ready to roll!\n")
    number = 0
    with log.open("a") as out:
        while out.tell() < before_mb << 20:
            out.writelines(lines(n) for n in range(number, number + 50_000))
            number += 50_000
        out.flush()
        command = [sys.executable, "-m", "forensics", "watch", str(log), "--quiet"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = spent = 0.0
        start = time.monotonic()
        warm = 12.0 + before_mb / 25
        while (now := time.monotonic() - start) < warm + seconds:
            if not begun and now >= warm:
                begun, spent = now, cpu_seconds(child.pid)
            out.writelines(lines(n, troubled) for n in range(number, number + rate // 10))
            out.flush()
            number += rate // 10
            time.sleep(max(0.0, 0.1 - (time.monotonic() - start - now)))
        share = (cpu_seconds(child.pid) - spent) / (time.monotonic() - start - begun)
        status = Path(f"/proc/{child.pid}/status").read_text()
        memory = int(status.split("VmRSS:")[1].split()[0]) / 1024
        child.terminate()
        child.wait()
    return share, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--before-mb", type=int, nargs="*", default=[0, 300])
    parser.add_argument("--troubled", action="store_true")
    wanted = parser.parse_args()
    print("lines/s  log before  share of a core  memory")
    for size in wanted.before_mb:
        with tempfile.TemporaryDirectory() as folder:
            share, memory = measure(wanted.rate, wanted.seconds, size, Path(folder), wanted.troubled)
        print(f"{wanted.rate:>7}  {size:>7} MB  {share:>14.2%}  {memory:.0f} MB", flush=True)


if __name__ == "__main__":
    main()
