"""A rule's pattern taken apart into what it says literally.

A pattern becomes expansions: one for each way through its alternations, each a list of fragments (literal text) between
which anything may stand. A branch is one side of an alternation, or an optional part; all branches together are what has
to be found for the whole pattern to count as found.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

from forensics.bench.wordings import GAP

MAX_EXPANSIONS = 6000
SHORTEST_BRANCH = 3
"""Letters that a branch must hold to be asked for by itself; shorter ones (`s?`, `(?:d )?`) are spelling."""
SMALL_CLASS = 3
_EXCEPTION = re.compile(r"\W*\w*(?:Error|Exception)\W*")
_TYPED = re.compile(r"(?:\w+\.)*(?P<name>\w+(?:Error|Exception)): ")
"""The type before a message is whatever the program, or a wrapper, raised: it is no branch of its own, and need not stand
beside the message."""
ENOUGH = 8
"""Letters of a message that say enough without the type."""


@dataclass(frozen=True)
class Expansion:
    """One way through a pattern: `fragments` in their order, and the numbers of the branches that it took."""

    fragments: tuple[str, ...]
    branches: frozenset[int]


@dataclass(frozen=True)
class Taken:
    """A pattern taken apart. `branches`: number and text of each that must be found somewhere; `fold`: letters of both
    cases are one."""

    expansions: tuple[Expansion, ...]
    branches: dict[int, str]
    fold: bool


class TooMany(Exception):
    """The pattern has more ways through it than are worth trying."""


_Part = tuple[tuple[str | None, ...], frozenset[int]]
"""Texts and gaps (None) of a partial expansion, and its branches."""


def take_apart(pattern: str) -> Taken:
    """Expansions of an RE2 pattern. Raises TooMany, or re.error where Python cannot read the pattern."""
    tree = _parser.parse(pattern)
    walk = _Walk()
    found: dict[Expansion, None] = {}
    for parts, branches in walk.sequence(list(tree)):
        fragments = tuple(_untyped(_joined(parts)))
        if fragments:
            found[Expansion(fragments, branches)] = None
    return Taken(tuple(found), walk.branches, bool(tree.state.flags & re.IGNORECASE))


def _untyped(fragments: list[str]) -> list[str]:
    """Without the exception's type before a message; where nothing else is said, the type's name alone."""
    if not fragments or (typed := _TYPED.match(fragments[0])) is None:
        return fragments
    rest = [t for t in (fragments[0][typed.end() :], *fragments[1:]) if any(map(str.isalnum, t))]
    return rest if sum(map(str.isalpha, "".join(rest))) >= ENOUGH else [typed["name"], *rest]


def _joined(parts: tuple[str | None, ...]) -> list[str]:
    texts, now = [], ""
    for part in parts:
        if part is not None:
            now += part
        else:
            texts.append(now)
            now = ""
    texts.append(now)
    return [t for t in texts if any(map(str.isalnum, t))]


class _Walk:
    def __init__(self) -> None:
        self.branches: dict[int, str] = {}

    def sequence(self, nodes: list[Any]) -> list[_Part]:
        ways: list[_Part] = [((), frozenset())]
        for node in nodes:
            more = self.node(*node)
            ways = [(a + b, x | y) for a, x in ways for b, y in more]
            if len(ways) > MAX_EXPANSIONS:
                raise TooMany
        return ways

    def node(self, kind: Any, value: Any) -> list[_Part]:
        if kind is op.LITERAL:
            return [((chr(value),), frozenset())]
        if kind is op.AT:
            return [((), frozenset())]
        if kind is op.IN:
            return self._class(value)
        if kind is op.BRANCH:
            return self._choice([list(x) for x in value[1]])
        if kind is op.SUBPATTERN:
            return self.sequence(list(value[3]))
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeat(*value)
        return [((None,), frozenset())]

    def _class(self, members: list[Any]) -> list[_Part]:
        if len(members) <= SMALL_CLASS and all(kind is op.LITERAL for kind, _ in members):
            return [((chr(value),), frozenset()) for _, value in members]
        return [((None,), frozenset())]

    def _choice(self, sides: list[list[Any]]) -> list[_Part]:
        return [part for side in sides for part in self._branch(self.sequence(side))]

    def _branch(self, ways: list[_Part]) -> list[_Part]:
        text = GAP.join(_joined(ways[0][0])) if ways else ""
        if sum(map(str.isalnum, text)) < SHORTEST_BRANCH or _EXCEPTION.fullmatch(text):
            return ways
        number = len(self.branches)
        self.branches[number] = text
        return [(parts, branches | {number}) for parts, branches in ways]

    def _repeat(self, low: int, high: Any, inner: Any) -> list[_Part]:
        if low == 1 and high == 1:
            return self.sequence(list(inner))
        ways = self.sequence(list(inner))
        if high == 1:
            return [*self._branch(ways), ((), frozenset())]
        if all(part is None for parts, _ in ways for part in parts):
            return [((None,), frozenset())]
        once = [((None, *parts, None), branches) for parts, branches in ways]
        return once if low else [*self._branch(once), ((None,), frozenset())]
