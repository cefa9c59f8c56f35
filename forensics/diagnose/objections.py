"""Grounds against a cause beside those for it: the same sentence under both signs says nothing without its reason."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.schema.report import GroundInfo, Where

ELSEWHERE = "this cause mostly shows in another way"
"""Why a sign that a cause may have speaks against it all the same."""


def told_apart(grounds: Sequence[GroundInfo]) -> list[GroundInfo]:
    """The grounds in their order; of one against, only what no ground for has said already, with that part's places."""
    said = {part for g in grounds if g.side == "for" for part in _parts(g.why)}
    places = {_key(w) for g in grounds if g.side == "for" for w in g.where}
    return [_against(g, said, places) if g.side == "against" and g.why else g for g in grounds]


def _against(ground: GroundInfo, said: set[str], places: set[tuple[str, int, int]]) -> GroundInfo:
    parts = _parts(ground.why)
    own = [p for p in parts if p not in said]
    if len(own) == len(parts):
        return ground
    if not own:
        return ground.model_copy(update={"why": f"{ground.why}: {ELSEWHERE}"})
    where = [w for w in ground.where if _key(w) not in places] or ground.where
    return ground.model_copy(update={"why": "; ".join(own), "where": where})


def _parts(why: str) -> list[str]:
    return why.split("; ")


def _key(where: Where) -> tuple[str, int, int]:
    return where.path, where.line, where.column
