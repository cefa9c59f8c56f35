"""Ranks: an open set of axes, because sglang keeps adding new ones."""

from __future__ import annotations

import re

from forensics.frozen import frozen

_AXIS = re.compile(r"([A-Z][A-Z_]{0,30}?)(\d{1,9})")


@frozen
class Rank:
    """One process of a server, named by its axes in the order of the log's own prefix.

    `axes` holds pairs such as `(("DP", 0), ("TP", 3), ("EP", 3))`. `node` names the host or node rank where the
    input tells it (one file per node), else None. `str(rank)` is the prefix text, e.g. `DP0 TP3 EP3`.
    """

    axes: tuple[tuple[str, int], ...]
    node: str | None = None

    @classmethod
    def parse(cls, text: str, node: str | None = None) -> Rank | None:
        """Read a prefix such as `DP0 PP1 TP3`; None where the text holds no axis or anything else besides."""
        pairs = [_AXIS.fullmatch(word) for word in text.split()]
        if not pairs or any(match is None for match in pairs):
            return None
        return cls(tuple((m.group(1), int(m.group(2))) for m in pairs if m), node)

    def axis(self, name: str) -> int | None:
        """The index on axis `name` (`TP`, `DP`, `PP`, `EP`, `ATTN_CP`, `MOE_DP` …), or None."""
        return dict(self.axes).get(name)

    def __str__(self) -> str:
        text = " ".join(f"{axis}{index}" for axis, index in self.axes)
        return f"{self.node}/{text}" if self.node else text
