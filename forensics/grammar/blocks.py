"""Multi-line blocks: finds them in a table, parses each with blocks.lark, and builds schema/block.py values."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from forensics.engine.table import EventTable
from forensics.grammar.block_build import build
from forensics.grammar.block_lexer import BlockLexer
from forensics.grammar.block_stitch import streams
from forensics.grammar.block_stream import Classified
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
    parsed = _Parsed()
    for stream in streams(table):
        # A flood is one line many times: its first line is all that the grammar need see.
        tree = parsed.tree(stream.tokens[:1] if stream.kind == "asserts" else stream.tokens)
        if tree is not None:
            found += build(stream, tree)
    return tuple(sorted(found, key=lambda b: b.rows[0]))


class _Parsed:
    """Trees of streams. The grammar sees terminals only, and ranks print the same stack: each sequence of terminals is
    parsed once, and its tree filled with the lines of each stream that has it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], Tree[Token] | None] = {}

    def tree(self, tokens: list[Classified]) -> Tree[Token] | None:
        """The tree of the longest prefix of a stream's lines that the grammar takes."""
        terminals = tuple(terminal for terminal, _, _ in tokens)
        if terminals not in self._known:
            self._known[terminals] = _parse([(terminal, at, "") for at, terminal in enumerate(terminals)])
        known = self._known[terminals]
        return None if known is None else _filled(known, tokens)


def _filled(tree: Tree[Token], tokens: list[Classified]) -> Tree[Token]:
    """A tree over places in a stream as one over its lines."""
    children: list[Tree[Token] | Token] = []
    for child in tree.children:
        if isinstance(child, Token):
            terminal, row, text = tokens[child.line or 0]
            children.append(Token(terminal, text, None, row))
        else:
            children.append(_filled(child, tokens))
    return Tree(tree.data, children)


def _parse(tokens: list[Classified]) -> Tree[Token] | None:
    """The longest prefix of a stream's lines that the grammar takes."""
    while tokens:
        try:
            return _parser().parse(tokens)
        except LarkError as error:
            row = getattr(error, "line", -1)
            cut = next((i for i, (_, at, _) in enumerate(tokens) if at == row), 0)
            tokens = tokens[:cut]
    return None
