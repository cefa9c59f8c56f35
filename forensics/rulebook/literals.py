"""Which texts a pattern cannot do without: the prefilter of shapes.

A shape's text has its digits masked (each digit or each run, the engine decides), so a literal is only used in the
pieces that survive any such masking: no digits, no dot beside a digit, no runs of blanks, no bars, nothing that may be
part of a hex word, plain ASCII, lower case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from forensics.frozen import frozen
from forensics.knowledge.cache import content_key, read_cache, write_cache
from forensics.rulebook.patterns import compiled

_LOST = re.compile(r"[.,]{0,6}\d[\d.,]*|\s{2,}|[^\x20-\x7e]+|\|[^|a-z\[\]]{2,}\|")
_HEX_PART = re.compile(r"[a-f]+")
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_GROUP = re.compile(r"\((?:\?P?<\w+>|\?(?P<flags>[a-zA-Z]*)(?:-[a-zA-Z]*)?(?P<end>[:)])|)")
_CLASS_NAME = re.compile(r"\[:\^?\w+:\]")
_CACHED = "literals-"
"""Names of the cache files (forensics/knowledge/cache.py)."""
_WIDE = frozenset("dDwWsS")


@frozen
class Need:
    """What a piece of a pattern demands. `exact` is its text if it is one fixed text, else None. `one_of`: a match
    holds at least one of these texts (None: nothing is demanded). `blind`: digits decide nothing in it. `all_of`: a
    match holds at least one text of each of these."""

    exact: str | None
    one_of: frozenset[str] | None
    blind: bool = True
    all_of: tuple[frozenset[str], ...] = ()

    def each(self) -> tuple[frozenset[str], ...]:
        """All that is demanded, part by part."""
        if self.exact is not None:
            return tuple(frozenset({piece}) for piece in _pieces(self.exact))
        return self.all_of or ((self.one_of,) if self.one_of else ())


_NOTHING = Need(None, None)


Verdict = tuple[frozenset[str] | None, bool]


def required(pattern: str) -> frozenset[str] | None:
    """Lower-case texts of which every match holds at least one (after masking); None where there is no such text."""
    return verdict(pattern)[0]


@lru_cache(maxsize=2048)
def demands(pattern: str) -> tuple[frozenset[str], ...]:
    """Like `required`, for each part of a pattern: every match holds one text of each set."""
    return _Parser(pattern).alternation().each()


def digit_blind(pattern: str) -> bool:
    """Whether one line decides for all lines that differ from it in digits only."""
    return verdict(pattern)[1]


@lru_cache(maxsize=8192)
def verdict(pattern: str) -> Verdict:
    """What the prefilter knows about a pattern: required texts, and whether digits decide nothing."""
    known = _PRIMED.get(pattern)
    if known is not None:
        return known
    need = _Parser(pattern).alternation()
    return _usable(need), need.blind


_PRIMED: dict[str, Verdict] = {}
"""Verdicts that the knowledge cache holds."""


def remember_literals(patterns: Sequence[str]) -> None:
    """Have the verdicts on a fixed list of patterns from the cache, or put them there."""
    key = content_key(pattern.encode() for pattern in patterns)
    stored = read_cache(key, _CACHED)
    try:
        prime_literals({str(p): (None if n is None else frozenset(n), b is True) for p, (n, b) in stored.items()})
    except (AttributeError, TypeError, ValueError):
        every = {pattern: verdict(pattern) for pattern in patterns}
        write_cache(key, {p: [None if n is None else sorted(n), b] for p, (n, b) in every.items()}, _CACHED)


def prime_literals(stored: dict[str, Verdict]) -> None:
    """Take verdicts from a cache, so that patterns need not be read again."""
    _PRIMED.update(stored)


def _pieces(text: str) -> list[str]:
    return [p for p in _LOST.split(text.lower()) if p.strip() and not _HEX_PART.fullmatch(p.strip())]


def _usable(need: Need) -> frozenset[str] | None:
    if need.exact is not None:
        pieces = _pieces(need.exact)
        return frozenset({max(pieces, key=len)}) if pieces else None
    return need.one_of


def _join(parts: list[Need]) -> Need:
    """Demands of a concatenation: fixed neighbours grow together, the most selective demand wins."""
    blind = all(p.blind for p in parts)
    if all(p.exact is not None for p in parts):
        return Need("".join(p.exact or "" for p in parts), None, blind)
    runs: list[Need] = []
    for part in parts:
        if part.exact is not None and runs and runs[-1].exact is not None:
            runs[-1] = Need(runs[-1].exact + part.exact, None)
        else:
            runs.append(part)
    usable = [u for r in runs if (u := _usable(r))]
    best = max(usable, key=lambda u: (min(map(len, u)), -len(u)), default=None)
    return Need(None, best, blind, tuple(demand for r in runs for demand in r.each()))


def _either(parts: list[Need]) -> Need:
    """Demands of an alternation: one of each branch's texts, nothing if a branch demands nothing."""
    if len(parts) == 1:
        return parts[0]
    blind = all(p.blind for p in parts)
    usable = [_usable(p) for p in parts]
    if any(u is None for u in usable):
        return Need(None, None, blind)
    return Need(None, frozenset().union(*(u for u in usable if u)), blind)


class _Parser:
    """A small reader of RE2 syntax; anything it does not know demands nothing and counts as depending on digits."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0

    def alternation(self) -> Need:
        branches: list[list[Need]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.text[self.at] == "|":
                self.at += 1
                branches.append([])
            else:
                branches[-1].append(self._repeated(self._atom()))
        return _either([_join(branch) for branch in branches])

    def _atom(self) -> Need:
        char = self.text[self.at]
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escape()
        self.at += 1
        if char == ".":
            return _NOTHING
        if char in "^$":
            return Need("", None)
        return Need(char, None, not char.isdigit())

    def _group(self) -> Need:
        found = _GROUP.match(self.text, self.at)
        self.at = found.end() if found else self.at + 1
        if found and found.group("end") == ")":
            return Need("", None)
        inner = self.alternation()
        self.at += 1
        return inner

    def _class(self) -> Need:
        start = self.at
        self.at += 1
        if self.text.startswith("^", self.at):
            self.at += 1
        first = self.at
        while self.at < len(self.text) and (self.text[self.at] != "]" or self.at == first):
            named = _CLASS_NAME.match(self.text, self.at)
            self.at = named.end() if named else self.at + (2 if self.text[self.at] == "\\" else 1)
        self.at += 1
        return Need(None, None, _class_is_blind(self.text[start : self.at]))

    def _escape(self) -> Need:
        char = self.text[self.at + 1 : self.at + 2]
        if char == "Q":
            end = self.text.find("\\E", self.at)
            end = len(self.text) if end < 0 else end
            quoted, self.at = self.text[self.at + 2 : end], end + 2
            return Need(quoted, None, not any(c.isdigit() for c in quoted))
        self.at += 2
        if char in _WIDE:
            return _NOTHING
        if char in "bBAzZ":
            return Need("", None)
        if char and not char.isalnum():
            return Need(char, None)
        if char in "xpP" and self.text.startswith("{", self.at):
            self.at = self.text.find("}", self.at) + 1 or len(self.text)
        elif char == "x":
            self.at += 2
        elif char in "pP":
            self.at += 1
        return Need(None, None, blind=False)

    def _repeated(self, atom: Need) -> Need:
        while self.at < len(self.text):
            char = self.text[self.at]
            counted = _REPEAT.match(self.text, self.at) if char == "{" else None
            if counted:
                self.at = counted.end()
                least = int(counted.group(1))
                atom = Need(None, _usable(atom) if least else None, blind=False)
            elif char in "*+?":
                self.at += 1
                atom = Need(None, _usable(atom) if char == "+" else None, atom.blind)
            else:
                break
        return atom


def _class_is_blind(text: str) -> bool:
    """Whether a class takes all digits or none."""
    pattern = compiled(text)
    return len({pattern.search(d) is not None for d in "0123456789"}) == 1
