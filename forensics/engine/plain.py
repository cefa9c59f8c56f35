"""Lines of free text whose shapes are not told apart (apart.py): what of them stays as rows. The rest is counted.

The input is cut into stretches at fixed offsets. Of each stretch the first and the last line of every rank and kind
stay; where there are many ranks, they share. What is taken out of a part of the lines would be taken out of all of
them: so it may be done early, on parts, and again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forensics.engine.apart import OTHER_SHAPE
from forensics.engine.thin import bucket_bytes
from forensics.grammar.line import LEVELS

Array = npt.NDArray[Any]
STRETCH = 1 << 18
"""Bytes of a stretch, at least."""
SHARES = 16
"""Ranks of one stretch that are told apart."""
KINDS = ("text", "message", *LEVELS)


def plain_kind(shape: tuple[str, str]) -> int:
    """Number of the kind of free text whose shapes are not told apart; -1 for all other shapes."""
    return KINDS.index(shape[0]) if shape[1] == OTHER_SHAPE and shape[0] in KINDS else -1


def rank_share(numbers: tuple[int, ...]) -> int:
    """Which share of the ranks one with these numbers on its axes belongs to."""
    key = 0
    for number in numbers[-3:]:
        key = key * 8 + number
    return key % SHARES


def staying(offset: Array, share: Array, kind: Array, size: int) -> Array | None:
    """Which rows stay, ascending, of those with these offsets, shares of the ranks (-1: none) and kinds (`plain_kind`);
    None: all. `size` is that of the whole input."""
    pick = np.flatnonzero(kind >= 0)
    if len(pick) < 2:
        return None
    stretch = offset[pick] // max(STRETCH, bucket_bytes(size))
    stretch -= stretch.min()
    group = (stretch * len(KINDS) + kind[pick]) * (SHARES + 1) + share[pick] + 1
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    stay = kind < 0
    stay[pick[order[last]]] = stay[pick[order[np.append(True, last[:-1])]]] = True
    return np.flatnonzero(stay)
