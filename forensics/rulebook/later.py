"""Matches whose captures are read off their line when somebody asks for them: most are never asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forensics.schema.facts import Value
from forensics.schema.rank import Rank
from forensics.schema.signal import Match

Captures = tuple[tuple[str, Value], ...]
Reader = tuple[Callable[[int, Any], Captures], object]
_row, _rank, _captures, _count, _block = (
    Match.__dict__[name] for name in ("row", "rank", "captures", "count", "block")
)
"""The places of the fields: the class is frozen, and one of its fields is no plain field here."""


class LaterMatch(Match):
    """A match like any other; `later` holds what gives its captures by its row, and what that needs besides. As a
    message to another process it is a plain match."""

    __slots__ = ("_later",)

    def __init__(self, row: int, rank: Rank | None, count: int, block: int | None, later: Reader) -> None:
        _row.__set__(self, row)
        _rank.__set__(self, rank)
        _count.__set__(self, count)
        _block.__set__(self, block)
        _later.__set__(self, later)

    @property
    def captures(self) -> Captures:
        later: Reader | None = _later.__get__(self)
        if later is not None:
            _captures.__set__(self, later[0](self.row, later[1]))
            _later.__set__(self, None)
        found: Captures = _captures.__get__(self)
        return found

    def plain(self) -> Match:
        """The same with its captures read."""
        return Match(self.row, self.rank, self.captures, self.count, self.block)

    def __eq__(self, other: object) -> bool:
        return self.plain() == (other.plain() if isinstance(other, LaterMatch) else other)

    def __hash__(self) -> int:
        return hash(self.plain())

    def __repr__(self) -> str:
        return repr(self.plain())

    def __reduce__(self) -> tuple[type[Match], tuple[object, ...]]:
        return Match, (self.row, self.rank, self.captures, self.count, self.block)


_later = LaterMatch.__dict__["_later"]
