"""Which shapes are told apart where there are more than can be held: decided by each shape alone.

Every shape has a place in an order that its text gives: what the grammar names comes first, then free text of a
warning or with a word that rules and facts look for, then all other free text, in each of these by a checksum. Where
there are more than SHAPE_CAP, the first ones of each stay. So the choice does not depend on which part of an input
somebody reads, nor on what was read before, and a flood of free text pushes nothing out that matters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import re2

from forensics.grammar.line import line_grammar
from forensics.grammar.terminals import latin1_options

Array = npt.NDArray[Any]
Last = tuple[int, int, int]
"""The last places told apart: of what the grammar names, of free text with a word that matters, and without."""
SHAPE_CAP = 50_000
"""Shapes of an input that are told apart, whatever they are."""
PLAIN_CAP, FREE_CAP = 8192, 2048
"""Where there are more, shapes of free text with a word that matters, and without one, that are told apart."""
OTHER_SHAPE = "\u2026"
"""Text of the shape that all further shapes of a kind share."""
PLAIN, FREE = 1 << 32, 2 << 32
"""Where free text with a word that matters, and without one, begin in the order."""


LOUD = ("warning", "error")
"""Kinds of free text that matter whatever the words."""


@cache
def words() -> Any:
    """A pattern for the words that rules and facts need, and for what continues a line above. On several lines at
    once it finds in each what it finds in the line alone."""
    text = resources.files("forensics.data").joinpath("words.json").read_text(encoding="utf-8")
    found = "|".join(re2.escape(word) for word in json.loads(text))
    return re2.compile(rf"(?im)^[ \t^]|{found}".encode(), latin1_options(one_line=True))


def order(shape: tuple[str, str]) -> int:
    """Place of a shape (kind, text) in the order."""
    kind, message = shape
    text = message.encode("latin-1", "replace")
    if line_grammar().glance(message).kind != "text":
        return crc32(text)
    return (PLAIN if kind in LOUD or words().search(text) else FREE) + crc32(text)


def last_apart(places: Array, capped: bool = False) -> Last | None:
    """The last places that stay, given those of different shapes; None where all do. `capped`: of these shapes some
    are known to be missing because they were too many.

    Shapes that share a place stay or go together."""
    if len(places) <= SHAPE_CAP and not capped:
        return None
    ordered = np.sort(places)
    last = []
    for number, cap in enumerate((SHAPE_CAP, PLAIN_CAP, FREE_CAP)):
        group = ordered[np.searchsorted(ordered, number << 32) : np.searchsorted(ordered, number + 1 << 32)]
        smaller = group[: np.searchsorted(group, group[cap])] if len(group) > cap else ordered[:0]
        last.append((number + 1 << 32) - 1 if len(group) <= cap else int(smaller[-1]) if len(smaller) else -1)
    return last[0], last[1], last[2]


def beyond(places: Array, last: Last) -> Array:
    """Which places are those of shapes that are not told apart."""
    found: Array = places > np.array(last, np.int64)[places >> 32]
    return found


def least(lasts: Iterable[Last]) -> Last:
    """What stays where each of these does."""
    a, b, c = zip(*lasts, strict=True)
    return min(a), min(b), min(c)
