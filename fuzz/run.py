"""Fuzzes every target for a bounded time.

    python fuzz/run.py --seconds 180                 all targets share three minutes (what CI runs)
    python fuzz/run.py --seconds 3600 --target mask  one target for an hour of CPU time
    python fuzz/run.py --engine atheris --seconds 3600 --target line   guided by coverage (pip install atheris)

Seconds are CPU time of this program and its workers. Prints executions for each target; exit code 1 when one crashed,
with the smallest input that does it in fuzz/crashes/. An input that takes more than ten seconds counts as a crash.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from targets import TARGETS, Target, check  # noqa: E402

SLOW = 10.0
ROUND = 200
"""Examples between two looks at the clock."""


@dataclass(frozen=True, slots=True)
class Result:
    """`runs` inputs were tried in `seconds` of CPU time; `crash` is the traceback of the first failure, or empty."""

    name: str
    runs: int
    seconds: float
    crash: str = ""
    data: bytes = b""


class TooSlow(Exception):
    """One input took longer than the bound."""


def timed(target: Target, data: bytes) -> None:
    """Run one input; TooSlow where it takes more CPU time than allowed."""
    start = time.process_time()
    check(target, data)
    spent = time.process_time() - start
    if spent > SLOW:
        raise TooSlow(f"{spent:.1f} s of CPU for {len(data)} bytes")


def with_hypothesis(name: str, seconds: float, seed: int) -> Result:
    """Rounds of examples until the CPU time is spent or an input fails (hypothesis then makes it small)."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from mutate import inputs

    target = next(t for t in TARGETS if t.name == name)
    strategy = inputs(target.seeds(), target.words)
    start = time.process_time()
    runs, last = 0, b""

    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(strategy)
    def one(data: bytes) -> None:
        nonlocal runs, last
        if time.process_time() - start > 1.5 * seconds + SLOW:
            return
        runs += 1
        last = data
        timed(target, data)

    rounds = 0
    while time.process_time() - start < seconds:
        try:
            hypothesis.seed(seed * 1_000_003 + rounds)(one)()
        except Exception:
            return Result(name, runs, time.process_time() - start, traceback.format_exc(), last)
        rounds += 1
    return Result(name, runs, time.process_time() - start)


def with_atheris(name: str, seconds: float, seed: int) -> Result:
    """Coverage-guided, in a process of its own; the corpus it finds is kept in fuzz/corpus/."""
    corpus, crashes = HERE / "corpus" / name, HERE / "crashes"
    corpus.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    target = next(t for t in TARGETS if t.name == name)
    for data in target.seeds():
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    words = corpus.with_suffix(".dict")
    words.write_text("".join(_quoted(word) + "\n" for word in target.words))
    options = [f"-max_total_time={int(seconds)}", f"-seed={seed + 1}", f"-timeout={int(SLOW)}", "-max_len=8192"]
    options += [f"-dict={words}"] if target.words else []
    options += [f"-artifact_prefix={crashes}/{name}-", "-print_final_stats=1", str(corpus)]
    done = subprocess.run(
        [sys.executable, str(HERE / "guided.py"), name, *options], capture_output=True, text=True, errors="replace"
    )
    runs = next((int(s.split()[-1]) for s in done.stderr.split("\n") if "number_of_executed_units" in s), 0)
    crash = "" if done.returncode == 0 else (done.stdout + done.stderr)[-6000:]
    return Result(name, runs, seconds, crash)


def _quoted(word: bytes) -> str:
    """A word as libFuzzer's dictionaries want it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"'


def main() -> int:
    """Parse the call, share the time among the targets, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180, help="CPU seconds for all chosen targets together")
    parser.add_argument("--target", action="append", choices=[t.name for t in TARGETS])
    parser.add_argument("--engine", choices=("hypothesis", "atheris"), default="hypothesis")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--input", type=Path, help="run this one file through the target and stop")
    call = parser.parse_args()
    os.environ["FORENSICS_CACHE"] = "off"
    chosen = [t for t in TARGETS if not call.target or t.name in call.target]
    if call.input is not None:
        for target in chosen:
            timed(target, call.input.read_bytes())
        return 0
    fuzz = with_hypothesis if call.engine == "hypothesis" else with_atheris
    share = call.seconds / len(chosen)
    failed = 0
    with ProcessPoolExecutor(call.jobs, max_tasks_per_child=1) as pool:
        for result in pool.map(fuzz, [t.name for t in chosen], [share] * len(chosen), [call.seed] * len(chosen)):
            state = "CRASH" if result.crash else "ok"
            print(f"{result.name:<14} {result.runs:>9,} runs {result.seconds:>8.1f} s  {state}", flush=True)
            failed += bool(result.crash)
            if result.crash:
                _keep(result)
    print(f"fuzzing: {len(chosen) - failed} targets passed, {failed} failed")
    return int(failed > 0)


def _keep(result: Result) -> None:
    print(result.crash, file=sys.stderr)
    if result.data:
        (HERE / "crashes").mkdir(exist_ok=True)
        path = HERE / "crashes" / f"{result.name}-{hashlib.sha256(result.data).hexdigest()[:12]}"
        path.write_bytes(result.data)
        print(f"  input: {path}; run it again with --target {result.name} --input {path}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
