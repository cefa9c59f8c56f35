"""CPU time per byte and peak memory on logs made to be expensive, against the mixed log of benchmarks/generate.py.

    python benchmarks/adversarial.py [MEGABYTES] [KIND …]     KIND: see tests/adversarial_logs.py

Start-up is measured on a tiny log and taken off. A kind is good within 10 times the ordinary time per byte; one that
exceeds a minute of CPU time for each megabyte is stopped. Prints a Markdown table; exit code 1 when a kind is not good.
"""

from __future__ import annotations

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
MEMORY_GB = 3
RUNS = 2


def cost(path: Path, seconds: int) -> tuple[float, float, bool]:
    """Least CPU seconds of two runs, peak memory in MB, and whether both came to their end."""
    best, peak, fine = float("inf"), 0.0, True
    for _ in range(RUNS):
        used, memory, ended = once(path, seconds)
        best, peak, fine = min(best, used), max(peak, memory), fine and ended
    return best, peak, fine


def once(path: Path, seconds: int) -> tuple[float, float, bool]:
    """One run of `forensics analyze` in one process with bounds."""

    def bounds() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_GB << 30, MEMORY_GB << 30))

    argv = [sys.executable, "-m", "forensics", "analyze", "--processes", "1", "--format", "json", "-o", os.devnull]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    argv[-1] = str(path) + ".json"
    process = subprocess.Popen([*argv, str(path)], preexec_fn=bounds, env=environment, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, process.returncode in (0, 1)


def main() -> int:
    """All kinds, or those named."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    kinds = sys.argv[2:] or list(adversarial_logs.LOGS)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        adversarial_logs.write("normal", path, 1000)
        start, _, _ = cost(path, 60)
        size = int(megabytes * (1 << 20))
        generate.main(path, megabytes)
        ordinary = max(1e-9, (cost(path, 600)[0] - start) / path.stat().st_size)
        print(f"start-up {start:.2f} s; ordinary log {ordinary * 1e9:.1f} ns of CPU a byte; {megabytes:g} MB each\n")
        print("| log | CPU s | times ordinary | ms a MB | peak MB | |\n|---|---|---|---|---|---|")
        for kind in kinds:
            adversarial_logs.write(kind, path, size)
            used, memory, ended = cost(path, max(60, int(60 * megabytes)))
            each = max(0.0, used - start) / path.stat().st_size
            good = ended and each <= TIMES * ordinary
            bad += not good
            verdict = "" if good else "not met" if ended else "stopped"
            print(
                f"| {kind} | {used:.1f} | {each / ordinary:.1f} | {each * 1e9:.0f} | {memory:.0f} | {verdict} |",
                flush=True,
            )
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
