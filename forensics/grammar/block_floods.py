"""Floods of device asserts: one line that was read stands for all lines of its shape."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from forensics.engine.mask import SHAPE_LENGTH
from forensics.engine.table import EventTable
from forensics.grammar.block_stream import MAX_FLOOD, Line, Stream


class Floods:
    """Streams of asserts. A failing kernel prints one line a thread, a hundred thousand at a time."""

    def __init__(self, table: EventTable) -> None:
        self._table = table
        self._streams: dict[str, Stream] = {}
        self._known: dict[int, Line] = {}
        self._starts: list[int] = table.rows_of_kind("server-args").tolist()
        self._bare = not any(info.wrappers for info in table.infos)
        """No wrapper tells writers apart."""

    def stream(self, line: Line) -> tuple[Stream, bool]:
        """The stream that an assert goes into, and whether it is a new one: one for one assertion until the next
        launch. The line is its last one, unless the stream is full."""
        name = _assertion(line.text)
        stream = self._streams.get(name)
        fresh = stream is None or self._launched(stream.last, line.row)
        if stream is None or fresh:
            stream = self._streams[name] = Stream("asserts", line.label, ranked_by="none")
            self._remember(line)
        _add(stream, line.row, line.text)
        return stream, fresh

    def again(self, rows: list[int], at: int, stops: list[int], shape: int) -> tuple[Stream, bool] | None:
        """Takes the rows from `at` to its stop, unread, where their shape was seen before in the same launch; says
        whether the stream has taken lines of them. None: the first has to be read."""
        known = self._known.get(shape)
        if known is None:
            return None
        stream = self._streams[_assertion(known.text)]
        if self._launched(stream.last, rows[at]):
            return None
        taken = rows[at : min(stops[at], at + max(0, MAX_FLOOD - stream.total))]
        stream.total += stops[at] - at
        if taken:
            stream.tokens += [("ASSERT", row, known.text) for row in taken]
            stream.last = taken[-1]
        return stream, bool(taken)

    def _launched(self, last: int, row: int) -> bool:
        """Whether a launch begins between two rows."""
        return bisect_right(self._starts, last) < bisect_left(self._starts, row)

    def _remember(self, line: Line) -> None:
        """Takes an assert as the pattern of its shape, where the assertion has no number that could differ."""
        shape = self._table.shapes[int(self._table.shape[line.row])]
        name = line.text.partition("Assertion ")[2]
        whole = len(shape.text) < SHAPE_LENGTH and shape.text.partition("Assertion ")[2] == name
        if name and whole and self._bare and not any(c.isdigit() for c in name):
            self._known[shape.id] = line


def _assertion(text: str) -> str:
    return text.partition("Assertion ")[2] or text


def _add(stream: Stream, row: int, text: str) -> None:
    stream.total += 1
    if stream.total <= MAX_FLOOD:
        stream.tokens.append(("ASSERT", row, text))
        stream.last = row
