"""Lines of free words, each of them new, read together: what `LineReader.read` says of each, without a call for each.

Only lines whose reading is plain to see are taken: one part, a header that was read before or none, a message without
anything that a shape folds but digits, blanks and bytes beyond ASCII, and nothing that a terminal of the line grammar
begins with or looks for. All others are left to the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import re2

from forensics.engine.apart import FREE, LOUD, PLAIN, words
from forensics.engine.mask import MAYBE_HEX, SHAPE_LENGTH
from forensics.engine.record import LineReader
from forensics.grammar.header import Head
from forensics.grammar.line import line_grammar
from forensics.grammar.terminals import latin1_options

Array = npt.NDArray[Any]
LONGEST = 512
"""No line taken is as long: a header of less than 100 bytes and a message that its shape holds whole."""
MAX_HEADS = 1024
FEW = 64
"""Lines of which each head is looked up by itself."""
_ODD = re2.compile(
    rb"[\x00-\x08\x0d-\x1b|\[\x7f]|[\t\x0b\x0c\x1c-\x1f\x85\xa0] |0[xX][0-9a-fA-F]|" + MAYBE_HEX.encode(),
    latin1_options(one_line=True),
)
"""What makes a message more than words: control codes, glue, bars, hex words, blanks of other kinds before blanks."""
_LEVELS = {word: len(word) for word in (b"DEBUG", b"INFO", b"WARNING", b"WARN", b"ERROR", b"CRITICAL")}
_LOWER, _UPPER, _DIGIT_OR_BAR = (np.zeros(256, bool) for _ in range(3))
_LOWER[97:123] = _UPPER[65:91] = _DIGIT_OR_BAR[[48, 124]] = True
_BEGINS = _LOWER | _UPPER
_BEGINS[128:] = True
_BEGINS[[133, 160]] = False
"""Bytes that a message may begin with; of the high ones all but blanks."""


@dataclass(slots=True)
class Words:
    """Lines as far as they are words: `head` numbers their heads (-1: not taken), `texts` and `place` are their
    shapes and the places of these in the order (apart.py); those of lines not taken mean nothing."""

    head: Array
    place: Array
    texts: list[bytes]

    def shape(self, index: int) -> str:
        """Text of the shape of a line."""
        return self.texts[index].decode("latin-1")


class Crowd:
    """Reads lines together; remembers the heads."""

    def __init__(self, reader: LineReader) -> None:
        self.heads: list[tuple[Head, str]] = []
        """Heads with the kind of free text behind them."""
        self._reader = reader
        self._numbers: dict[bytes, int] = {}
        self._telling = line_grammar().telling_lines()

    def read(self, lines: list[bytes]) -> Words:
        """Read masked lines."""
        count = len(lines)
        if self._reader.preamble or self._reader.forced is not None:
            return Words(np.full(count, -1), np.zeros(count, np.int64), lines)
        data, start, body, stop = self._bodies(lines)
        head = self._numbered(lines, data, start, body, stop)
        taken = head >= 0
        messages = [line[at:] for line, at in zip(lines, body.tolist(), strict=True)]
        text = b"\n".join(messages)
        ends = _ends(text)
        taken &= np.diff(ends, prepend=-1) <= SHAPE_LENGTH + 1
        taken[_hit(_ODD, text, ends)] = False
        text, ends = _folded(text)
        taken[_hit(self._telling, text, ends)] = False
        texts = text.split(b"\n")
        loud = np.array([kind in LOUD for _, kind in self.heads] + [False])[head]
        place = np.where(loud, PLAIN, FREE)
        if loud.any():
            quiet = np.flatnonzero(taken & ~loud)
            asked = b"\n".join([texts[i] for i in quiet.tolist()])
            place[quiet[_hit(words(), asked, _ends(asked))]] = PLAIN
        else:
            place[_hit(words(), text, ends)] = PLAIN
        place += np.fromiter(map(crc32, texts), np.int64, count)
        return Words(np.where(taken, head, -1), place, texts)

    def _bodies(self, lines: list[bytes]) -> tuple[Array, Array, Array, Array]:
        """The lines as one array and where each begins in it. Where the message of each begins, counted from there:
        behind the first bracket or at its start; -1: neither is sure. And where that ends which decides about its
        head."""
        data = np.frombuffer(b"\n".join(lines) + b"\n\n\n", np.uint8)
        end = np.flatnonzero(data[:-2] == 10)
        start = np.concatenate([[0], end[:-1] + 1])
        first = data[start]
        close = np.append(np.flatnonzero((data[:-1] == 93) & (data[1:] == 32)), len(data))
        close = close[np.searchsorted(close, start)]
        body = np.where((first == 91) & (close < np.minimum(end, start + 98)), close - start + 2, -1)
        # Whatever is a header or a wrapper and begins with a letter holds digits or a bar.
        bare = _LOWER[first] | _UPPER[first]
        if bare.any():
            marks = np.flatnonzero(_DIGIT_OR_BAR[data])
            bare &= np.searchsorted(marks, end) == np.searchsorted(marks, start)
        body = np.where(bare, 0, body)
        sure = body >= 0
        at = start + body
        one, two = data[at], data[at + 1]
        level = (first == 91) & _UPPER[one] & ~_LOWER[two]
        body[sure & ~_BEGINS[one] & ((one != 32) | ~_BEGINS[two])] = -1
        pick = np.flatnonzero(sure & level)
        if len(pick):
            body[pick] += self._levels(lines, data, pick, start[pick], body[pick])
        # A blank in front of the words is theirs, or the header's: that is decided for each of these heads anew.
        return data, start, body, np.where(body >= 0, body + (one == 32), 0)

    @staticmethod
    def _levels(lines: list[bytes], data: Array, pick: Array, start: Array, body: Array) -> Array:
        """What a level takes of the messages that begin with a word in upper case; less than 0: they are not sure."""
        at = start + body
        blanks = np.flatnonzero(data <= 32)
        first = np.searchsorted(blanks, at)
        stop, then = blanks[first], blanks[np.minimum(first + 1, len(blanks) - 1)]
        other = np.flatnonzero(~_LOWER[data])
        lower = other[np.minimum(np.searchsorted(other, stop + 1), len(other) - 1)] == then
        lower &= (data[stop] == 32) & (data[then] == 32) & (then > stop + 1)
        words = zip(pick.tolist(), body.tolist(), (stop - start).tolist(), strict=True)
        size = np.array([_LEVELS.get(lines[i][a:b], -LONGEST) for i, a, b in words], np.int64)
        return np.where(lower & (size > 0), size + 1, -LONGEST)

    def _numbered(self, lines: list[bytes], data: Array, start: Array, body: Array, stop: Array) -> Array:
        """Numbers of the heads before the messages at `body`, -1 where the reader sees another."""
        found = np.full(len(lines), -1, np.int64)
        left = np.flatnonzero(body >= 0)
        # In a flood most lines have one of a few heads.
        while len(left) >= FEW:
            index = int(left[0])
            same = _same_head(data, start[left], stop[left])
            found[left[same]] = self._number(lines[index], int(body[index]), int(stop[index]))
            left, before = left[~same], len(left)
            if len(left) > before // 2:
                break
        places = zip(left.tolist(), body[left].tolist(), stop[left].tolist(), strict=True)
        found[left] = [self._number(lines[index], at, end) for index, at, end in places]
        return found

    def _number(self, line: bytes, body: int, stop: int) -> int:
        """Number of the head of one line."""
        key = line[:stop]
        known = self._numbers.get(key)
        if known is None:
            known = -1
            if len(self._numbers) < MAX_HEADS:
                known = self._numbers[key] = self._new_head(line, body)
        return known

    def _new_head(self, line: bytes, body: int) -> int:
        head = self._reader.head(line.decode("latin-1"))
        if head.body_at != body or head.payload or head.partial:
            return -1
        if line[body - 2 : body] != b"] " and body and head.header != "H_SGLANG":
            return -1
        self.heads.append((head, self._reader.kind_of("text", head)))
        return len(self.heads) - 1


def _same_head(data: Array, start: Array, stop: Array) -> Array:
    """Which lines have the same bytes up to `stop` as the first of them."""
    size = int(stop[0])
    same: Array = stop == size
    if size < 8:
        for at in range(size):
            same &= data[start + at] == data[start[0] + at]
        return same
    words = np.ndarray((len(data) - 7,), "<u8", buffer=data, strides=(1,))
    for at in (*range(0, size - 8, 8), size - 8):
        word = words[np.minimum(start + at, len(words) - 1)]
        same &= word == word[0]
    return same


def _ends(text: bytes) -> Array:
    """Where the lines of a text end."""
    return np.append(np.flatnonzero(np.frombuffer(text, np.uint8) == 10), len(text))


def _hit(pattern: Any, text: bytes, ends: Array) -> Array:
    """Numbers of the lines that hold a match."""
    return np.searchsorted(ends, np.array([match.start() for match in pattern.finditer(text)], np.int64))


def _folded(text: bytes) -> tuple[bytes, Array]:
    """Shapes of messages without odd parts (one a line), and where they end: runs of digits, of blanks and of bytes
    beyond ASCII become one."""
    data = np.frombuffer(text, np.uint8)
    data = np.where(data >= 128, np.uint8(0xB7), data)
    same = data[1:] == data[:-1]
    same &= (data[1:] == 48) | (data[1:] == 32) | (data[1:] == 0xB7)
    data = data[np.append(True, ~same)] if same.any() else data
    return data.tobytes(), np.append(np.flatnonzero(data == 10), len(data))
