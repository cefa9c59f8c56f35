# ruff: noqa: E501 (tables are built of long lines)
"""Measures the engine against its bounds and against other tools, and writes docs/performance.md.

    python benchmarks/run.py [--sizes 10,100,1000] [--runs 3] [--folder DIR] [--write docs/performance.md]

All figures of one table come from one run on one machine, as ratios to `grep -c` on the same file. lnav and Drain3 are
measured where they are installed. Generated logs are deleted at the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import generate
from measure import Cost, best

PYTHON = sys.executable
SCAN = "import sys; from forensics.engine.scan import scan; from forensics.schema.options import Options; scan([sys.argv[1]], Options(processes=int(sys.argv[2]), engine=sys.argv[3]))"
PURE_LARK = """
import sys
from forensics.grammar.header import headers
from forensics.grammar.line import line_grammar
head, line = headers(), line_grammar()
for raw in open(sys.argv[1], 'rb').read().splitlines():
    text = raw.decode('latin-1')
    if text:
        head.lark.parse(text)
        line.parse(text[head.split(text).body_at:])
"""
DRAIN = """
import sys, logging
logging.disable(logging.CRITICAL)
from drain3 import TemplateMiner
from drain3.template_miner_config import TemplateMinerConfig
miner = TemplateMiner(config=TemplateMinerConfig())
for raw in open(sys.argv[1], 'rb').read().splitlines():
    miner.add_log_message(raw.decode('utf-8', 'replace'))
"""
IMPORTS = "import lark, pydantic, rich, numpy"


class Bench:
    """One run: generated files in a folder, rows of tables as text."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder = folder
        self.runs = runs
        self.goals: list[str] = []

    def log(self, megabytes: float) -> Path:
        path = self.folder / f"log-{megabytes:g}.log"
        if not path.exists():
            generate.main(path, megabytes)
            path.with_name(path.name + ".truth.json").unlink()
        return path

    def grep(self, path: Path) -> Cost:
        return best(["grep", "-c", "Decode batch", str(path)], max(3, self.runs), {"LC_ALL": "C"})

    def scan(self, path: Path, processes: int = 0, engine: str = "numpy") -> Cost:
        return best([PYTHON, "-c", SCAN, str(path), str(processes), engine], self.runs)

    def analyze(self, path: Path) -> Cost:
        return best([PYTHON, "-m", "forensics", "analyze", "--format", "json", str(path)], self.runs)

    def growth(self, sizes: list[float]) -> list[str]:
        """Cost by size: it has to grow linearly, and memory has to stay bounded."""
        lines = ["| log | `grep -c` wall | scan wall | scan CPU | scan peak memory | scan / grep (wall) | whole `analyze` wall | CPU | peak memory | analyze / grep (wall) |",
                 "|---|---|---|---|---|---|---|---|---|---|"]
        for size in sizes:
            path = self.log(size)
            grep, scan, whole = self.grep(path), self.scan(path), self.analyze(path)
            lines.append(f"| {size:g} MB | {grep.wall:.2f} s | {scan.wall:.2f} s | {scan.cpu:.2f} s | {scan.memory:.0f} MB | {scan.wall / grep.wall:.1f} | {whole.wall:.2f} s | {whole.cpu:.2f} s | "
                         f"{whole.memory:.0f} MB | {whole.wall / grep.wall:.1f} |")
            print(lines[-1], flush=True)
            self.goals = [_goal("whole `analyze` in at most 12 times the wall time of `grep -c`", whole.wall / grep.wall, 12.0, f"on {size:g} MB"),
                          _goal("peak memory of `analyze` at most 400 MB", whole.memory, 400.0, f"on {size:g} MB"),
                          _goal("peak memory of the scan at most 400 MB", scan.memory, 400.0, f"on {size:g} MB")]
            if size > 150:
                path.unlink()
        return lines

    def tools(self) -> list[str]:
        """Rates of other ways to read the same log, MB per CPU second."""
        hundred, twenty, two = self.log(100), self.log(20), self.log(2)
        rows = [("`LC_ALL=C grep -c 'Decode batch'`", 100.0, self.grep(hundred)),
                ("forensics scan, one process (rows, series, ranks, times)", 100.0, self.scan(hundred, 1))]
        if importlib.util.find_spec("numba"):
            self.scan(two, 1, "compiled")
            rows.append(("forensics scan, one process, compiled kernel", 100.0, self.scan(hundred, 1, "compiled")))
        if shutil.which("lnav"):
            rows.append(("lnav, headless index (`select count(*) from all_logs`)", 100.0,
                         best(["lnav", "-n", "-c", ";select count(*) from all_logs", str(hundred)], 1)))
        if importlib.util.find_spec("drain3"):
            rows.append(("Drain3 (templates only)", 20.0, best([PYTHON, "-c", DRAIN, str(twenty)], 1)))
        rows.append(("the same grammar, pure Lark, every line", 2.0, best([PYTHON, "-c", PURE_LARK, str(two)], 1)))
        mine = rows[1]
        lines = ["| tool | log | wall | CPU | MB per CPU second | its CPU per MB / that of the numpy scan |", "|---|---|---|---|---|---|"]
        for name, size, cost in rows:
            factor = (cost.cpu / size) / (mine[2].cpu / mine[1])
            lines.append(f"| {name} | {size:g} MB | {cost.wall:.2f} s | {cost.cpu:.2f} s | {size / max(cost.cpu, 0.005):.1f} | {factor:.1f} |")
            print(lines[-1], flush=True)
        return lines

    def worst(self) -> list[str]:
        """Every line a new shape, against the normal mix of the same size."""
        path = self.folder / "worst.log"
        _unique_lines(path, 50)
        normal, worst = self.scan(self.log(50), 1), self.scan(path, 1)
        path.unlink()
        return [f"50 MB in which every line is a new shape: {worst.cpu:.1f} s CPU, {worst.memory:.0f} MB, "
                f"{worst.cpu / normal.cpu:.1f} times the normal mix ({normal.cpu:.2f} s)."]

    def small(self) -> list[str]:
        """Start-up: a 1 MB log against the imports alone."""
        imports, scan, whole = best([PYTHON, "-c", IMPORTS], 3), self.scan(self.log(1)), self.analyze(self.log(1))
        return [f"1 MB: scan {scan.cpu:.2f} s CPU, whole analysis {whole.cpu:.2f} s; `python -c '{IMPORTS}'` alone {imports.cpu:.2f} s "
                f"(ratio {whole.cpu / imports.cpu:.1f})."]


def _goal(text: str, measured: float, bound: float, where: str) -> str:
    return f"- {text}: {measured:.1f} {where}, {'met' if measured <= bound else 'not met'}."


def _unique_lines(path: Path, megabytes: int) -> None:
    import random

    rng = random.Random(1)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randrange(3, 9))) for _ in range(5000)]
    left, count = megabytes * 1_000_000, 0
    with path.open("w", encoding="ascii") as out:
        while left > 0:
            count += 1
            line = f"[2026-03-05 08:00:{count % 60:02d} TP{count % 8}] {' '.join(rng.choices(words, k=18))}\n"
            left -= len(line)
            out.write(line)


def page(bench: Bench, sizes: list[float], command: str) -> str:
    growth, tools, worst, small = bench.growth(sizes), bench.tools(), bench.worst(), bench.small()
    cpu = next((line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    import os

    return "\n".join([
        "# Performance", "",
        "Generated by the benchmark; do not edit. Reproduce with", "", f"    {command}", "",
        f"Machine: {cpu}, {os.cpu_count()} cores, Python {platform.python_version()}, numpy engine. Wall times are the best of {bench.runs} runs on a machine that others may share: "
        "where wall and CPU disagree, CPU is the steadier figure. Logs come from `benchmarks/generate.py` (8 ranks). Memory is the proportional set size of all processes together.", "",
        "## Growth with size", "", *growth, "",
        "`scan` reads and classifies every line; `analyze` is the whole command with all shipped rules and findings, start-up included.", "",
        *bench.goals, "",
        "## Against other tools", "", *tools, "",
        "## Worst case and small logs", "", *(f"- {line}" for line in (*worst, *small)), "",
    ])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="forensics-bench-", dir=options.folder) as folder:
        text = page(Bench(Path(folder), options.runs), [float(s) for s in options.sizes.split(",")],
                    f"python benchmarks/run.py --sizes {options.sizes} --runs {options.runs} --write docs/performance.md")
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
