"""`where` of a rule: a comparison over the captures of one match."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from forensics.grammar.condition_tree import Compare
from forensics.grammar.conditions import parse_where
from forensics.rulebook.arithmetic import compare_terms
from forensics.schema.facts import Value


def holds(text: str, captures: Mapping[str, Value]) -> bool | None:
    """Whether the comparison holds; None where a capture has no value."""
    return compare_terms(_parsed(text, frozenset(captures)), captures)


@lru_cache(maxsize=1024)
def _parsed(text: str, captures: frozenset[str]) -> Compare:
    return parse_where(text, set(captures))
