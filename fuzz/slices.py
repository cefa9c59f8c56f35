"""One slice of fuzzing: one target with one seed for a bounded time, in a process of its own.

What a slice has done stands on a board of shared memory while it runs, so that its counts and the input under test
survive whatever happens to its process.
"""

from __future__ import annotations

import hashlib
import mmap
import resource
import signal
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from targets import TARGETS, Target, check

HERE = Path(__file__).resolve().parent
SLOW = 10.0
"""CPU seconds after which one input counts as a crash."""
MEMORY = 4 << 30
"""Bytes of address space that a slice may take."""
ROUND = 200
"""Examples between two looks at the clock."""
_HEAD = struct.Struct("<QdI")
_MOST = 1 << 16


class TooSlow(Exception):
    """One input took longer than the bound."""


@dataclass(frozen=True, slots=True)
class Slice:
    """`seconds` of CPU time for one target, with a seed that no other slice of the call has."""

    target: Target
    seconds: float
    seed: int


@dataclass(frozen=True, slots=True)
class Crash:
    """One fault: `signature` tells two faults apart (what was raised, and where), `data` is an input that shows it."""

    target: str
    signature: str
    text: str
    data: bytes


@dataclass(slots=True)
class Board:
    """Shared memory of one slice: inputs tried, CPU seconds, and the input that is being tried."""

    memory: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, _HEAD.size + _MOST))

    def write(self, runs: int, seconds: float, data: bytes) -> None:
        """Say what is about to be tried."""
        data = data[:_MOST]
        self.memory[: _HEAD.size] = _HEAD.pack(runs, seconds, len(data))
        self.memory[_HEAD.size : _HEAD.size + len(data)] = data

    def read(self) -> tuple[int, float, bytes]:
        """Inputs, CPU seconds, last input."""
        runs, seconds, length = _HEAD.unpack(self.memory[: _HEAD.size])
        return runs, seconds, self.memory[_HEAD.size : _HEAD.size + length]


def timed(target: Target, data: bytes) -> None:
    """Run one input; TooSlow where it takes more CPU time than allowed."""
    start = time.process_time()
    with _alarm():
        check(target, data)
    spent = time.process_time() - start
    if spent > SLOW:
        raise TooSlow(f"{spent:.1f} s of CPU for {len(data)} bytes")


@contextmanager
def _alarm() -> Iterator[None]:
    """Interrupts Python code that does not come back."""

    def ring(*_: object) -> None:
        raise TooSlow(f"more than {SLOW:g} s of CPU")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, 1.5 * SLOW)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def signature(error: BaseException) -> str:
    """Kind of exception and the innermost place in our own code."""
    ours = [
        f for f in traceback.extract_tb(error.__traceback__) if "forensics/" in f.filename or "targets" in f.filename
    ]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else "?"
    return f"{type(error).__name__} at {place}"


def with_hypothesis(work: Slice, board: Board, known: frozenset[str], tell: Callable[[Crash], None]) -> None:
    """Rounds of examples until the CPU time is spent. A new fault is made small, told, and passed over from then on."""
    import hypothesis
    from hypothesis import HealthCheck, Phase, given, settings
    from mutate import inputs

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    target, start = work.target, time.process_time()
    seen, smallest, runs = set(known), dict[str, int](), 0

    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(inputs(target.seeds(), target.words))
    def one(data: bytes) -> None:
        nonlocal runs
        spent = time.process_time() - start
        if spent > 1.5 * work.seconds + SLOW:
            return
        board.write(runs, spent, data)
        runs += 1
        try:
            timed(target, data)
        except Exception as error:
            name = signature(error)
            if name in seen:
                return
            if len(data) < smallest.get(name, sys.maxsize):
                smallest[name] = len(data)
                tell(Crash(target.name, name, traceback.format_exc(), data))
            raise

    rounds = 0
    while time.process_time() - start < work.seconds:
        try:
            hypothesis.seed(work.seed * 1_000_003 + rounds)(one)()
        except Exception:
            if not smallest.keys() - seen:
                raise  # the fuzzer's own fault, not the target's
            seen |= smallest.keys()
        rounds += 1
    board.write(runs, time.process_time() - start, b"")


def with_atheris(work: Slice, board: Board, known: frozenset[str], tell: Callable[[Crash], None]) -> None:
    """Guided by coverage; the corpus that it finds is kept in fuzz/corpus/. It stops at the first fault."""
    name, corpus = work.target.name, HERE / "corpus" / work.target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for data in work.target.seeds():
        (corpus / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    words = corpus.with_suffix(".dict")
    words.write_text("".join(_quoted(word) + "\n" for word in work.target.words))
    prefix = corpus.with_name(f"{name}-{work.seed}-")
    options = [f"-max_total_time={int(work.seconds)}", f"-seed={work.seed + 1}", f"-timeout={int(SLOW)}"]
    options += ["-max_len=8192", f"-artifact_prefix={prefix}", "-print_final_stats=1"]
    options += [f"-dict={words}"] if work.target.words else []
    argv = [sys.executable, str(HERE / "guided.py"), name, *options, str(corpus)]
    done = subprocess.run(argv, capture_output=True, text=True, errors="replace")
    runs = next((int(s.split()[-1]) for s in done.stderr.split("\n") if "number_of_executed_units" in s), 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    board.write(runs, used.ru_utime + used.ru_stime, b"")
    if done.returncode != 0:
        kept = sorted(prefix.parent.glob(prefix.name + "*"))
        text = (done.stdout + done.stderr)[-6000:]
        tell(Crash(name, f"atheris {name} {work.seed}", text, kept[0].read_bytes() if kept else b""))


def _quoted(word: bytes) -> str:
    """A word as libFuzzer's dictionaries want it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"'


def warm(targets: list[Target]) -> None:
    """Run one input of each target, so that slices (forks of this process) begin with everything imported."""
    for target in targets:
        for data in target.seeds()[:1]:
            check(target, data)


NAMES = [target.name for target in TARGETS]
