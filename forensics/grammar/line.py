"""The kind of a message and the places of its numbers, from `line.lark`.

Input is one message, decoded as latin-1, without wrapper, header and ANSI codes, its digits masked or not.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from lark import Token, Tree
from lark.exceptions import UnexpectedInput

from forensics.frozen import frozen
from forensics.grammar.build import make_parser
from forensics.grammar.tables import table_key
from forensics.grammar.terminals import Heads
from forensics.knowledge.cache import read_cache, write_cache

HOT = ("decode-batch", "prefill-batch", "access")
"""Kinds whose numbers become columns."""
_OPAQUE = "opaque-"
"""Names of the cache files (forensics/knowledge/cache.py) that hold one pattern of the grammar."""
LEVELS = ("debug", "info", "warning", "error")


@frozen
class FieldPlace:
    """One value of a batch line: its label, and either a constant or the place of a number in the parsed text."""

    label: str
    start: int = 0
    end: int = 0
    constant: float | None = None


@frozen
class LineParse:
    """What the grammar says about one shape: kind, the terminal that decided it, and the places of its numbers."""

    kind: str
    terminal: str
    fields: tuple[FieldPlace, ...] = ()


class LineGrammar:
    """The full parser, and its own lexer alone for when shapes come too fast (equal by construction: every kind has
    its own first terminals; a test holds the two together)."""

    def __init__(self) -> None:
        self.lark = make_parser(
            _source(),
            parser="lalr",
            lexer="contextual",
            start=["start", "hot"],
            g_regex_flags=re.ASCII,
            maybe_placeholders=False,
        )
        self.kind_of = self._first_terminals()
        heads = sorted(
            (t for t in self.lark.terminals if t.name in self.kind_of),
            key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
        )
        self._heads = Heads([(t.name, t.pattern.to_regexp()) for t in heads if t.name != "TEXT"])

    def telling_lines(self) -> Any:
        """A pattern that finds in many messages at once, one a line, all that `glance` may call neither `text` nor
        `blank`."""
        return self._heads.lines(without="BLANK")

    def _first_terminals(self) -> dict[str, str]:
        kinds = {}
        for rule in self.lark.rules:
            name = str(rule.origin.name)
            if (
                rule.expansion
                and rule.expansion[0].is_term
                and not name.startswith("_")
                and name not in ("value", "pair")
            ):
                kinds[str(rule.expansion[0].name)] = name.replace("_", "-")
        return kinds

    def parse(self, message: str) -> LineParse:
        """Parse with the full grammar; a message that breaks inside a hot line keeps the kind of its head."""
        if not message or message.isspace():
            return LineParse("blank", "BLANK")
        return self._parsed(message, "start") or self.glance(message)

    def _parsed(self, message: str, start: str) -> LineParse | None:
        try:
            tree = self.lark.parse(message, start)
        except UnexpectedInput:
            return None
        body = tree.children[0]
        assert isinstance(body, Tree)
        kind = str(body.data).replace("_", "-")
        first = body.children[0]
        terminal = first.type if isinstance(first, Token) else ""
        return LineParse(kind, terminal, tuple(_fields(body)) if kind in HOT else ())

    def read(self, message: str) -> LineParse:
        """What `parse` gives: the first terminal names the kind, and the parser is only asked where numbers have places
        (it then need not know how lines of other kinds begin)."""
        if not message or message.isspace():
            return LineParse("blank", "BLANK")
        seen = self.glance(message)
        return (self._parsed(message, "hot") if seen.kind in HOT else None) or seen

    def glance(self, message: str) -> LineParse:
        """Kind by the first terminal alone, without the places of numbers."""
        terminal = self._heads.first(message)
        return LineParse(self.kind_of[terminal], terminal) if terminal else LineParse("text", "TEXT")


def _fields(body: Tree[Token]) -> list[FieldPlace]:
    if body.data == "access":
        status = next(t for t in body.children if isinstance(t, Token) and t.type == "STATUS")
        return [FieldPlace("status", status.start_pos or 0, status.end_pos or 0)]
    found = []
    for pair in body.find_data("pair"):
        label = str(pair.children[0]).strip()
        value = pair.children[1]
        if not isinstance(value, Tree):
            continue
        token = value.children[0]
        if not isinstance(token, Token):
            continue
        if token.type == "NUMBER":
            found.append(FieldPlace(label, token.start_pos or 0, token.end_pos or 0))
        elif token.type in ("TRUE", "FALSE"):
            found.append(FieldPlace(label, constant=1.0 if token.type == "TRUE" else 0.0))
        elif token.type == "NAN" and "inf" in str(token):
            found.append(FieldPlace(label, constant=float(str(token))))
    return sorted(found, key=lambda f: f.start)


def _source() -> str:
    return Path(__file__).with_name("line.lark").read_text(encoding="utf-8")


@cache
def opaque() -> re.Pattern[str]:
    """The heads after which everything is what users wrote. Found in the cache, they spare a run that parses no line
    itself the whole grammar."""
    key = table_key(_source(), {"terminal": "OPAQUE"})
    pattern = read_cache(key, _OPAQUE)
    if not isinstance(pattern, str):
        pattern = next(t for t in line_grammar().lark.terminals if t.name == "OPAQUE").pattern.to_regexp()
        write_cache(key, pattern, _OPAQUE)
    return re.compile(pattern, re.ASCII)


@cache
def line_grammar() -> LineGrammar:
    """The one compiled grammar of this process."""
    return LineGrammar()
