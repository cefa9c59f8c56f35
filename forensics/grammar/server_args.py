"""Reads the `server_args=` dump of a launch into typed values with their places in the text."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import LarkError, UnexpectedInput

from forensics.grammar.build import make_parser
from forensics.schema.facts import Value

MARK = "server_args="
MAX_DEPTH = 40
"""Deepest nesting that is read; sglang's own dumps nest four levels deep."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One field. `start`/`end` delimit `name=value` in the parsed text, in code points."""

    name: str
    value: Value
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ServerArgs:
    """All fields in the order of the dump. `form` is `call` or `dict`; `truncated`: the end of the dump is missing."""

    arguments: tuple[Argument, ...]
    form: str
    truncated: bool = False


@cache
def _parser() -> Lark:
    text = (Path(__file__).parent / "server_args.lark").read_text(encoding="utf-8")
    return make_parser(text, parser="lalr", propagate_positions=True, maybe_placeholders=False)


@lru_cache(maxsize=16)
def read_server_args(text: str) -> ServerArgs | None:
    """The fields of the dump in `text` (a whole message); None where there is none. Never raises: a dump that is cut
    off or damaged gives the fields up to there.

    Launches of a crash loop print equal dumps: the last ones are remembered."""
    at = text.find(MARK)
    if at < 0:
        return None
    start = at + len(MARK)
    body = text[start:]
    form = "call" if body.startswith("ServerArgs(") else "dict" if body.startswith("{") else ""
    if not form:
        return None
    tree, truncated = _parse(body)
    if tree is None:
        return ServerArgs((), form, True)
    fields = tuple(_argument(pair, start) for pair in tree.children if isinstance(pair, Tree))
    return ServerArgs(fields, form, truncated)


def _parse(body: str) -> tuple[Tree[Token] | None, bool]:
    closing = ")" if body.startswith("ServerArgs(") else "}"
    end = _close(body)
    if end is not None:
        try:
            return _parser().parse(body[:end]), False
        except LarkError:
            pass
    limit = len(body) if end is None else end
    for _ in range(50):
        cut = _last_field(body, limit)
        if cut is None:
            return None, True
        try:
            return _parser().parse(body[:cut] + closing), True
        except UnexpectedInput as error:
            limit = min(cut, max(0, error.pos_in_stream if error.pos_in_stream is not None else cut - 1))
        except LarkError:
            limit = cut
    return None, True


def _structure(body: str) -> Iterator[tuple[int, str, int]]:
    """Brackets and commas outside quotes: (position, character, depth after it)."""
    depth, quote, i = 0, "", 0
    while i < len(body):
        c = body[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "'\"":
            quote = c
        elif c in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                return
            yield i, c, depth
        elif c in ")]}":
            depth -= 1
            yield i, c, depth
            if depth <= 0:
                return
        elif c == ",":
            yield i, c, depth
        i += 1


def _close(body: str) -> int | None:
    return next((i + 1 for i, c, depth in _structure(body) if depth <= 0), None)


def _last_field(body: str, limit: int) -> int | None:
    last = None
    for i, c, depth in _structure(body):
        if i >= limit:
            break
        if c == "," and depth == 1:
            last = i
    return last


def _argument(pair: Tree[Token], offset: int) -> Argument:
    name, value = pair.children
    label = str(name) if pair.data == "pair" else str(_text(str(name)))
    meta = pair.meta
    return Argument(label, _value(value), offset + meta.start_pos, offset + meta.end_pos)


def _value(node: Tree[Token] | Token) -> Value:
    if isinstance(node, Token):
        return str(node)
    match node.data:
        case "string":
            return _text(str(node.children[0]))
        case "number":
            return _number(str(node.children[0]))
        case "true" | "false":
            return str(node.data) == "true"
        case "none":
            return None
        case "items":
            return tuple(_value(c) for c in node.children)
        case "word":
            return str(node.children[0])
        case _:
            return _repr(node)


def _repr(node: Tree[Token] | Token) -> str:
    """The source-like text of a nested object, so that it can be searched and compared."""
    if isinstance(node, Token):
        return str(node)
    inner = [_repr(c) for c in node.children]
    match node.data:
        case "member":
            return ": ".join(inner)
        case "argument":
            return "=".join(inner)
        case "mapping":
            return "{" + ", ".join(inner) + "}"
        case "items":
            return "[" + ", ".join(inner) + "]"
        case "call":
            return f"{inner[0]}({', '.join(inner[1:])})"
        case "true" | "false" | "none":
            return str(node.data).capitalize()
        case _:
            return "".join(inner)


def _text(source: str) -> str:
    if "\\" not in source and source[:1] in "'\"" and "\n" not in source:
        return source[1:-1]
    try:
        with warnings.catch_warnings():
            # an unknown escape such as `\[` is what the log says, not our fault
            warnings.simplefilter("ignore")
            value = ast.literal_eval(source)
    except (ValueError, SyntaxError):
        return source.strip("'\"")
    return value if isinstance(value, str) else str(value)


def _number(source: str) -> int | float:
    try:
        return int(source)
    except ValueError:
        return float(source)
