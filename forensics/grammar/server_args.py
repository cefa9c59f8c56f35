"""Reads the `server_args=` dump of a launch into typed values with their places in the text."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import LarkError, UnexpectedInput

from forensics.frozen import frozen
from forensics.grammar.build import make_parser
from forensics.schema.facts import Value

MARK = "server_args="
MAX_DEPTH = 40
"""Deepest nesting that is read; sglang's own dumps nest four levels deep."""


@frozen
class Argument:
    """One field. `start`/`end` delimit `name=value` in the parsed text, in code points."""

    name: str
    value: Value
    start: int
    end: int


@frozen
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
    quick = _by_field(body, start, form)
    if quick is not None:
        return quick
    tree, truncated = _parse(body)
    if tree is None:
        return ServerArgs((), form, True)
    fields = tuple(_argument(pair, start) for pair in tree.children if isinstance(pair, Tree))
    return ServerArgs(fields, form, truncated)


_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*(?:'|\Z)|\"(?:[^\"\\]|\\.)*(?:\"|\Z)|[()\[\]{},]", re.DOTALL)
_FIELD_NAME = re.compile(r"[ \t]*([A-Za-z_][\w.]*)[ \t]*=[ \t]*")
_DICT_KEY = re.compile(r"[ \t]*('[^'\\\n]*')[ \t]*:[ \t]*")
_STRING = re.compile(r"'[^'\\\n]*'|\"[^\"\\\n]*\"")
_PLAIN_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_ITEM = rf"(?:True|False|None|'[^'\\\n,]*'|{_PLAIN_NUMBER.pattern})"
_PLAIN_LIST = re.compile(rf"\[{_ITEM}(?:, {_ITEM})*\]")
_WORDS: dict[str, Value] = {"True": True, "False": False, "None": None}


def _by_field(body: str, offset: int, form: str) -> ServerArgs | None:
    """The fields one by one: plain values at sight, the rest each by the grammar. None where the grammar has to see
    the whole: a field that it refuses, or `<…>`, which may hold commas."""
    if "<" in body:
        return None
    cuts, end = _fields(body)
    if end is not None and body[end] != (")" if form == "call" else "}"):
        return None
    found: list[Argument] = []
    start = cuts[0] + 1
    for stop in cuts[1:]:
        field = _field(body, start, stop, form)
        if field is None:
            return None if body[start:stop].strip(" \t") or stop != end else ServerArgs(tuple(found), form)
        name, value, a, b = field
        found.append(Argument(name, value, offset + a, offset + b))
        start = stop + 1
    return ServerArgs(tuple(found), form, end is None)


def _fields(body: str) -> tuple[list[int], int | None]:
    """Places of the opening bracket, of the commas between fields, and of the closing one, with the latter's place;
    without one (None) the dump is cut off after the last comma."""
    cuts: list[int] = []
    depth = 0
    for match in _TOKEN.finditer(body):
        char = body[match.start()]
        if char in "([{":
            depth += 1
            if depth == 1:
                cuts.append(match.start())
            elif depth > MAX_DEPTH:
                break
        elif char in ")]}":
            depth -= 1
            if depth <= 0:
                return [*cuts, match.start()], match.start()
        elif char == "," and depth == 1:
            cuts.append(match.start())
    return cuts, None


def _field(body: str, start: int, stop: int, form: str) -> tuple[str, Value, int, int] | None:
    """Name, value and place of the field in [start, stop); None where the grammar refuses it."""
    while start < stop and body[start] in " \t":
        start += 1
    while start < stop and body[stop - 1] in " \t":
        stop -= 1
    named = _FIELD_NAME.match(body, start, stop) if form == "call" else _DICT_KEY.match(body, start, stop)
    if named is None:
        return None
    text = body[named.end() : stop]
    name = named.group(1) if form == "call" else named.group(1)[1:-1]
    value = _plain(text)
    if value is _REFUSED and _PLAIN_LIST.fullmatch(text):
        value = tuple(_plain(item) for item in text[1:-1].split(", "))
    if value is _REFUSED:
        value = _other(text)
    return None if value is _REFUSED else (name, value, start, stop)


_REFUSED = "\x00refused"


def _plain(text: str) -> Value:
    """A word, text or number that is understood at sight."""
    if text in _WORDS:
        return _WORDS[text]
    if _STRING.fullmatch(text):
        return text[1:-1]
    return _number(text) if _PLAIN_NUMBER.fullmatch(text) else _REFUSED


@lru_cache(maxsize=2048)
def _other(text: str) -> Value:
    """A value by the grammar; dumps repeat their lists and nested objects."""
    try:
        tree = _parser().parse(f"ServerArgs(x={text})")
    except LarkError:
        return _REFUSED
    pairs = [pair for pair in tree.children if isinstance(pair, Tree)]
    return _value(pairs[0].children[1]) if len(pairs) == 1 else _REFUSED


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
