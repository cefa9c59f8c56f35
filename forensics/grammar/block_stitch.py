"""Streams: puts the lines of interleaved blocks back together, one stream a block, before they are parsed.

A continuation line belongs to the header line above it, but ranks write at the same time. Evidence, strongest first:
an own prefix on each line, the number of a native frame, a frame path that another traceback already showed, the
source line that names the next function, and adjacency.
"""

from __future__ import annotations

from collections.abc import Iterable

from forensics.engine.table import HEADED, EventTable
from forensics.grammar.block_floods import Floods
from forensics.grammar.block_lexer import (
    EXCEPTION,
    NATIVE,
    NATIVE_TRACE,
    PYSPY_FRAME,
    classify,
    frame_parts,
    is_exception,
    told,
)  # fmt: skip
from forensics.grammar.block_regions import alike, gap, neighbours, region, without_middles, writer
from forensics.grammar.block_stream import (
    BOUND_KINDS,
    IDLE_ROWS,
    JOINS,
    MAX_MESSAGE,
    MAX_OPEN,
    MAX_USAGE,
    OPENERS,
    SHELL_END,
    Line,
    Paths,
    Stream,
    announces,
    is_error,
    whole_dump,
)
from forensics.schema.rank import Rank

FAR = 400
"""Rows after which an unfinished block is not continued any more."""


class Stitcher:
    """Feeds rows in order; `finish` gives the streams in the order of their first rows."""

    def __init__(self, table: EventTable) -> None:
        self.table = table
        self.open: list[Stream] = []
        self.done: list[Stream] = []
        self.paths = Paths()
        self.label = ""
        self._currents: dict[str, Stream | None] = {}
        self._floods = Floods(table)

    @property
    def current(self) -> Stream | None:
        """The stream that the writer of this line fed last, None after a line that ended it."""
        return self._currents.get(self.label)

    @current.setter
    def current(self, stream: Stream | None) -> None:
        self._currents[self.label] = stream

    def run(self) -> list[Stream]:
        """All streams of the table, in file order."""
        previous = -2
        kept, gaps = without_middles(self.table, region(self.table))
        rows, shapes = kept.tolist(), self.table.shape[kept].tolist()
        headed = ((self.table.flags[kept] & HEADED) != 0).tolist()
        stops = alike(kept, self.table.shape[kept], gaps)
        ends = neighbours(kept)
        at = ahead = 0
        while at < len(rows):
            row = rows[at]
            if row in gaps and self.current is not None:
                self.current.last = row - 1
            elif row != previous + 1:
                self._currents[""] = None
            flood = self._floods.again(rows, at, stops, shapes[at])
            if flood is None:
                if at >= ahead:
                    ahead = ends[at]
                    self.table.look_ahead(row, rows[ahead - 1])
                self.feed(self._line(row, headed[at]))
                previous, at = row, at + 1
                continue
            stream, taken = flood
            if taken:
                self._currents[stream.label] = stream
            at = stops[at]
            previous = rows[at - 1]
        return sorted((s for s in (*self.done, *self.open) if s.tokens), key=lambda s: s.tokens[0][1])

    def _line(self, row: int, headed: bool) -> Line:
        (text, column), kind = self.table.message(row), self.table.kind(row)
        label, global_rank = writer(self.table, row) if column or len(self.table.lead) else ("", None)
        terminal, text, own = told(text, kind)
        global_rank = global_rank if own is None else own
        headed = headed or global_rank is not None
        key = "" if not headed else f"rank{global_rank}" if global_rank is not None else str(self.table.rank_of(row))
        return Line(row, terminal, text, kind, headed, label, key, global_rank)

    def feed(self, line: Line) -> None:
        """One more row."""
        self.label = line.label
        match line.terminal:
            case "HEAD" | "REMOTE":
                self._head(line)
            case "CAUSE" | "CONTEXT":
                self._chain(line)
            case "FRAME":
                self._frame(line)
            case "NATIVE":
                self._native(line)
            case "ASSERT":
                self._assert(line)
            case "SPLIT" if self.current and self.current.kind == "traceback":
                self._add(self.current, line, "SPLIT")
                self.current.phase = "head"
            case terminal if terminal in OPENERS:
                self._open_or_join(line)
            case _:
                self._text(line)

    def _add(self, stream: Stream, line: Line, terminal: str) -> None:
        stream.tokens.append((terminal, line.row, line.text))
        stream.last = line.row
        self.current = stream

    def _new(self, kind: str, line: Line, rank: Rank | None) -> Stream:
        stream = Stream(kind, line.label, line.key, rank, line.global_rank)
        if rank is None:
            stream.ranked_by = "none"
        self.open.append(stream)
        oldest = self.open[0]
        if len(self.open) > MAX_OPEN or (oldest.tokens and line.row - oldest.last > IDLE_ROWS):
            self.done.append(self.open.pop(0))
        return stream

    # -- tracebacks ---------------------------------------------------------------------------------------------

    def _head(self, line: Line) -> None:
        if self._native_trace(line):
            return
        linked = self._near(line, ("linked",))
        stream = self._inside(line)
        if linked:
            stream = self.current if self.current in linked else linked[-1]
        if stream is None:
            stream = self._new("traceback", line, self.table.rank_of(line.row))
            self._lead(stream, line)
        self._add(stream, line, line.terminal)
        stream.phase, stream.frames, stream.path = "head", [], 0

    def _native_trace(self, line: Line) -> bool:
        """Takes `TypeError: Traceback …` under frames as the exception line that it is."""
        stream = self.current
        if stream is None or stream.phase != "frames" or not NATIVE_TRACE.match(line.text):
            return False
        self._add(stream, line, "EXC")
        stream.phase, stream.more, stream.native_trace = "raised", 0, True
        return True

    def _inside(self, line: Line) -> Stream | None:
        """The stream whose middle a head is: the next part of an exception group, a quoted remote traceback, or the
        exception that carries a remote one."""
        stream = self.current
        if stream is None or stream.kind != "traceback" or line.headed:
            return None
        if stream.tokens[-1][0] == "SPLIT" or (line.terminal == "REMOTE" and stream.phase == "frames"):
            return stream
        quoted = stream.phase == "raised" and any("RemoteTraceback" in text for _, _, text in stream.tokens[-3:])
        return stream if quoted else None

    def _lead(self, stream: Stream, line: Line) -> None:
        """Takes in the record right above a bare head: it names the thing that failed, and the rank."""
        above = line.row - 1
        if line.headed or above < 0 or gap(self.table, above, line.row) > 1:
            return
        text, kind = self.table.text(above), self.table.kind(above)
        headed = bool(int(self.table.flags[above]) & HEADED)
        lead = classify(text, kind) == "LEAD"
        if lead or (headed and kind in ("error", "warning", "uvicorn", "message") and announces(text)):
            stream.tokens.append(("LEAD", above, text))
            if headed and self.table.rank_of(above) is not None:
                stream.rank, stream.ranked_by = self.table.rank_of(above), "header of the record above"

    def _chain(self, line: Line) -> None:
        ready = self._tracebacks(line, ("raised", "linked"))
        stream = self.current if self.current in ready else ready[-1] if ready else None
        if stream is None:
            stream = self._new("traceback", line, self.table.rank_of(line.row))
        elif len(ready) > 1 and stream is not self.current:
            stream.evidence.add("adjacency")
        self._add(stream, line, line.terminal)
        stream.phase = "linked"

    def _frame(self, line: Line) -> None:
        found = frame_parts(line.text)
        assert found is not None
        path = found[0], found[2]
        if self.current and self.current.kind == "faulthandler":
            self._add(self.current, line, "FRAME")
            return
        if self.current and self.current.native_trace and self.current.phase == "raised" and not line.headed:
            self._message(self.current, line)
            return
        stream = self._best(line, path)
        if stream is None:
            stream = self._new("traceback", line, self.table.rank_of(line.row))
        elif stream.phase == "raised":
            stream.frames, stream.path = [], 0
        self._add(stream, line, "FRAME")
        stream.phase = "frames"
        stream.frames.append(path)
        stream.path = self.paths.step(stream.path, path)

    def _best(self, line: Line, path: tuple[str, str]) -> Stream | None:
        """The open traceback that a frame continues, by the evidence of the module's docstring."""
        ready = self._near(line, ("head", "frames"))
        if len(ready) <= 1:
            return ready[0] if ready else None
        scored = [(self._score(s, path), i, s) for i, s in enumerate(ready)]
        (best, _, stream), second = max(scored)[0:3], sorted(scored)[-2][0]
        if best[0] == second[0]:
            stream.evidence.add("adjacency" if best[1] else "order")
        elif best[0] >= 4:
            stream.evidence.add("equal path sequence")
        else:
            stream.evidence.add("frame order")
        return stream

    def _score(self, stream: Stream, path: tuple[str, str]) -> tuple[int, int]:
        score = 4 if self.paths.knows(stream.path, path) else 0
        if path[1] and f"{path[1].rsplit('.', 1)[-1]}(" in stream.source:
            score += 3
        return score, int(stream is self.current)

    def _near(self, line: Line, phases: tuple[str, ...]) -> list[Stream]:
        """Those of the writer's open tracebacks that are in one of some phases, and not too far above."""
        return self._tracebacks(line, phases, line.row - FAR)

    def _tracebacks(self, line: Line, phases: tuple[str, ...], since: int = -1) -> list[Stream]:
        """Open tracebacks of the same writer; a line without a prefix fits any whose lines carry none of their own."""
        streams = [s for s in self.open if s.phase in phases and s.last >= since and s.kind == "traceback"]
        if line.headed:
            return [s for s in streams if s.label == line.label and s.key == line.key]
        return [s for s in streams if s.label == line.label and s.global_rank is None]

    # -- other blocks -------------------------------------------------------------------------------------------

    def _open_or_join(self, line: Line) -> None:
        stream = self.current
        kind = OPENERS[line.terminal]
        if line.terminal == "WATCH" and not is_error(line.text):
            self.current = None
            return
        joins = stream is not None and JOINS.get(line.terminal) == stream.kind and not whole_dump(stream)
        if line.terminal == "WHAT" and stream is None:
            stream = next((s for s in reversed(self.open) if s.kind == "terminate" and len(s.tokens) == 1), None)
            joins = stream is not None
        if stream is None or not joins:
            stream = self._new(kind, line, self.table.rank_of(line.row))
        self._add(stream, line, line.terminal)
        stream.number = -1

    def _native(self, line: Line) -> None:
        found = NATIVE.match(line.text)
        number = int(found.group(1)) if found else 0
        fits = [s for s in self.open if s.kind in ("watchdog", "terminate", "native") and s.number == number - 1
                and line.row - s.last <= FAR and s.label == line.label]  # fmt: skip
        stream = self.current if self.current in fits else fits[-1] if fits else None
        if stream is None and self.current and self.current.kind in ("watchdog", "terminate", "native"):
            stream = self.current
        if stream is None:
            stream = self._new("native", line, self.table.rank_of(line.row))
        elif len(fits) > 1:
            stream.evidence.add("frame order")
        self._add(stream, line, "NATIVE")
        stream.number = number

    def _assert(self, line: Line) -> None:
        """Folds a flood: one stream for one assertion until the next launch."""
        stream, fresh = self._floods.stream(line)
        if fresh:
            self.done.append(stream)
        if stream.last == line.row:
            self.current = stream

    # -- lines that only their neighbours explain ----------------------------------------------------------------

    def _text(self, line: Line) -> None:
        if not line.text.strip():
            return
        stream = self._addressee(line)
        if stream is None:
            self._alone(line)
            return
        if stream.kind != "traceback":
            self._body(stream, line)
        elif stream.phase in ("head", "frames"):
            self._in_frames(stream, line)
        elif stream.phase == "raised":
            twin = self._twin(stream, line)
            if twin is None:
                self._message(stream, line)
            else:
                self._in_frames(twin, line)
        else:
            self.current = None

    def _addressee(self, line: Line) -> Stream | None:
        if line.headed:
            ready = [s for s in self._near(line, ("frames",)) if s.tokens[-1][0] in ("FRAME", "SOURCE")]
            raised = self._near(line, ("raised",)) if line.global_rank is not None else []
            fits = bool(ready) and (line.text[:1].isspace() or is_exception(line.text, line.kind))
            if not fits and not raised:
                self.current = None
                return None
            return ready[-1] if fits else raised[-1]
        if (line.kind in BOUND_KINDS and not line.text[:1].isspace()) or SHELL_END.match(line.text):
            self.current = None
            return None
        if self.current is None and is_exception(line.text, line.kind):
            return max(self._near(line, ("frames",)), key=lambda s: (len(s.frames), -s.last), default=None)
        return self.current

    def _in_frames(self, stream: Stream, line: Line) -> None:
        if line.text[:1].isspace() or line.text.startswith("^"):
            if stream.tokens[-1][0] in ("FRAME", "SOURCE"):
                self._add(stream, line, "SOURCE")
        elif is_exception(line.text, line.kind):
            waiting = self._near(line, ("frames",))
            if len(waiting) > 1:
                stream = self._raiser(waiting, stream)
            self._add(stream, line, "EXC")
            stream.phase, stream.more = "raised", 0

    def _raiser(self, waiting: list[Stream], stream: Stream) -> Stream:
        """Which of several open tracebacks an exception line ends: the one whose path another one ended at."""
        ended = [s for s in waiting if not self.paths.goes_on(s.path)]
        chosen = stream if stream in ended or not ended else ended[0]
        chosen.evidence.add("frame order" if len(ended) == 1 else "adjacency")
        return chosen

    def _twin(self, stream: Stream, line: Line) -> Stream | None:
        """Another open traceback that failed in the same place, where a line repeats this one's exception."""
        if line.text[:1].isspace() or not is_exception(line.text, line.kind):
            return None
        raised = next((text for terminal, _, text in reversed(stream.tokens) if terminal == "EXC"), "")
        if raised.partition(":")[0] != line.text.partition(":")[0]:
            return None
        waiting = self._near(line, ("frames",))
        return next((s for s in waiting if s.path == stream.path), None)

    def _message(self, stream: Stream, line: Line) -> None:
        stream.more += 1
        if stream.more > MAX_MESSAGE or gap(self.table, stream.last, line.row) > 2:
            self.current = None
            return
        self._add(stream, line, "MORE")

    def _body(self, stream: Stream, line: Line) -> None:
        if stream.kind == "pyspy" and PYSPY_FRAME.match(line.text):
            self._add(stream, line, "PYFRAME")
        elif stream.kind == "terminate" and line.terminal == "ABORT":
            self._add(stream, line, "ABORT")
        elif stream.kind in ("asserts", "nccl", "advice"):
            self.current = None
            self._alone(line)
        elif stream.kind == "argparse" and stream.tokens[-1][0] == "USAGEERR":
            self.current = None
        else:
            stream.more += 1
            limit = MAX_USAGE if stream.kind == "argparse" else MAX_MESSAGE
            if stream.more <= limit and gap(self.table, stream.last, line.row) <= 2:
                self._add(stream, line, "MORE")
            else:
                self.current = None

    def _alone(self, line: Line) -> None:
        """An exception line without a traceback: still the only witness of a death."""
        found = EXCEPTION.match(line.text)
        if line.kind == "exception" and not line.headed and found and not found.group(1).endswith("Warning"):
            stream = self._new("traceback", line, None)
            self._add(stream, line, "EXC")
            stream.phase = "raised"


def streams(table: EventTable) -> Iterable[Stream]:
    """The streams of a table, in the order of their first rows."""
    return Stitcher(table).run()
