"""A shell script as simple commands with their places: what stands before a server, and what takes its output."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from lark import Lark, Token
from lark.exceptions import LarkError

from forensics.frozen import frozen
from forensics.grammar.build import make_parser

ENDS = frozenset({";", "&&", "||", "|", "|&", "&", "(", ")", ";;"})
"""Operators that end a simple command; every other one is a redirection."""
_OPENS = {"if": "if", "for": "loop", "while": "loop", "until": "loop", "select": "loop", "case": "case", "{": "{"}
_CLOSES = {"fi": "if", "done": "loop", "esac": "case", "}": "{"}
_LEADS = frozenset({"then", "else", "elif", "do", "!", "{"})


@frozen
class Simple:
    """One simple command. `words` are (start, end) of its words, `redirects` those of its redirection operators;
    `start`/`end` delimit it without the operator that ends it, `by`. `inside`: the innermost compound command around
    it (`if`, `loop`, `case`, `{`, `(`), empty at the top. `line` counts from 1."""

    start: int
    end: int
    words: tuple[tuple[int, int], ...]
    redirects: tuple[tuple[int, int], ...]
    by: str
    inside: str
    line: int


@cache
def _parser() -> Lark:
    text = (Path(__file__).parent / "script.lark").read_text(encoding="utf-8")
    return make_parser(text, parser="lalr")


def simple_commands(text: str) -> tuple[Simple, ...] | None:
    """The simple commands of a script in order; None where the text is no script (a quote that does not close)."""
    try:
        tree = _parser().parse(text)
    except LarkError:
        return None
    return tuple(_commands(text, [t for t in tree.children if isinstance(t, Token)]))


def _commands(text: str, tokens: list[Token]) -> Iterator[Simple]:
    around: list[str] = []
    held: list[Token] = []
    for token in [*tokens, Token("NEWLINE", "\n", len(text))]:
        kind, value = token.type, str(token)
        if kind == "COMMENT":
            continue
        if kind != "NEWLINE" and not (kind == "OPERATOR" and value in ENDS):
            held.append(token)
            continue
        while held and held[0] in _LEADS | _CLOSES.keys() | _OPENS.keys():
            word = str(held[0])
            if word in _OPENS:
                around.append(_OPENS[word])
            elif word in _CLOSES and around[-1:] == [_CLOSES[word]]:
                around.pop()
            elif word not in _LEADS:
                break
            if word in ("for", "case", "select"):
                held = []  # the words of a head are no command
            held = held[1:]
        if held:
            yield _simple(text, held, value if kind == "OPERATOR" else "\n", around[-1] if around else "")
        held = []
        if value == "(":
            around.append("(")
        elif value == ")" and around[-1:] == ["("]:
            around.pop()


def _simple(text: str, held: list[Token], by: str, inside: str) -> Simple:
    places = [(t.type, t.start_pos or 0, t.end_pos or 0) for t in held]
    start, end = places[0][1], places[-1][2]
    return Simple(
        start,
        end,
        tuple((a, b) for kind, a, b in places if kind == "WORD"),
        tuple((a, b) for kind, a, b in places if kind == "OPERATOR"),
        by,
        inside,
        text.count("\n", 0, start) + 1,
    )
