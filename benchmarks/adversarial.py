"""CPU time per byte and peak memory on logs made to be expensive, against an ordinary log of the same size.

    python benchmarks/adversarial.py                     the list of docs/security.md, each kind at the size named there
    python benchmarks/adversarial.py --size 1 [KIND …]   all kinds, or some, at one size in MB

The ordinary log is the mix of benchmarks/generate.py. CPU time is the whole command (`analyze --format json`, one
process, a warm cache), the least of two runs; start-up is that of a log of 1,000 bytes, and is taken off on both
sides. A kind is good within 10 times the ordinary time per byte and within the memory bound. One that takes more than
40 times as long is stopped. Prints a Markdown table; exit code 1 when a kind is not good.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import adversarial_logs
import generate

TIMES = 10.0
MEMORY_MB = 500
"""Peak resident memory that every kind keeps to."""
ADDRESSES = 4 << 30
"""Bytes of address space that a run gets."""
LISTED: dict[str, float] = {"one long line": 100, "distinct shapes": 515}
"""Megabytes of the listed kinds: a line of 100 MB, and 10 million lines of which each is a new shape; else SIZE."""
SIZE = 64.0


def cost(path: Path, seconds: float) -> tuple[float, float, bool]:
    """Least CPU seconds of two runs (one of what takes long), peak memory in MB, and whether all came to their end."""
    best, peak, fine = float("inf"), 0.0, True
    for _ in range(2):
        used, memory, ended = once(path, int(seconds) + 1)
        best, peak, fine = min(best, used), max(peak, memory), fine and ended
        if used > 20:
            break
    return best, peak, fine


def once(path: Path, seconds: int) -> tuple[float, float, bool]:
    """One run of `forensics analyze` in one process with bounds."""

    def bounds() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))

    argv = [sys.executable, "-m", "forensics", "analyze", "--processes", "1", "--format", "json", "-o"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*argv, f"{path}.json", str(path)], preexec_fn=bounds, env=environment, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode in (0, 1)


def main() -> int:
    """The listed kinds, or those named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=float, help="megabytes of every kind")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="see tests/adversarial_logs.py")
    call = parser.parse_args()
    kinds = call.kinds or [kind for kind in adversarial_logs.LOGS if kind != "normal"]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        adversarial_logs.write("normal", path, 1000)
        once(path, 60)  # warms the cache
        start, _, _ = cost(path, 60)
        print(f"start-up {start:.2f} s of CPU; memory bound {MEMORY_MB} MB\n")
        print("| log | MB | CPU s | ns a byte | ordinary | times | peak MB | |\n|---|---|---|---|---|---|---|---|")
        ordinary: dict[float, float] = {}
        for kind in kinds:
            size = call.size or LISTED.get(kind, SIZE)
            if size not in ordinary:
                generate.main(path, size)
                ordinary[size] = max(1e-10, (cost(path, 600)[0] - start) / path.stat().st_size)
            bad += not told(kind, path, size, start, ordinary[size])
    return int(bad > 0)


def told(kind: str, path: Path, size: float, start: float, ordinary: float) -> bool:
    """Measure one kind and print its row; whether it is good."""
    adversarial_logs.write(kind, path, int(size * (1 << 20)))
    length = path.stat().st_size
    used, memory, ended = cost(path, 30 + 4 * TIMES * ordinary * length)
    each = max(0.0, used - start) / length
    good = ended and each <= TIMES * ordinary and memory <= MEMORY_MB
    verdict = "" if good else "stopped" if not ended else "memory" if memory > MEMORY_MB else "not met"
    row = f"{length / 1e6:.0f} | {used:.1f} | {each * 1e9:.0f} | {ordinary * 1e9:.0f} | {each / ordinary:.1f}"
    print(f"| {kind} | {row} | {memory:.0f} | {verdict} |", flush=True)
    return good


if __name__ == "__main__":
    sys.exit(main())
