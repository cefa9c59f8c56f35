"""Which of the timeline's patterns a message may match: one look at its words instead of a search for each pattern.

Every pattern that is tried on many messages is registered here as a needle. The texts that it cannot do without
(rulebook/literals.py) go into one set with those of all others; a message is then only searched for the needles whose
texts it holds. So a log in which every line is new costs what it has bytes, not lines times patterns.
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.late import Late
from forensics.rulebook.literals import remember_literals, required
from forensics.rulebook.prefilter import Prefilter, prefilter

_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")


@dataclass(frozen=True, slots=True, eq=False)
class Needle:
    """A registered pattern; `number` is its place in what `near` gives."""

    pattern: Late[str]
    number: int


class Sieve:
    """All needles. The set is made when it is first asked, and again after a further needle came."""

    def __init__(self) -> None:
        self._patterns: list[str] = []
        self._filter: Prefilter | None = None

    def __len__(self) -> int:
        return len(self._patterns)

    def add(self, pattern: str) -> int:
        """Register a pattern; gives its number."""
        self._filter = None
        self._patterns.append(pattern)
        return len(self._patterns) - 1

    def near(self, text: str) -> frozenset[int]:
        """Numbers of the needles that `text` may match; all others it surely does not."""
        if self._filter is None:
            remember_literals(self._patterns)
            self._filter = prefilter(map(_needed, self._patterns))
        return self._filter.near(text)


def _needed(pattern: str) -> frozenset[str] | None:
    """Texts of which a pattern needs one; None where it does without, or its look-around hides which."""
    return None if any(mark in pattern for mark in _LOOKAROUND) else required(pattern)


_SIEVE = Sieve()


def needle(pattern: str) -> Needle:
    """Register a pattern at import time."""
    return Needle(Late(pattern), _SIEVE.add(pattern))


def near(text: str) -> frozenset[int]:
    """Numbers of the registered needles that `text` may match."""
    return _SIEVE.near(text)


def demanded() -> frozenset[str]:
    """All texts that registered needles cannot do without."""
    return frozenset().union(*(_needed(pattern) or () for pattern in _SIEVE._patterns))


def make_ready() -> None:
    """Make the set of all needles, once they are registered."""
    near("")


def known() -> int:
    """How many needles there are."""
    return len(_SIEVE)
