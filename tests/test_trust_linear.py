"""No pattern that sees log text takes more than linear time; hostile logs are read in bounded memory.

Nothing here measures time: the attacks run in processes whose CPU time and memory the kernel limits, with limits far
above what linear reading takes and far below what backtracking would.
"""

import resource
import subprocess
import sys
from pathlib import Path

import adversarial_logs
import pytest

HERE = Path(__file__).parent
SHORT = {
    "forensics.diagnose.titles._HEADS": "tried at the start of one message only",
    "forensics.diagnose.fallback._OWN": "the first 400 characters of a message",
    "forensics.output.terminal_words._RANK": "names of ranks",
}
"""Patterns that only see short texts, and why."""
SHORT_MODULES = (
    "forensics.editor.",
    "forensics.rulebook.lint.",
    "forensics.cli.",
    "forensics.collect.",
    "forensics.fleet.",
)
"""Modules whose patterns see lines of files being edited, rule patterns, words of a command line, names of hosts."""

PATTERNS = """
import sys
from pattern_baits import patterns, searched, terminals, worst
short, modules = eval(sys.argv[1])
count = 0
for place, pattern in [*patterns(), *terminals()]:
    brief = place in short or place.startswith(modules)
    length = 400 if place.startswith("line.") else 8192 if place.startswith("header.") else 1000 if brief else 65536
    print(place, flush=True)
    worst(pattern, length, place.startswith("forensics.") and searched(place))
    count += 1
print("done", count)
"""

READ = """
import sys
from forensics.cli.main import run
code = run(["analyze", "--format", "json", "-o", sys.argv[2], sys.argv[1]])
print("code", code)
"""


def limited(code: str, *argv: str, cpu: int, memory: int) -> subprocess.CompletedProcess[str]:
    """Run Python code with bounds on CPU seconds and address space (bytes)."""

    def bounds() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    environment = {
        "PYTHONPATH": f"{HERE.parent}:{HERE}",
        "PATH": "/usr/bin:/bin",
        "OPENBLAS_NUM_THREADS": "1",
        "HOME": "/tmp",
    }
    return subprocess.run(
        [sys.executable, "-c", code, *argv],
        capture_output=True,
        text=True,
        preexec_fn=bounds,
        env=environment,
        check=False,
    )


@pytest.mark.slow
def test_no_pattern_backtracks_without_end():
    done = limited(PATTERNS, repr((tuple(SHORT), SHORT_MODULES)), cpu=120, memory=4 << 30)
    last = done.stdout.strip().rsplit("\n", 1)[-1]
    assert last.startswith("done"), f"{last} takes too long: bound its repetitions\n{done.stderr[-2000:]}"
    assert int(last.split()[1]) > 300


@pytest.mark.parametrize("name", sorted(adversarial_logs.LOGS))
def test_a_hostile_log_is_read_to_its_end_in_bounded_memory(name, tmp_path):
    path = tmp_path / "server.log"
    adversarial_logs.write(name, path, adversarial_logs.SMALL.get(name, 1 << 20))
    done = limited(READ, str(path), str(tmp_path / "report.json"), cpu=60, memory=3 << 30)
    assert done.stdout.startswith(("code 0", "code 1")), done.stderr[-2000:] or done.returncode
    assert (tmp_path / "report.json").stat().st_size < 8 << 20
