"""Streams and lines that the stitcher works on, and which terminals open, join and end a block."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forensics.grammar.block_lexer import WATCHDOG
from forensics.schema.rank import Rank

MAX_OPEN = 64
MAX_MESSAGE = 300
MAX_USAGE = 3000
MAX_FLOOD = 4096
IDLE_ROWS = 3000
OPENERS = {
    "WATCH": "watchdog", "TERM": "terminate", "WHAT": "terminate", "FATAL": "faulthandler", "THREAD": "faulthandler",
    "PROCESS": "pyspy", "PYTHREAD": "pyspy", "ASSERT": "asserts", "NCCLWARN": "nccl", "USAGE": "argparse",
    "USAGEERR": "argparse", "COMPILE": "compile", "ADVICE": "advice", "NATIVE": "native",
}  # fmt: skip
JOINS = {"THREAD": "faulthandler", "WHAT": "terminate", "PYTHREAD": "pyspy", "USAGEERR": "argparse",
         "COMPILE": "compile", "ADVICE": "advice", "NCCLWARN": "nccl"}  # fmt: skip
BOUND_KINDS = frozenset({
    "exit", "sigquit", "uvicorn", "access", "progress", "python-warning", "shell", "command", "env-report",
    "nvidia-smi", "gloo", "transport", "router", "server-args", "stage-mark", "ray", "cxx-log",
})  # fmt: skip
"""Lines of these kinds end the message of the block above, with or without a header."""


Classified = tuple[str, int, str]
"""One line of a block: terminal, row, text."""


@dataclass(slots=True)
class Stream:
    """One block in the making. `phase` (tracebacks): head, frames, raised, linked. `frames` are (file, function),
    `path` is their number in `Paths`.
    `last` is the row of its last line so far, lines that were left out counted.
    `native_trace`: its message is a trace of its own, whose frames are text here."""

    kind: str
    label: str = ""
    key: str = ""
    rank: Rank | None = None
    global_rank: int | None = None
    tokens: list[Classified] = field(default_factory=list)
    phase: str = "head"
    frames: list[tuple[str, str]] = field(default_factory=list)
    path: int = 0
    last: int = -1
    evidence: set[str] = field(default_factory=set)
    number: int = -1
    total: int = 0
    more: int = 0
    ranked_by: str = "header"
    native_trace: bool = False

    @property
    def source(self) -> str:
        """The source line that stands last in a traceback's last lines, "" where there is none."""
        for terminal, _, text in self.tokens[:-4:-1]:
            if terminal == "SOURCE" and "^" not in text:
                return text
        return ""


class Paths:
    """All sequences of frames that tracebacks showed from their heads on, as a tree: each has a number, 0 is none."""

    def __init__(self) -> None:
        self._next: dict[tuple[int, tuple[str, str]], int] = {}
        self._inner: set[int] = set()

    def step(self, path: int, frame: tuple[str, str]) -> int:
        """The number of a sequence with one more frame."""
        self._inner.add(path)
        return self._next.setdefault((path, frame), len(self._next) + 1)

    def knows(self, path: int, frame: tuple[str, str]) -> bool:
        """Whether a traceback went on with this frame."""
        return (path, frame) in self._next

    def goes_on(self, path: int) -> bool:
        """Whether a traceback went on at all."""
        return path in self._inner


@dataclass(slots=True)
class Line:
    """One row as the stitcher sees it: terminal, text without prefix and margin, label of the wrapper, and the key that
    its own header gives (empty for a continuation line)."""

    row: int
    terminal: str
    text: str
    kind: str
    headed: bool
    label: str
    key: str
    global_rank: int | None


SHELL_END = re.compile(r"\S+: line \d+: +\d+ |Killed$|Terminated$|\[\d+\]\+? +(?:Exit|Done|Killed)")


def is_error(text: str) -> bool:
    """Whether a glog line has severity E or F; warnings and notes of the same file are no reports."""
    found = WATCHDOG.match(text)
    return found is not None and found.group(2) in "EF"


def announces(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in ("exception", "error", "fail", "traceback", "crash"))


def whole_dump(stream: Stream) -> bool:
    """Whether a faulthandler dump that no crash printed is complete: its last thread is the main one, which ends in
    the module's own code. Another process' dump may follow without a line between them."""
    if stream.kind != "faulthandler" or stream.tokens[0][0] == "FATAL":
        return False
    last = next((text for terminal, _, text in reversed(stream.tokens[-4:]) if terminal == "FRAME"), "")
    return last.rstrip().endswith(" in <module>")
