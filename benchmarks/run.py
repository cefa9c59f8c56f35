# ruff: noqa: E501 (tables are built of long lines)
"""Measures the engine against its bounds and against other tools, and writes docs/performance.md.

    python benchmarks/run.py [--sizes 10,100,1000] [--runs 3] [--folder DIR] [--write docs/performance.md]

All figures of one table come from one run on one machine, as ratios to `grep -c` on the same file, measured in turn with
it, so that others who use the machine slow both. lnav, Drain3 and the compiled kernel are measured where they are
installed. Generated logs are deleted at the end.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import generate
from measure import Cost, best, least, measure

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
NUMPY_ONLY = "import forensics.engine.compiled as c; c.available = lambda: False; "
ANALYZE = "import sys; sys.argv = ['forensics', 'analyze', '--format', 'json', *sys.argv[1:]]; from forensics.cli.main import main; main()"
GOALS = {"numpy": 12.0, "compiled": 8.0}
MEMORY_GOAL = {True: 500.0, False: 400.0}
"""MB; True: more than 2 GB of log."""
MORE_RULES = 200
AT_LEAST = {"lnav": 1.0, "Drain3": 20.0, "pure Lark": 200.0}
"""How many times as fast as another tool the whole analysis of 1 GB should be, per MB."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One engine against grep on one log: the best figures of all rounds."""

    engine: str
    grep: Cost
    whole: Cost

    @property
    def wall_ratio(self) -> float:
        return self.whole.wall / self.grep.wall

    @property
    def cpu_ratio(self) -> float:
        return self.whole.cpu / max(self.grep.cpu, 0.01)


class Bench:
    """One run: generated files in a folder, rows of tables as text."""

    def __init__(self, folder: Path, runs: int, prefix: Sequence[str] = (), logs: Path | None = None) -> None:
        self.folder = folder
        self.runs = runs
        self.prefix = tuple(prefix)
        self.logs = logs
        self.goals: list[str] = []
        self.engines = ("numpy", "compiled") if importlib.util.find_spec("numba") else ("numpy",)

    def log(self, megabytes: float) -> Path:
        path = self.folder / f"log-{megabytes:g}.log"
        known = self.logs / f"{megabytes:g}.log" if self.logs else None
        if known is not None and known.exists():
            return known
        if not path.exists():
            generate.main(path, megabytes)
            path.with_name(path.name + ".truth.json").unlink()
        return path

    def grep(self, path: Path) -> Cost:
        return best(["grep", "-c", "Decode batch", str(path)], max(3, self.runs), {"LC_ALL": "C"})

    def scan(self, path: Path, processes: int = 0, engine: str = "numpy") -> Cost:
        return best([PYTHON, "-c", SCAN, str(path), str(processes), engine], self.runs)

    def analyze(self, path: Path, engine: str = "numpy", *further: str, memory: bool = False) -> Cost:
        code = (NUMPY_ONLY if engine == "numpy" else "") + ANALYZE
        return measure([*self.prefix, PYTHON, "-c", code, *further, str(path)], memory=memory)

    def pair(self, path: Path, engine: str) -> Pair:
        """The whole analysis between two runs of grep, in rounds."""
        rounds = []
        for _ in range(self.runs):
            before, whole, after = self.grep_once(path), self.analyze(path, engine), self.grep_once(path)
            rounds.append((least([before, after]), whole))
        whole = replace(least([w for _, w in rounds]), memory=self.analyze(path, engine, memory=True).memory)
        return Pair(engine, least([g for g, _ in rounds]), whole)

    def grep_once(self, path: Path) -> Cost:
        return measure([*self.prefix, "grep", "-c", "Decode batch", str(path)], {"LC_ALL": "C"})

    def growth(self, sizes: list[float]) -> list[str]:
        """Cost by size: it has to grow linearly, and memory has to stay bounded."""
        lines = [
            "| log | engine | `grep -c` wall / CPU | `analyze` wall | CPU | CPU per MB | peak memory | wall / wall of grep | CPU / CPU of grep |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for size in sizes:
            path = self.log(size)
            self.analyze(path) if size < 150 else None
            for engine in self.engines:
                found = self.pair(path, engine)
                whole = found.whole
                lines.append(
                    f"| {size:g} MB | {engine} | {found.grep.wall:.2f} / {found.grep.cpu:.2f} s | {whole.wall:.2f} s | {whole.cpu:.2f} s | {1000 * whole.cpu / size:.1f} ms | "
                    f"{whole.memory:.0f} MB | {found.wall_ratio:.1f} | {found.cpu_ratio:.1f} |"
                )
                print(lines[-1], flush=True)
                if size >= 1000:
                    self.goals.append(
                        _goal(
                            f"peak memory of `analyze` at most {MEMORY_GOAL[size > 2000]:.0f} MB",
                            whole.memory,
                            MEMORY_GOAL[size > 2000],
                            f"MB on {size:g} MB ({engine})",
                        )
                    )
                if size == 1000:
                    self.goals.append(
                        _goal(
                            f"`analyze` at most {GOALS[engine]:.0f} times the wall time of `grep -c`",
                            found.wall_ratio,
                            GOALS[engine],
                            f"({engine})",
                        )
                    )
            if size > 1500 and path.parent == self.folder:
                path.unlink()
        return lines

    def tools(self) -> list[str]:
        """Other ways to read the same log against the whole analysis, as the goals word it: lnav on the same file, the
        slow ones per MB of a smaller one (which spares them their own growth; ours has its start-up in it)."""
        size = 1000.0
        whole = least([self.analyze(self.log(size), engine) for engine in self.engines for _ in range(2)])
        rows = [("forensics analyze, two processes, start-up included", size, whole)]
        grep = least([self.grep_once(self.log(size)) for _ in range(3)])
        rows.append(("`LC_ALL=C grep -c 'Decode batch'`", size, grep))
        if shutil.which("lnav"):
            command = [*self.prefix, "lnav", "-n", "-c", ";select count(*) from all_logs", str(self.log(size))]
            rows.append(("lnav, headless index (`select count(*) from all_logs`)", size, measure(command)))
        if importlib.util.find_spec("drain3"):
            command = [*self.prefix, PYTHON, "-c", DRAIN, str(self.log(20))]
            rows.append(("Drain3 (templates only)", 20.0, measure(command)))
        command = [*self.prefix, PYTHON, "-c", PURE_LARK, str(self.log(2))]
        rows.append(("the same grammar, pure Lark, every line", 2.0, measure(command)))
        rows.append(("forensics scan, one process", 100.0, self.scan(self.log(100), 1)))
        lines = [
            "| tool | log | wall | CPU | wall per MB | its wall per MB / that of `analyze` | its CPU per MB / that of `analyze` |",
            "|---|---|---|---|---|---|---|",
        ]
        for name, log, cost in rows:
            wall, cpu = (cost.wall / log) / (whole.wall / size), (cost.cpu / log) / (whole.cpu / size)
            lines.append(
                f"| {name} | {log:g} MB | {cost.wall:.2f} s | {cost.cpu:.2f} s | {1000 * cost.wall / log:.2f} ms | {wall:.1f} | {cpu:.1f} |"
            )
            print(lines[-1], flush=True)
            bound = next((f for word, f in AT_LEAST.items() if word in name), None)
            if bound is not None:
                state = "met" if wall >= bound else "not met"
                text = f"`analyze` on 1 GB, wall per MB, at least {bound:g} times as fast as {name}"
                self.goals.append(f"- {text}: {wall:.1f} (CPU {cpu:.1f}), {state}.")
        return lines

    def worst(self) -> list[str]:
        """Every line a new shape, and one flood, against the normal mix of the same size."""
        normal = self.scan(self.log(50), 1)
        found = []
        for name, write in (("every line is a new shape", _unique_lines), ("one flood of device asserts", _flood)):
            path = self.folder / "worst.log"
            write(path, 50)
            worst = self.scan(path, 1)
            path.unlink()
            self.goals.append(
                _goal(f"50 MB in which {name} within 10 times the normal rate", worst.cpu / normal.cpu, 10.0, "")
            )
            found.append(
                f"50 MB in which {name}: scan {worst.cpu:.1f} s CPU, {worst.memory:.0f} MB, "
                f"{worst.cpu / normal.cpu:.1f} times the normal mix ({normal.cpu:.2f} s)."
            )
        return found

    def small(self) -> list[str]:
        """Start-up: a 1 MB log against the imports alone."""
        path = self.log(1)
        self.analyze(path)
        rounds = [(measure([*self.prefix, PYTHON, "-c", IMPORTS]), self.analyze(path)) for _ in range(5)]
        imports, whole = least([i for i, _ in rounds]), least([w for _, w in rounds])
        wall = whole.wall / imports.wall
        self.goals.append(
            _goal("a 1 MB log in at most 3 times the imports alone", wall, 3.0, f"(CPU {whole.cpu / imports.cpu:.1f})")
        )
        return [
            f"1 MB: whole analysis {whole.wall:.2f} s, {whole.cpu:.2f} s CPU; `python -c '{IMPORTS}'` alone {imports.wall:.2f} s, {imports.cpu:.2f} s CPU "
            f"(ratio {wall:.1f}, CPU {whole.cpu / imports.cpu:.1f})."
        ]

    def more_rules(self) -> list[str]:
        """What 200 further rules cost on 100 MB, once they are in the cache."""
        folder = self.folder / "more-rules"
        _copied_rules(folder)
        path = self.log(100)
        self.analyze(path, "numpy", "--rules", str(folder))
        rounds = [
            (self.analyze(path), self.analyze(path, "numpy", "--rules", str(folder))) for _ in range(max(3, self.runs))
        ]
        plain, more = least([a for a, _ in rounds]), least([b for _, b in rounds])
        share = 100 * (more.cpu / plain.cpu - 1)
        self.goals.append(_goal(f"{MORE_RULES} further rules cost less than 10 % CPU on 100 MB", share, 10.0, "%"))
        return [
            f"{MORE_RULES} further rules on 100 MB: {more.cpu:.2f} s CPU instead of {plain.cpu:.2f} s ({share:+.0f} %)."
        ]


def _goal(text: str, measured: float, bound: float, where: str) -> str:
    return f"- {text}: {measured:.1f} {where}".rstrip() + f", {'met' if measured <= bound else 'not met'}."


def _flood(path: Path, megabytes: int) -> None:
    left, count = megabytes * 1_000_000, 0
    with path.open("w", encoding="ascii") as out:
        while left > 0:
            count += 1
            line = (
                f"/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:94: operator(): block: [{count // 128},0,0], thread: [{count % 128},0,0] "
                'Assertion `-sizes[i] <= index && index < sizes[i] && "index out of bounds"` failed.\n'
            )
            left -= len(line)
            out.write(line)


def _copied_rules(folder: Path) -> None:
    """Shipped rules under other names, their first pattern made another one."""
    folder.mkdir()
    files = sorted((Path(__file__).parent.parent / "rules").rglob("*.yaml"))[:MORE_RULES]
    for number, file in enumerate(files):
        text = re.sub(r"(?m)^id: .*$", f"id: copied-rule-{number}", file.read_text(encoding="utf-8"), count=1)
        (folder / f"copied-rule-{number}.yaml").write_text(text, encoding="utf-8")


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
    load = os.getloadavg()[0]
    small, growth, tools, worst, rules = (
        bench.small(),
        bench.growth(sizes),
        bench.tools(),
        bench.worst(),
        bench.more_rules(),
    )
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return "\n".join(
        [
            "# Performance",
            "",
            "Generated by the benchmark; do not edit. Reproduce with",
            "",
            f"    {command}",
            "",
            f"Machine: {cpu}, {os.cpu_count()} cores, Python {platform.python_version()}. Load of the machine by others when the run began: {load:.1f} processes, {os.getloadavg()[0]:.1f} at the end. "
            f"Figures are the best of {bench.runs} rounds, in which grep and the analysis take turns; ratios are those of the best figures. Two processes share two cores only on an idle machine: "
            "where wall and CPU disagree, CPU is the steadier figure. Logs come from `benchmarks/generate.py` (8 ranks). Memory is the proportional set size of all processes together.",
            "",
            "## Goals",
            "",
            *bench.goals,
            "",
            "## Growth with size",
            "",
            *growth,
            "",
            "`analyze` is the whole command with all shipped rules and findings, start-up included; large logs are read by two processes, and by up to eight where there are cores for it.",
            "",
            "## Against other tools",
            "",
            *tools,
            "",
            "## Worst case and small logs",
            "",
            *(f"- {line}" for line in (*worst, *small, *rules)),
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", type=Path)
    parser.add_argument(
        "--prefix", default="", help="words before grep and the analysis, as `chrt -r 1` on a busy machine"
    )
    parser.add_argument("--logs", type=Path, help="folder with generated logs: 1000.log is the one of 1000 MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="forensics-bench-", dir=options.folder) as folder:
        bench = Bench(Path(folder), options.runs, options.prefix.split(), options.logs)
        prefix = f" --prefix '{options.prefix}'" if options.prefix else ""
        text = page(
            bench,
            [float(s) for s in options.sizes.split(",")],
            f"python benchmarks/run.py --sizes {options.sizes} --runs {options.runs}{prefix} --write docs/performance.md",
        )
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
