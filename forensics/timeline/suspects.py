"""Who may be guilty: ranks that report, and ranks that are missing or deviate."""

from __future__ import annotations

from forensics.engine.table import EventTable
from forensics.schema.block import Block
from forensics.schema.launch import Launch
from forensics.schema.rank import Rank
from forensics.timeline.episodes import Episode
from forensics.timeline.faults import Fault


def with_divergence(table: EventTable, blocks: tuple[Block, ...], launch: Launch, found: list[Fault]) -> list[Fault]:
    return found


def reporters(episode: Episode, others: list[Episode], launch: Launch) -> tuple[Rank, ...]:
    ranks = list(episode.ranks)
    for other in others:
        if other.first.head >= episode.first.head:
            ranks += [r for f in other.faults for r in f.ranks]
    return tuple(dict.fromkeys(ranks))[:64]


def suspects(table: EventTable, launch: Launch, episode: Episode, others: list[Episode]) -> tuple[tuple[Rank, ...], str]:
    return (), ""
