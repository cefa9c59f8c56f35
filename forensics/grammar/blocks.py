"""Multi-line blocks: finds them in a table, parses each with blocks.lark, and builds schema/block.py values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lark import Lark
from lark.exceptions import LarkError

from forensics.engine.table import EventTable
from forensics.grammar.block_build import build
from forensics.grammar.block_form import Form, form_of
from forensics.grammar.block_lexer import BlockLexer
from forensics.grammar.block_stitch import streams
from forensics.grammar.build import make_parser
from forensics.schema.block import Block


@cache
def _parser() -> Lark:
    text = (Path(__file__).parent / "blocks.lark").read_text(encoding="utf-8")
    return make_parser(text, parser="lalr", lexer=BlockLexer, maybe_placeholders=False)


def find_blocks(table: EventTable) -> tuple[Block, ...]:
    """All blocks of a table, in the order of their first rows.

    Only rows of telling kinds and the headerless rows below them are read. A line that its block's grammar refuses
    ends the block there; nothing raises.
    """
    found: list[Block] = []
    forms: dict[tuple[str, ...], Form | None] = {}
    for stream in streams(table):
        # A flood is one line many times: its first line is all that the grammar need see.
        lines = stream.tokens[:1] if stream.kind == "asserts" else stream.tokens
        terminals = tuple([terminal for terminal, _, _ in lines])
        if terminals not in forms:
            forms[terminals] = _parse(terminals)
        form = forms[terminals]
        if form is not None:
            found += build(stream, lines[: form.taken], form)
    return tuple(sorted(found, key=lambda b: b.rows[0]))


def _parse(terminals: Sequence[str]) -> Form | None:
    """The form of the longest prefix of a stream that the grammar takes."""
    while terminals:
        try:
            tree = _parser().parse([(terminal, place, "") for place, terminal in enumerate(terminals)])
            return form_of(len(terminals), tree)
        except LarkError as error:
            place = getattr(error, "line", 0)
            terminals = terminals[: place if isinstance(place, int) else 0]
    return None
