"""Fuzzes every target for a bounded time.

    python fuzz/run.py --seconds 180                     all targets share three minutes (what CI runs)
    python fuzz/run.py --seconds 3600 --target mask      one target for an hour of CPU time
    python fuzz/run.py --per-group 3600 --jobs 32        an hour of CPU time for every group, over 32 processes
    python fuzz/run.py --engine atheris --seconds 3600 --target line   guided by coverage (pip install atheris)

Seconds are CPU time of the processes that fuzz. Prints inputs, CPU seconds and crashes of each group every minute and
at the end, also when it is ended by a signal or by --wall; exit code 1 when a target crashed, with the smallest input
of each fault in fuzz/crashes/ (or --crashes). An input that takes more than ten seconds counts as a crash. Needs the
program's own dependencies and hypothesis, no installation: a source tree is enough.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
os.environ["FORENSICS_CACHE"] = "off"
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # every slice is one process of many

from crew import Crew, Tally, plan  # noqa: E402
from slices import NAMES, timed, warm, with_atheris, with_hypothesis  # noqa: E402
from targets import TARGETS, Target  # noqa: E402


def main() -> int:
    """Parse the call, share the time among the targets, report."""
    call = _arguments()
    chosen = [t for t in TARGETS if not call.target or t.name in call.target]
    if call.input is not None:
        for target in chosen:
            timed(target, call.input.read_bytes())
        return 0
    groups: dict[str, list[str]] = {}
    for target in chosen:
        groups.setdefault(target.group, []).append(target.name)
    crew = Crew(
        with_hypothesis if call.engine == "hypothesis" else with_atheris,
        max(1, call.jobs),
        Tally(groups),
        call.crashes,
        lambda text: print(text, flush=True),
    )
    signal.signal(signal.SIGTERM, _interrupt)
    warm(chosen)
    until = time.monotonic() + call.wall if call.wall else float("inf")
    try:
        crew.work(plan(chosen, _shares(call, chosen, groups), max(1, call.jobs), call.seed), until)
    except KeyboardInterrupt:
        print("ended by a signal", flush=True)
    finally:
        crew.stop()
    print(crew.table())
    found = crew.tally.crashes.values()
    for crash in found:
        print(
            f"crash: {crash.signature}; input in {call.crashes}, run it again with --target {crash.target} --input FILE"
        )
    bad = {crash.target for crash in found}
    print(f"fuzzing: {len(chosen) - len(bad)} targets passed, {len(bad)} failed", flush=True)
    return int(bool(bad))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180, help="CPU seconds for all chosen targets together")
    parser.add_argument("--per-group", type=float, help="CPU seconds for each group instead, shared by its targets")
    parser.add_argument("--wall", type=float, help="stop after so many seconds of wall time")
    parser.add_argument("--target", action="append", choices=NAMES)
    parser.add_argument("--engine", choices=("hypothesis", "atheris"), default="hypothesis")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other inputs")
    parser.add_argument(
        "--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes; may be more than targets"
    )
    parser.add_argument("--crashes", type=Path, default=HERE / "crashes", help="folder of crashing inputs, at most 8")
    parser.add_argument("--input", type=Path, help="run this one file through the target and stop")
    return parser.parse_args()


def _shares(call: argparse.Namespace, chosen: list[Target], groups: dict[str, list[str]]) -> dict[str, float]:
    """CPU seconds of each target."""
    if call.per_group:
        return {name: call.per_group / len(names) for names in groups.values() for name in names}
    return {target.name: call.seconds / len(chosen) for target in chosen}


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
