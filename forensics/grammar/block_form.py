"""The form of a block: what blocks.lark says about its lines, as places among them.

The grammar sees terminals only, and ranks print the same stack: each sequence of terminals is parsed once, and its form
serves all streams that have it.
"""

from __future__ import annotations

from lark import Token, Tree

from forensics.frozen import frozen
from forensics.grammar.block_stream import Classified

Part = tuple[str, int, tuple[int, ...], tuple[int, ...]]
"""A section of a traceback: the terminal that opens it ("" none), and the places of its opening (-1 none), of its
frames, and of the lines of its exception."""


@frozen
class Form:
    """The first `taken` lines of a stream, those that the grammar takes: their tree, in which a token's `line` is the
    place of its line. `parts` are the sections of a traceback; `headless`: it begins without its head."""

    taken: int
    tree: Tree[Token]
    parts: tuple[Part, ...] = ()
    headless: bool = False

    def filled(self, lines: list[Classified]) -> Tree[Token]:
        """The tree over the lines of a stream: a token's `line` is its row in the table."""
        return _filled(self.tree, [Token(terminal, text, None, row) for terminal, row, text in lines])


def form_of(taken: int, tree: Tree[Token]) -> Form:
    """The form that a parse tree over places describes."""
    body = tree.children[0]
    assert isinstance(body, Tree)
    if body.data != "traceback":
        return Form(taken, body)
    first = body.children[0]
    parts = tuple(_part(child) for child in body.children if isinstance(child, Tree))
    return Form(taken, body, parts, isinstance(first, Tree) and first.data == "headless")


def _part(section: Tree[Token]) -> Part:
    opening, at = "", -1
    frames: list[int] = []
    raised: tuple[int, ...] = ()
    for child in section.children:
        assert isinstance(child, Tree)
        places = [token.line or 0 for token in child.children if isinstance(token, Token)]
        if child.data == "opening":
            token = child.children[0]
            assert isinstance(token, Token)
            opening, at = token.type, places[0]
        elif child.data == "frame":
            frames.append(places[0])
        else:
            raised = tuple(places)
    return opening, at, tuple(frames), raised


def _filled(tree: Tree[Token], lines: list[Token]) -> Tree[Token]:
    children = [lines[c.line or 0] if isinstance(c, Token) else _filled(c, lines) for c in tree.children]
    return Tree(tree.data, children)
