"""Faults: every place of a launch that states a failure, from blocks and from single lines, before any judgement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from forensics.engine.table import HEADED, STAMPED, EventTable, Shape
from forensics.late import Late
from forensics.schema.block import Block, Frame, Raised
from forensics.schema.rank import Rank
from forensics.timeline import component, roles
from forensics.timeline.firsts import firsts
from forensics.timeline.lookup import OPAQUE, Rows, are_in, blocks_in, rows_of_shapes, within

MAX_FAULTS = 20_000
MAX_ROWS = 4096
_DIGITS = Late(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_PATHS = Late(r"(?:/[\w.+@-]+){2,}/?")
_QUOTED = Late(r"'[^']{1,200}'")
_REASON = Late(r"^\s*(?:- )?[A-Za-z_][\w.]*(?:Error|Exception)\b[:(]")
_COMPILER = Late(
    r"(?m)(?:^|: )(?:fatal )?error: |^nvcc fatal|^ptxas (?:fatal|error)|: undefined reference to |cannot find -l"
)
_OUTPUT = Late(r"(?i)\bbuild failed\b|\bcompil\w+ failed\b|\boutput:")
_BLOCK_KINDS = frozenset(
    {
        "frame",
        "frame-source",
        "traceback-head",
        "chain",
        "cuda-assert",
        "pg-watchdog",
        "argparse",
        "cxx-frame",
        "faulthandler",
        "py-spy",
        "stage-mark",
        "progress",
        "python-warning",
        "decode-batch",
        "prefill-batch",
        "gloo",
    }
)
_HEADS = frozenset({"cxx-frame"})
"""Kinds that also hold the line above a native stack, which says what happened: its frames say nothing."""
_ERROR_KINDS = frozenset({"error", "exception", "exit"})
_GLOG_ERROR = Late(rb"(?:^|[\s\[])[EF]\d{3,8} \d\d:\d\d:\d\d\.\d+")
_HARMLESS_TRACES = frozenset({"gc-hook", "ignored-import", "custom-allreduce", "optional-module"})
_DEVICE_ERROR = Late(r"(?:CUDA|HIP) error: (?!device-side assert|unspecified launch)")
_ROUTER_LEVEL = Late(rb"\b(TRACE|DEBUG|INFO|WARN|ERROR)\b")
_STAMPED_ERROR = Late(
    rb"(?:\x1b\[[0-9;]*m)*\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S{0,20}"
    rb"(?:\x1b\[[0-9;]{0,12}m|[\s|-]){1,16}(?:ERROR|CRITICAL|FATAL)\b"
)
_REQUEST_ERROR = Late(r"(?:ERROR:? +)?Error in request: ")
_UVICORN_ERROR = Late(r"^(?:ERROR|CRITICAL): ")

Judgement = tuple[str, str, str]
"""Nature, key, and where to look."""


@dataclass(slots=True)
class Fault:
    """One statement of a failure. `row` states it, `head` opens its block. `rank` is from its own header;
    `reporter` the global rank that a process-group line names. `rows` may fold a flood (then `count` is larger).
    `frames` are those of the whole block, `stated` those of the exception that states it (a wrapper's come later)."""

    row: int
    head: int
    rank: Rank | None
    nature: str
    mechanism: str
    text: str
    rows: tuple[int, ...]
    count: int = 1
    ranks: tuple[Rank, ...] = ()
    block: int | None = None
    frames: tuple[Frame, ...] = ()
    key: str = ""
    global_rank: int | None = None
    source: str = "line"
    go_to: str = ""
    stated: tuple[Frame, ...] = ()


def mask(text: str) -> str:
    """A message without what varies between repeats: numbers, addresses, paths, quoted names."""
    first = text.strip().split("\n", 1)[0][:400]
    return _DIGITS.sub("#", _QUOTED.sub("'…'", _PATHS.sub("/…", first)))[:200]


def collect(table: EventTable, blocks: tuple[Block, ...], inside: Rows) -> list[Fault]:
    """All faults of a launch in row order."""
    begun, taken = blocks_in(table, blocks, inside)
    mine = [(i, blocks[i]) for i in begun]
    found: list[Fault] = []
    covers = [(b.rows[0], b.rows[-1]) for _, b in mine if b.kind == "traceback"]
    for index, block in mine[:MAX_FAULTS]:
        fault = _from_block(table, index, block, covers)
        if fault is not None:
            found.append(fault)
    found.extend(_from_lines(table, inside, taken))
    return sorted(found, key=lambda f: (f.head, f.row))


def demote_after_stop(found: list[Fault], stop: int | None) -> None:
    """What dies after the server was asked to stop dies of that: no failure."""
    for fault in found:
        if stop is not None and fault.head > stop and fault.nature in (roles.CAUSE, roles.VICTIM):
            fault.nature = roles.TEARDOWN


# -- blocks -------------------------------------------------------------------------------------------------------


def _from_block(table: EventTable, index: int, block: Block, covers: list[tuple[int, int]]) -> Fault | None:
    if block.kind == "traceback":
        if _announced_as_noise(table, block):
            return None
        return _from_traceback(table, index, block)
    if block.kind == "cuda-assert":
        return _block_fault(
            table, index, block, roles.CAUSE, f"device-assert: {mask(table.text(block.head).split('Assertion', 1)[-1])}"
        )
    if block.kind == "pg-watchdog":
        text = table.text(block.head)
        phrase = roles.phrase_of(text)
        key = phrase.key if phrase else "process-group"
        if _DEVICE_ERROR.search(text):  # the watchdog thread met the device's error first: that states it
            return _block_fault(
                table, index, block, roles.CAUSE, f"device error: {mask(_DEVICE_ERROR.split(text)[-1])}"
            )
        nature = roles.CAUSE if phrase is not None and phrase.nature == roles.CAUSE else roles.VICTIM
        return _block_fault(table, index, block, nature, key, key, phrase.go_to if phrase else "")
    if block.kind == "argparse":
        return _block_fault(table, index, block, roles.CAUSE, "argparse") if block.raised else None
    if block.kind == "capture-advice":
        return _block_fault(table, index, block, roles.ADVICE, "capture-advice")
    if block.kind in ("cxx-terminate", "faulthandler", "nccl", "triton-compile") and block.raised:
        if any(a < block.head < b for a, b in covers) and block.kind == "triton-compile":
            return None
        return _from_raised(table, index, block, _telling(block))
    return None


def _telling(block: Block) -> Raised:
    """What native lines state: the first that is no mere advice about the host (RCCL gives some)."""
    return next((r for r in block.raised if not roles.is_noise(r.message)), block.raised[0])


def _block_fault(
    table: EventTable, index: int, block: Block, nature: str, mechanism: str, key: str = "", go_to: str = ""
) -> Fault:
    row = block.raised[0].row if block.raised else block.head
    own = block.rank if block.rank_by.startswith("header") else None
    return Fault(
        row,
        block.head,
        own,
        nature,
        mechanism,
        table.text(row).strip(),
        block.rows[:MAX_ROWS],
        block.count,
        (block.rank,) if block.rank else (),
        index,
        block.frames,
        key or mechanism,
        getattr(block, "global_rank", None),
        block.kind,
        go_to,
    )


def _from_raised(table: EventTable, index: int, block: Block, raised: Raised) -> Fault:
    text = f"{raised.type}: {raised.message}" if raised.type not in ("nccl", "compile") else raised.message
    phrase = roles.phrase_of(text)
    nature = phrase.nature if phrase else roles.CAUSE
    fault = _block_fault(
        table,
        index,
        block,
        nature,
        f"{raised.type}: {mask(raised.message)}",
        phrase.key if phrase else "",
        phrase.go_to if phrase else "",
    )
    fault.row = raised.row
    return fault


def _announcing(table: EventTable, block: Block) -> tuple[int, ...]:
    """The logged line at the head of a traceback, and the one right above a bare head."""
    head, above = block.head, max(0, block.head - 1)
    bare = table.text(head).startswith("Traceback") and not table.flags[head] & HEADED
    own = bare and table.source[above] == table.source[head] and table.rank[above] == table.rank[head]
    return (head, above) if own else (head,)


def _announced_as_request(table: EventTable, block: Block) -> bool:
    """Whether the HTTP process logs the traceback as that of one request, which it answers with an error."""
    return any(_REQUEST_ERROR.match(table.text(row)) for row in _announcing(table, block))


def _announced_as_noise(table: EventTable, block: Block) -> bool:
    """Whether the logged line at the head of a traceback, or right above it, says that it does not matter."""
    for row in _announcing(table, block):
        phrase = roles.phrase_of(table.text(row).strip())
        if phrase is not None and phrase.nature == roles.NOISE and phrase.key in _HARMLESS_TRACES:
            return True
    return False


def _from_traceback(table: EventTable, index: int, block: Block) -> Fault:
    own = block.rank if block.rank_by.startswith("header") else None
    if not block.raised:
        return Fault(
            block.head,
            block.head,
            own,
            roles.CAUSE,
            f"cut off: {_innermost(block.frames)}",
            table.text(block.head).strip(),
            block.rows[:MAX_ROWS],
            1,
            (block.rank,) if block.rank else (),
            index,
            block.frames,
            "truncated",
            None,
            "traceback",
        )
    raised = _stating(block)
    frames = raised.frames or block.raised[0].frames or block.frames
    whole = f"{raised.type}: {raised.message}" if raised.message else raised.type
    phrase = roles.phrase_of(whole.strip().split("\n", 1)[0])
    nature = phrase.nature if phrase else roles.CAUSE
    key = phrase.key if phrase else ""
    if _of_request(block.frames) or _announced_as_request(table, block):
        if key == "pipe-closed":
            nature, key = roles.CLIENT, roles.CLIENT_GONE
        nature = roles.CLIENT if nature == roles.CAUSE else nature
    row = _reason_row(table, block, raised)
    compiler = _compiler_line(table, raised)
    mechanism = f"{raised.type}: {mask(raised.message)}" if raised.message else f"{raised.type} in {_innermost(frames)}"
    return Fault(
        row,
        block.head,
        own,
        nature,
        mechanism,
        f"{whole.strip()}\n{compiler}" if compiler and compiler not in whole else whole.strip(),
        block.rows[:MAX_ROWS],
        1,
        (block.rank,) if block.rank else (),
        index,
        block.frames,
        key,
        None,
        "traceback",
        phrase.go_to if phrase else "",
        frames,
    )


def _of_request(frames: tuple[Frame, ...]) -> bool:
    """Whether a stack is the HTTP process's, at work on a request: a module that cannot be imported is none."""
    importing = bool(frames) and frames[-1].function == "<module>"
    return not importing and _in_handler(" ".join([f"{f.file} {f.function}" for f in frames]))


@lru_cache(maxsize=512)
def _in_handler(stack: str) -> bool:
    return bool(roles.CLIENT_FRAMES.search(stack)) and not roles.SERVER_FRAMES.search(stack)


def _reason_row(table: EventTable, block: Block, raised: Raised) -> int:
    """The line of a message that gives the reason: an exception quoted in its last lines, else the first line."""
    lines = raised.message.split("\n")
    if len(lines) < 2 or roles.WRAPPERS.search(lines[0]):
        return raised.row
    reasons = [i for i, text in enumerate(lines) if i and _REASON.match(text)]
    if not reasons and raised.type.endswith("CompilationError"):  # source, caret, and the reason in the last line
        reasons = [i for i, text in enumerate(lines) if i and text.strip()][-1:]
    if not reasons:
        return raised.row
    # A list of attempts (`- ImportError: …`) starts with the decisive one; a compiler ends with it.
    wanted = lines[reasons[0] if lines[reasons[0]].lstrip().startswith("- ") else reasons[-1]].strip()
    for row in block.rows[np.searchsorted(block.rows, raised.row) :][:400]:
        if table.text(row).strip().removeprefix("- ") == wanted.removeprefix("- "):
            return row
    return raised.row


def _stating(block: Block) -> Raised:
    """The exception of a chain that states the failure: the first one, unless it only says that a build failed and the
    one raised from it holds the compiler's own words."""
    first, *later = block.raised
    if first.type.endswith("CalledProcessError") and not _COMPILER.search(first.message):
        return next((r for r in later[:2] if _OUTPUT.search(r.message)), first)
    if first.type == "StopIteration" and not first.message:  # a look-up that found nothing; the next one says what
        return next((r for r in later if r.message), first)
    return first


def _compiler_line(table: EventTable, raised: Raised) -> str:
    """The compiler's first error below an exception that quotes its output; "" for other exceptions."""
    if not _OUTPUT.search(raised.message) and not raised.type.endswith("CalledProcessError"):
        return ""
    below = range(raised.row + 1, min(raised.row + 200, len(table)))
    return next((text for r in below if _COMPILER.search(text := table.text(r).strip())), "")


def _innermost(frames: tuple[Frame, ...]) -> str:
    kept = [f for f in frames if not component.PLUMBING.search(f.file)] or list(frames)
    return kept[-1].function if kept else "unknown"


# -- single lines -------------------------------------------------------------------------------------------------


def _from_lines(table: EventTable, inside: Rows, taken: Rows) -> list[Fault]:
    judged = _judged(table)
    rows = within(rows_of_shapes(table, judged), inside)
    rows = rows[~are_in(rows, taken)]
    shapes = table.shape[rows]
    order = np.argsort(shapes, kind="stable")
    cuts = np.flatnonzero(np.diff(shapes[order])) + 1
    parts = np.split(rows[order], cuts) if len(rows) else []
    return [_line_fault(table, part, *judged[int(table.shape[part[0]])]) for part in parts]


def _judged(table: EventTable) -> dict[int, Judgement]:
    """What the shapes of single lines state, by id: the same in every launch."""
    found = table.memo.get("judged")
    if not isinstance(found, dict):
        first = firsts(table)
        plain = (s for s in table.shapes if s.kind not in OPAQUE and (s.kind not in _BLOCK_KINDS or s.kind in _HEADS))
        judged = ((s.id, _judge(s, first.text(s.id), first.heads[s.id])) for s in plain)
        found = table.memo["judged"] = {shape: said for shape, said in judged if said is not None}
        ends = ((s, said) for pattern, said in roles.POD_ENDS for s, _ in first.matching(pattern))
        found |= {s.id: said for s, said in ends if s.kind == "frame-source"}
    return found


def _judge(shape: Shape, text: str, head: bytes) -> Judgement | None:
    """Nature, key and place to look of a line, from its first message and its raw head; a lone warning states none."""
    phrase = roles.phrase_of(text)
    if phrase is not None:
        if phrase.nature == roles.NOISE:
            return None
        return phrase.nature, phrase.key, phrase.go_to
    raised = shape.kind in _ERROR_KINDS and not text.lstrip().partition(":")[0].endswith("Warning")
    if raised or _UVICORN_ERROR.match(text):
        return (roles.VICTIM, "exit", "") if shape.kind == "exit" else (roles.CAUSE, "error-line", "")
    if shape.kind in ("cxx-log", "transport", "text", "message") and _GLOG_ERROR.search(head[:200]):
        return roles.CAUSE, "error-line", ""
    if shape.kind == "router":
        level = _ROUTER_LEVEL.search(head)
        return (roles.CAUSE, "error-line", "") if level is not None and level.group(1) == b"ERROR" else None
    if shape.kind in ("text", "message") and _STAMPED_ERROR.match(head[:120]):
        return roles.CAUSE, "error-line", ""
    if shape.kind in roles.WEAK_KINDS and roles.is_weak(text):
        return roles.WEAK, "weak", ""
    return None


def _with_message(table: EventTable, row: int, text: str) -> str:
    """A Rust panic states its message in the line below."""
    below = row + 1
    if below < len(table) and table.source[below] == table.source[row] and not table.flags[below] & (HEADED | STAMPED):
        return f"{text}\n{table.text(below).strip()}"
    return text


def _line_fault(table: EventTable, rows: Rows, nature: str, key: str, go_to: str) -> Fault:
    first = int(rows[0])
    ranks = tuple(table.ranks[i] for i in dict.fromkeys(table.rank[rows[:MAX_FAULTS]].tolist()) if i >= 0)
    text = table.text(first).strip()
    return Fault(
        first,
        first,
        table.rank_of(first),
        nature,
        mask(text) if key == "error-line" and _REASON.match(text) else f"{key}: {mask(text)}",
        _with_message(table, first, text) if key == "panic" else text,
        tuple(rows[:MAX_ROWS].tolist()),
        len(rows),
        ranks,
        None,
        (),
        key,
        None,
        "line",
        go_to,
    )
