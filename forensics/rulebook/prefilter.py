"""Which of many patterns a text may satisfy: one look at its words instead of a search for each pattern."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import field

import re2

from forensics.frozen import frozen
from forensics.rulebook.patterns import new_set

MAX_REMEMBERED = 400
"""Characters of the longest text of which is remembered what it holds."""


@frozen
class Prefilter:
    """`literals` finds texts that members cannot do without; `owners[i]` are the members that need literal i, `always`
    those without one. `seen`: what was found in short texts; launches ask for the same shapes."""

    literals: re2.Set | None
    owners: tuple[tuple[int, ...], ...]
    always: frozenset[int]
    seen: dict[str, frozenset[int]] = field(default_factory=dict, compare=False, repr=False)

    def near(self, text: str) -> frozenset[int]:
        """Numbers of the members that `text`, in whatever case, may satisfy; all others it surely does not."""
        known = self.seen.get(text)
        if known is not None:
            return known
        found = self.literals.Match(text.lower()) if self.literals is not None else ()
        near = self.always.union(*(self.owners[literal] for literal in found)) if found else self.always
        if len(text) <= MAX_REMEMBERED:
            if len(self.seen) > 4096:
                self.seen.clear()
            self.seen[text] = near
        return near


def prefilter(wanted: Iterable[Collection[str] | None]) -> Prefilter:
    """The filter of members, numbered in order: of each the lowered texts of which it needs one, or None."""
    needs: dict[str, list[int]] = {}
    always: list[int] = []
    for number, texts in enumerate(wanted):
        if texts is None:
            always.append(number)
        for literal in texts or ():
            needs.setdefault(literal, []).append(number)
    return Prefilter(_set(needs), tuple(map(tuple, needs.values())), frozenset(always))


def _set(literals: Collection[str]) -> re2.Set | None:
    """A set that finds which of the texts a line holds; None where there are none."""
    if not literals:
        return None
    found = new_set()
    for text in literals:
        found.Add(re2.escape(text))
    found.Compile()
    return found
