"""Inputs for a target: its seeds with a few mutations, drawn by hypothesis so that a failing input is made small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

MAX_BYTES = 8192
_MOST = 5


def inputs(seeds: Sequence[bytes], words: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Mutated seeds (mostly), texts made of the target's own words, and plain bytes."""
    joined = st.lists(st.sampled_from([*words, b"a", b" ", b"0"]), max_size=40).map(b"".join)
    return st.one_of(_mutated(tuple(seeds), tuple(words)), _mutated(tuple(seeds), tuple(words)), joined, st.binary())


@st.composite
def _mutated(draw: Any, seeds: tuple[bytes, ...], words: tuple[bytes, ...]) -> bytes:
    data = draw(st.sampled_from(seeds)) if seeds else b""
    for _ in range(draw(st.integers(0, _MOST))):
        data = _change(draw, data, seeds, words)
    return bytes(data[:MAX_BYTES])


def _change(draw: Any, data: bytes, seeds: tuple[bytes, ...], words: tuple[bytes, ...]) -> bytes:
    at = draw(st.integers(0, len(data)))
    match draw(st.integers(0, 6)):
        case 0:  # another word
            return data[:at] + draw(st.sampled_from(words or (b"x",))) + data[at:]
        case 1:  # one byte
            return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        case 2:  # a part is missing
            return data[:at] + data[at + draw(st.integers(1, 200)) :]
        case 3:  # a part comes again, many times
            part = data[at : at + draw(st.integers(1, 40))]
            return data[:at] + part * draw(st.integers(1, 60)) + data[at:]
        case 4:  # the end is missing
            return data[:at]
        case 5:  # the rest of another seed
            other = draw(st.sampled_from(seeds)) if seeds else b""
            return data[:at] + other[draw(st.integers(0, len(other))) :]
        case _:  # the same word again and again
            return data[:at] + draw(st.sampled_from(words or (b"(",))) * draw(st.integers(1, 200)) + data[at:]
