"""Which part of a block a line is: the terminals of blocks.lark, decided per line, and the lexer that hands them on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from lark import Token
from lark.lexer import Lexer

from forensics.late import Late

MAX_REMEMBERED = 400
"""Characters of the longest line whose reading is remembered."""
HEAD_TEXT = "Traceback (most recent call last)"
FRAME = Late(r'\s*File "([^"]{1,4096})", line (\d+)(?:,? in (.{1,500}))?')
EXCEPTION = Late(r"([A-Za-z_<][\w.<>]*(?:\([\w.]*\))?)(?::(?: |$)(.*))?$", re.DOTALL)
TYPE_LIKE = Late(
    r"(?:[\w.]*\.)?[\w<>]*(?:Error|Exception|Interrupt|Exit|Timeout|Failed|Failure|Died|Group|Fault|Traceback|OutOfResources|"
    r"Empty|Full|StopIteration|StopAsyncIteration|NotFound|Refused|Expired|Disconnect|Cancelled|Died|Abort)(?:\([\w.]*\))?$"
)
WARNING_TYPE = Late(r"[\w.]*Warning$")
MARGIN = Late(r"\s*\| ?")
NATIVE_TRACE = Late(r"[\w.]+(?:Error|Exception): Traceback \(most recent call last\)")
"""An exception whose message is a native library's own trace (TVM prints them like this)."""
SPLIT = Late(r"\s*\+(?:-\+)?-{8,}")
GROUP_HEAD = Late(r"\s*\+ Exception Group Traceback")
RAY_HEAD = Late(r"ray::\S{1,300}.{0,80}\(pid=\d+")
RAY_REMOTE = Late(r"[\w.]*RayTaskError(?:\([\w.]*\))?: (?:\S*)ray::")
GLOBAL_RANK = Late(r"\[rank(\d+)\]: ?")
WATCHDOG = Late(r"(?:\[rank(\d+)\]:)?\[?([EFWI])\d{3,4} \S+ .{0,40}?ProcessGroup\w+\.cpp:\d+\]")
NATIVE = Late(r"\s*(?:frame )?#(\d+):? ")
LEAD = Late(
    r"(?:Process \S+:$|(?:ERROR: +)?Exception in (?:ASGI application|callback|thread)|Exception ignored in|"
    r"Task exception was never retrieved|Future exception was never retrieved|Unhandled exception|"
    r"multiprocess(?:ing)?\.pool\.RemoteTraceback|concurrent\.futures\.process\._RemoteTraceback)"
)
THREAD = Late(r"(?:(?:Current thread|Thread) 0x[0-9a-fA-F]+ .{0,80}|Stack .{0,80})\(most recent call first\)")
PYSPY_PROCESS = Late(r"Process \d+: ")
PYSPY_THREAD = Late(r'Thread (?:0x)?[0-9A-Fa-f]+ \((?:idle|active)[^)]{0,60}\)(?:: "([^"]{0,200})")?')
PYSPY_FRAME = Late(r"\s{2,8}(\S.{0,300}?) \(([^()]{1,500}?)(?::(\d+))?\)$")
ADVICE_ITEM = Late(r"\d+\. (?:set|disable|use|enable|reduce|increase|try) |Open an issue on GitHub")
COMPILE = Late(
    r"ptxas .{0,300}?(?:error|fatal|warning)|ptxas (?:fatal|error)|nvcc (?:fatal|error)|FAILED: |ninja: build stopped|"
    r"\S{1,300}\(\d+\): (?:catastrophic )?error: |Internal Triton PTX codegen error|`ptxas` (?:stderr|failed)"
)

SEEDS = (
    HEAD_TEXT,
    'File "',
    "above exception",
    "frame #",
    "Fatal Python error",
    "most recent call first",
    "NCCL WARN",
    "terminate called after",
    "what():",
    "Possible solutions:",
    "ptxas",
    "Exception Group Traceback",
    "ProcessGroup",
    "usage: ",
    ": error: ",
    "ray::",
    "(idle)",
    "(active)",
    "(idle+gil)",
    "(active+gil)",
)
"""Any shape that holds one of these is looked at, whatever kind the line grammar gave it."""

SEED_KINDS = (
    "traceback-head", "frame", "exception", "chain", "cuda-assert", "pg-watchdog", "cxx-frame", "cxx-abort",
    "faulthandler", "py-spy", "nccl", "argparse", "compile", "advice",
)  # fmt: skip


def classify(text: str, kind: str) -> str:
    """The terminal of a line, from its own text; `TEXT` where only its neighbours can tell.

    `kind` (docs/kinds.md) decides between look-alikes; text decides where the line grammar said `text`.
    """
    if kind == "frame" and FRAME.match(text):
        return "FRAME"
    if kind == "frame-source" and text[:4] == "    " and "Traceback" not in text:
        return "TEXT"
    if kind == "cuda-assert" or (": Assertion " in text and "failed" in text and "block: [" in text):
        return "ASSERT"
    if RAY_REMOTE.match(text):
        return "REMOTE"
    if HEAD_TEXT in text or GROUP_HEAD.match(text) or RAY_HEAD.match(text):
        return "HEAD"
    if FRAME.match(text):
        return "FRAME"
    if "The above exception was the direct cause" in text:
        return "CAUSE"
    if "During handling of the above exception" in text:
        return "CONTEXT"
    return _native(text) or _dump(text) or _other(text, kind)


def _native(text: str) -> str:
    if WATCHDOG.match(text):
        return "WATCH"
    if NATIVE.match(text) and ("frame #" in text or " 0x" in text or " in " in text):
        return "NATIVE"
    if text.startswith("terminate called"):
        return "TERM"
    if text.lstrip().startswith("what():"):
        return "WHAT"
    if text.startswith(("Aborted", "Segmentation fault", "Bus error", "Floating point exception")):
        return "ABORT"
    return ""


def _dump(text: str) -> str:
    if text.startswith("Fatal Python error"):
        return "FATAL"
    if THREAD.match(text):
        return "THREAD"
    if PYSPY_PROCESS.match(text):
        return "PROCESS"
    if PYSPY_THREAD.match(text):
        return "PYTHREAD"
    if SPLIT.match(text):
        return "SPLIT"
    return ""


def _other(text: str, kind: str) -> str:
    if "NCCL WARN" in text:
        return "NCCLWARN"
    if text.startswith("usage: "):
        return "USAGE"
    if ": error: " in text and (kind == "argparse" or re.match(r"[\w./ -]{1,80}: error: ", text)):
        return "USAGEERR" if not COMPILE.match(text) else "COMPILE"
    if text.startswith("Possible solutions:") or ADVICE_ITEM.match(text):
        return "ADVICE"
    if COMPILE.match(text):
        return "COMPILE"
    if LEAD.match(text):
        return "LEAD"
    return "TEXT"


def without_margin(text: str) -> str:
    """A line of an exception group without its `  | ` margin."""
    found = MARGIN.match(text)
    return text[found.end() :] if found else text


def told(text: str, kind: str) -> tuple[str, str, int | None]:
    """What a line's own text tells: terminal, text without prefix and margin, and the rank of a `[rankN]:` prefix."""
    return _remembered(text, kind) if len(text) <= MAX_REMEMBERED else _told(text, kind)


def _told(text: str, kind: str) -> tuple[str, str, int | None]:
    prefix = GLOBAL_RANK.match(text)
    rank = int(prefix.group(1)) if prefix else None
    text = text[prefix.end() :] if prefix else text
    terminal = classify(text, kind)
    if terminal == "TEXT" and text.lstrip().startswith("|"):
        text = without_margin(text)
        terminal = classify(text, kind)
    return terminal, text, rank


_remembered = lru_cache(maxsize=4096)(_told)
"""Stacks repeat their lines, on each rank and in each launch."""


def frame_parts(text: str) -> tuple[str, int, str] | None:
    """File, line number and function ("" unknown) of a frame line, None where it is none."""
    return _frame_remembered(text) if len(text) <= MAX_REMEMBERED else _frame_parts(text)


def _frame_parts(text: str) -> tuple[str, int, str] | None:
    found = FRAME.match(text)
    return (found.group(1), int(found.group(2)[:18]), found.group(3) or "") if found else None


_frame_remembered = lru_cache(maxsize=4096)(_frame_parts)


def is_exception(text: str, kind: str) -> bool:
    """Whether an unindented line can be the last line of a traceback: `type: message` or a bare type name."""
    if kind == "exception":
        return True
    found = EXCEPTION.match(text)
    if not found:
        return False
    name = found.group(1)
    return bool(TYPE_LIKE.match(name) or WARNING_TYPE.match(name) or (found.group(2) is not None and "." in name)
                or (name[:1].isupper() and name.isidentifier() and len(name) > 3))  # fmt: skip


class BlockLexer(Lexer):
    """Hands the already classified lines of one block to the parser: `(terminal, table row, text)` each."""

    def __init__(self, lexer_conf: Any) -> None:
        self.conf = lexer_conf

    def lex(self, lexer_state: Any, parser_state: Any = None) -> Iterator[Token]:
        for terminal, row, text in lexer_state:
            yield Token(terminal, text, line=row)
