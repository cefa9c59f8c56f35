"""From the parse tree of one stream to its block: exceptions oldest first, frames innermost last."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lark import Token, Tree

from forensics.grammar.block_form import Form, Part
from forensics.grammar.block_lexer import EXCEPTION, PYSPY_FRAME, PYSPY_THREAD, WATCHDOG, frame_parts
from forensics.grammar.block_stream import Classified, Stream
from forensics.schema.block import Block, Frame, Raised
from forensics.schema.rank import Rank

MAX_TEXT = 8000
SOLUTIONS = "Possible solutions:"
_WRAPPER = re.compile(
    r"Capture (?:[\w-]{1,30} ){0,3}(?:cuda|CUDA|CPU) graph failed: "
    r"(?:([A-Za-z_][\w.]*(?:Error|Exception)): )?(.+)",
    re.DOTALL,
)
_TITLE_RANK = re.compile(r"scheduler((?:_[A-Z][A-Z_]*?\d+)+)")
_WHO = re.compile(r"\[?Rank (\d+)\]?")
_NAMES = {"asserts": "cuda-assert", "watchdog": "pg-watchdog", "terminate": "cxx-terminate", "pyspy": "py-spy",
          "compile": "triton-compile", "advice": "capture-advice", "native": "native-stack"}  # fmt: skip


@dataclass(slots=True)
class Section:
    """One section of a traceback: how it follows the one before, its frames, its exception line. `remote` is the line
    (row, text) of an exception that wraps another process's traceback."""

    opening: str = ""
    remote: tuple[int, str] | None = None
    frames: list[Frame] = field(default_factory=list)
    row: int = -1
    lines: list[str] = field(default_factory=list)


def build(stream: Stream, lines: list[Classified], form: Form) -> list[Block]:
    """The block of a stream (none, where nothing of it is worth keeping). `lines` are those that the form is of."""
    if form.tree.data == "asserts":
        return [_plain(stream, form.filled(lines), tuple(row for _, row, _ in stream.tokens))]
    rows = tuple(sorted([row for _, row, _ in lines]))
    if form.tree.data == "traceback":
        return _traceback(stream, form, rows, lines)
    if form.tree.data == "faulthandler":
        return [_faulthandler(stream, form.filled(lines), rows)]
    if form.tree.data == "pyspy":
        return [_pyspy(stream, form.filled(lines), rows)]
    return [_plain(stream, form.filled(lines), rows)]


# -- tracebacks ---------------------------------------------------------------------------------------------------


def _traceback(stream: Stream, form: Form, rows: tuple[int, ...], lines: list[Classified]) -> list[Block]:
    sections = [_section(part, lines) for part in form.parts]
    raised = _order(sections)
    advice = _cut_advice(form, lines)
    cut = set(advice)
    shown = tuple(r for r in rows if r not in cut) if cut else rows
    frames = tuple([f for s in sections for f in s.frames])
    last = next((s for s in reversed(sections) if s.frames or s.lines or s.opening in ("HEAD", "REMOTE")), None)
    truncated = form.headless or last is None or not last.lines
    block = Block(
        "traceback", shown or rows, stream.rank, _ranked_by(stream), raised, frames, truncated,
        global_rank=stream.global_rank,
    )  # fmt: skip
    return [block, *_advice_block(stream, advice)]


def _section(part: Part, lines: list[Classified]) -> Section:
    opening, at, frames, raised = part
    section = Section(opening, frames=[_frame_of(lines[i][1], lines[i][2]) for i in frames])
    if opening == "REMOTE":
        section.remote = lines[at][1:]
    if raised:
        section.row, section.lines = lines[raised[0]][1], [lines[i][2] for i in raised]
    return section


def _order(sections: list[Section]) -> tuple[Raised, ...]:
    """Exceptions oldest first. A group's own exception comes after the exceptions inside it."""
    result: list[Raised] = []
    groups: list[Raised] = []
    link = ""
    for section in sections:
        if section.opening in ("CAUSE", "CONTEXT"):
            link = "cause" if section.opening == "CAUSE" else "context"
            result += groups
            groups = []
        if section.remote:
            groups.insert(0, _remote(section))
        if not section.lines:
            continue
        raised = _raised(section, link if result else "")
        link = ""
        if "sub-exception" in raised.message:
            groups.insert(0, Raised(raised.row, raised.type, raised.message, raised.frames, "cause"))
        else:
            result.append(raised)
    return _unwrapped((*result, *groups))


def _raised(section: Section, link: str) -> Raised:
    text = "\n".join(section.lines).partition(SOLUTIONS)[0].rstrip()[:MAX_TEXT]
    first, newline, rest = text.partition("\n")
    found = EXCEPTION.match(first)
    name, message = (found.group(1), (found.group(2) or "") + newline + rest) if found else ("", text)
    return Raised(section.row, name, message, tuple(section.frames), link)


def _remote(section: Section) -> Raised:
    """The exception that carries a remote one: younger than it."""
    assert section.remote is not None
    row, text = section.remote
    name, _, message = text.partition(": ")
    return Raised(row, name, message, (), "cause")


def _unwrapped(raised: tuple[Raised, ...]) -> tuple[Raised, ...]:
    """Puts the exception inside a lone `Capture cuda graph failed: …` before its wrapper: it is the older one."""
    if len(raised) != 1:
        return raised
    wrapper = raised[0]
    found = _WRAPPER.match(wrapper.message)
    if not found:
        return raised
    inner = Raised(wrapper.row, found.group(1) or wrapper.type, found.group(2), wrapper.frames)
    return inner, Raised(wrapper.row, wrapper.type, wrapper.message, wrapper.frames, "cause")


def _cut_advice(form: Form, lines: list[Classified]) -> list[int]:
    """Rows of a `Possible solutions:` list inside an exception's message."""
    rows: list[int] = []
    for _, _, _, raised in form.parts:
        start = next((n for n, i in enumerate(raised) if lines[i][2].startswith(SOLUTIONS)), None)
        if start is not None:
            rows += [lines[i][1] for i in raised[start:]]
    return rows


def _advice_block(stream: Stream, rows: list[int]) -> list[Block]:
    return [Block("capture-advice", tuple(rows), stream.rank, _ranked_by(stream))] if rows else []


# -- dumps --------------------------------------------------------------------------------------------------------


def _faulthandler(stream: Stream, body: Tree[Token], rows: tuple[int, ...]) -> Block:
    """Frames of the thread that was running (`Current thread`), else of the main one (a timer's dump names none), else
    of the first one; printed innermost first."""
    threads = [c for c in body.children if isinstance(c, Tree)]
    current = next((t for t in threads if str(t.children[0]).startswith("Current")), None)
    current = current or next((t for t in threads if _is_main(t)), threads[0] if threads else None)
    tokens = [t for t in current.children if isinstance(t, Token) and t.type == "FRAME"] if current else []
    frames = tuple(_frame(t) for t in reversed(tokens))
    head = body.children[0]
    raised: tuple[Raised, ...] = ()
    if isinstance(head, Token) and head.type == "FATAL":
        raised = (Raised(_row(head), "Fatal Python error", head.partition(": ")[2], frames),)
    return Block("faulthandler", rows, stream.rank, _ranked_by(stream), raised, frames, not threads,
                 global_rank=stream.global_rank)  # fmt: skip


def _is_main(thread: Tree[Token]) -> bool:
    """Whether the outermost frame, printed last, is the module's own code."""
    last = next((t for t in reversed(thread.children) if isinstance(t, Token) and t.type == "FRAME"), "")
    return str(last).rstrip().endswith(" in <module>")


def _pyspy(stream: Stream, body: Tree[Token], rows: tuple[int, ...]) -> Block:
    """Frames of the main thread, turned so that the innermost is last."""
    stacks = [c for c in body.children if isinstance(c, Tree)]
    main = next((s for s in stacks if _thread_name(s) == "MainThread"), stacks[0] if stacks else None)
    tokens = [t for t in main.children if isinstance(t, Token) and t.type == "PYFRAME"] if main else []
    frames = tuple(_pyspy_frame(t) for t in reversed(tokens))
    title = body.children[0]
    found = _TITLE_RANK.search(title) if isinstance(title, Token) else None
    rank = Rank.parse(re.sub(r"_(?=[A-Z][A-Z_]*?\d)", " ", found.group(1)).strip()) if found else None
    return Block("py-spy", rows, rank or stream.rank, "process title" if rank else _ranked_by(stream), (), frames,
                 not stacks)  # fmt: skip


def _thread_name(stack: Tree[Token]) -> str:
    found = PYSPY_THREAD.match(str(stack.children[0]))
    return (found.group(1) or "") if found else ""


def _pyspy_frame(token: Token) -> Frame:
    found = PYSPY_FRAME.match(token)
    assert found is not None
    return Frame(_row(token), found.group(2), int(found.group(3) or 0), found.group(1))


# -- native blocks and floods -------------------------------------------------------------------------------------


def _plain(stream: Stream, body: Tree[Token], rows: tuple[int, ...]) -> Block:
    tokens = [t for t in body.children if isinstance(t, Token)]
    kind = _NAMES.get(stream.kind, stream.kind)
    raised = _statement(stream.kind, tokens)
    truncated = stream.kind == "argparse" and tokens[-1].type != "USAGEERR"
    text = "\n".join(tokens[:4])
    global_rank = stream.global_rank
    if stream.kind in ("watchdog", "terminate") and global_rank is None:
        found = _WHO.search(text)
        global_rank = int(found.group(1)) if found else None
    frames = tuple(Frame(_row(t), _library(t), 0, _symbol(t)) for t in tokens if t.type == "NATIVE")[::-1]
    return Block(kind, rows, stream.rank, _ranked_by(stream), raised, frames, truncated, max(1, stream.total),
                 global_rank)  # fmt: skip


def _statement(kind: str, tokens: list[Token]) -> tuple[Raised, ...]:
    first = tokens[0]
    if kind == "asserts":
        return (Raised(_row(first), "Assertion", first.partition("Assertion ")[2] or str(first), ()),)
    if kind == "argparse":
        last = tokens[-1]
        if last.type != "USAGEERR":
            return ()
        return (Raised(_row(last), "ArgumentError", last.partition(": error: ")[2], ()),)
    if kind == "watchdog":
        found = WATCHDOG.match(first)
        return (Raised(_row(first), "ProcessGroup", first[found.end() :].strip() if found else str(first), ()),)
    if kind == "terminate":
        what = next((t for t in tokens if t.type == "WHAT"), None)
        name = first.partition("instance of ")[2].strip("'\u2018\u2019 ")
        message = what.partition("what():")[2].strip() if what is not None else str(first)
        return (Raised(_row(what if what is not None else first), name or "terminate", message, ()),)
    if kind in ("compile", "nccl"):
        reason = next((t for t in tokens if re.search(r"\b(?:error|fatal|FAILED)\b", t)), first)
        return (Raised(_row(reason), kind, str(reason), ()),)
    return ()


def _symbol(token: Token) -> str:
    text = re.sub(r"^\s*(?:frame )?#\d+:? (?:0x[0-9a-f]+ (?:in )?)?", "", token)
    return text.partition(" + 0x")[0].partition(" (0x")[0][:300]


def _library(token: Token) -> str:
    found = re.search(r"\b(?:in|from) (/\S+?)\)?$", token)
    return found.group(1) if found else ""


def _frame(token: Token) -> Frame:
    return _frame_of(_row(token), token)


def _frame_of(row: int, text: str) -> Frame:
    found = frame_parts(text)
    assert found is not None
    return Frame(row, *found)


def _row(token: Token) -> int:
    assert token.line is not None
    return token.line


def _ranked_by(stream: Stream) -> str:
    return stream.ranked_by + "".join(f", {word}" for word in sorted(stream.evidence))
