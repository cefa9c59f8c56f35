"""Which of the timeline's patterns a message may match: one look at its words instead of a search for each pattern.

Every pattern that is tried on many messages is registered here as a needle. The texts that it cannot do without
(rulebook/literals.py) go into one set with those of all others; a message is then only searched for the needles whose
texts it holds. So a log in which every line is new costs what it has bytes, not lines times patterns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import re2

from forensics.rulebook.literals import required
from forensics.rulebook.patterns import new_set

_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


@dataclass(frozen=True, slots=True, eq=False)
class Needle:
    """A registered pattern; `number` is its place in what `near` gives."""

    pattern: re.Pattern[str]
    number: int


class Sieve:
    """All needles. The set is made when it is first asked, and again after a further needle came."""

    def __init__(self) -> None:
        self._patterns: list[str] = []
        self._set: re2.Set | None = None
        self._owners: list[tuple[int, ...]] = []
        self._always: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, pattern: str) -> int:
        """Register a pattern; gives its number."""
        self._set = None
        self._patterns.append(pattern)
        return len(self._patterns) - 1

    def near(self, text: str) -> frozenset[int]:
        """Numbers of the needles that `text` may match; all others it surely does not."""
        if self._set is None:
            self._make()
        assert self._set is not None
        found = self._set.Match(text.lower())
        if not found:
            return self._always
        return self._always.union(*(self._owners[literal] for literal in found))

    def _make(self) -> None:
        needs: dict[str, list[int]] = {}
        always: list[int] = []
        for number, pattern in enumerate(self._patterns):
            wanted = None if any(mark in pattern for mark in _LOOKAROUND) else required(pattern)
            if wanted is None:
                always.append(number)
            for literal in wanted or ():
                needs.setdefault(literal, []).append(number)
        literals = new_set()
        for literal in (*needs, "\x00never"):
            literals.Add(re2.escape(literal))
        literals.Compile()
        self._owners = [*map(tuple, needs.values()), ()]
        self._always = frozenset(always)
        self._set = literals


_SIEVE = Sieve()


def needle(pattern: str) -> Needle:
    """Compile and register a pattern at import time."""
    return Needle(re.compile(pattern), _SIEVE.add(pattern))


def near(text: str) -> frozenset[int]:
    """Numbers of the registered needles that `text` may match."""
    return _SIEVE.near(text)


def known() -> int:
    """How many needles there are."""
    return len(_SIEVE)
