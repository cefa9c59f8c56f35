"""Conditions of findings: text to tree, with caret errors that point into the file the text came from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from forensics.errors import ConditionError
from forensics.grammar.build import make_parser
from forensics.grammar.condition_build import BadCondition, Builder
from forensics.grammar.condition_tree import Compare, Node, Place
from forensics.schema.span import Span

MAX_LENGTH = 2000
MAX_DEPTH = 60
_EXPECTED = {
    "WORD": "a name",
    "QUANTITY": "a number",
    "CMP": "a comparison",
    "STRING": "a quoted text",
    "RANK": "`rank`",
    "AND": "`and`",
    "OR": "`or`",
    "$END": "the end",
    "IN": "`in {…}`",
    "BEFORE": "`before`",
    "LBRACE": "`{`",
    "RPAR": "`)`",
    "AXIS": "a rank such as TP3",
    "FLAG": "`--flag=value`",
}


@cache
def _parser() -> Lark:
    text = (Path(__file__).parent / "conditions.lark").read_text(encoding="utf-8")
    return make_parser(text, parser="lalr", lexer="contextual", propagate_positions=True, maybe_placeholders=False)


def parse_condition(text: str, at: Span | None = None, excerpt: str = "") -> Node:
    """The tree of a condition. `at` is where its text starts in a file and `excerpt` that file's line, for errors."""
    try:
        return _parsed(text)
    except _Refused as refused:
        raise refused.error(text, at, excerpt) from None


def parse_where(text: str, captures: set[str]) -> Compare:
    """The comparison of a rule's `where` over the named captures."""
    try:
        node = _tree(text, captures)
    except _Refused as refused:
        raise refused.error(text, None, "") from None
    if not isinstance(node, Compare):
        raise ConditionError(
            "one comparison is expected", span=Span("where", 1), hint="write `a + b < c`", excerpt=text
        )
    return node


class _Refused(Exception):
    def __init__(self, message: str, place: Place, hint: str) -> None:
        super().__init__(message)
        self.message, self.place, self.hint = message, place, hint

    def error(self, text: str, at: Span | None, excerpt: str) -> ConditionError:
        offset = self.place[0]
        if at is None:
            span = Span("condition", 1, offset + 1)
            return ConditionError(self.message, span=span, hint=self.hint, code="C201", excerpt=text)
        span = Span(at.path, at.line, at.column + offset)
        return ConditionError(self.message, span=span, hint=self.hint, code="C201", excerpt=excerpt)


@lru_cache(maxsize=8192)
def _parsed(text: str) -> Node:
    stored = _PRIMED.get(text)
    return _tree(text, None) if stored is None else stored[1](stored[0])


_PRIMED: dict[str, tuple[Any, Callable[[Any], Node]]] = {}
"""Trees that the knowledge cache holds, still encoded: most are never asked for."""


def prime(stored: dict[str, Any], decode: Callable[[Any], Node]) -> None:
    """Take trees from a cache, so that they need not be parsed again."""
    _PRIMED.update((text, (tree, decode)) for text, tree in stored.items())


def _tree(text: str, captures: set[str] | None) -> Node:
    if len(text) > MAX_LENGTH or text.count("(") > MAX_DEPTH or text.count("not") > MAX_DEPTH:
        raise _Refused("the condition is too long or too deep", (0, 0), "split it into several grounds")
    try:
        root = _parser().parse(text)
        return Builder(captures).condition(root.children[0])
    except BadCondition as error:
        raise _Refused(str(error), error.place, error.hint) from None
    except UnexpectedInput as error:
        raise _syntax(text, error) from None


def _syntax(text: str, error: UnexpectedInput) -> _Refused:
    offset = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    if isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
        return _Refused("the condition ends too early", (len(text), len(text)), _wanted(error))
    if isinstance(error, UnexpectedCharacters):
        word = text[offset : offset + 20].split(" ")[0]
        return _Refused(f"`{word}` cannot stand here", (offset, offset + 1), _odd(word) or _wanted(error))
    word = str(getattr(error, "token", ""))
    return _Refused(f"`{word}` cannot stand here", (offset, offset + len(word)), _wanted(error))


def _odd(word: str) -> str:
    if word[:1] == "'":
        return 'use double quotes: "…"'
    if word[:1].isdigit():
        return "put values that begin with a digit in double quotes"
    return {"&": "write `and`", "|": "write `or`", "!": "write `not`"}.get(word[:1], "")


def _wanted(error: UnexpectedInput) -> str:
    accepted = (
        getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None) or ()
    )
    words = sorted({_EXPECTED[name] for name in accepted if name in _EXPECTED})
    return "expected here: " + ", ".join(words) if words else "see docs/conditions.md"
