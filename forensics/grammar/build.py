"""The one place where Lark parsers are made."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lark.lexer
from lark import Lark

from forensics.grammar.tables import PREFIX, dump, restore, table_key
from forensics.knowledge.cache import read_cache, write_cache

_LOCK = threading.RLock()


def make_parser(source: str, **options: Any) -> Lark:
    """A parser for a grammar's text; `options` are Lark's own.

    Where the package interegular is installed (every sglang environment has it), Lark compares all terminals pairwise
    as automata, which takes hours for the line grammar. Which terminal wins is settled by priorities and held by tests,
    so that check is left out. Tables of earlier runs come from the cache.
    """
    key, lexer = table_key(source, options), options.get("lexer")
    known = restore(read_cache(key, PREFIX), lexer if isinstance(lexer, type) else None)
    if known is not None:
        return known
    with _without_collision_check():
        parser = Lark(source, **options)
    write_cache(key, dump(parser), PREFIX)
    return parser


@contextmanager
def _without_collision_check() -> Iterator[None]:
    module: Any = lark.lexer
    with _LOCK:
        before = getattr(module, "has_interegular", False)
        module.has_interegular = False
        try:
            yield
        finally:
            module.has_interegular = before
