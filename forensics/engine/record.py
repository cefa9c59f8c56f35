"""What one mask stands for: the plan that numpy replays on every line of that mask."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import NamedTuple

from forensics.engine.mask import fold, strip_ansi
from forensics.frozen import frozen
from forensics.grammar.header import Head, Stamp, headers
from forensics.grammar.line import HOT, FieldPlace, LineParse, line_grammar
from forensics.grammar.payload import unescape

ROW, DECODE, PREFILL, ACCESS, BLANK = range(5)
CLASS_OF = {"decode-batch": DECODE, "prefill-batch": PREFILL, "access": ACCESS, "blank": BLANK}
_GLUE = re.compile(
    r"(?<=[^\s|])(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z][A-Z_]*\d+)*\] )"
    r"|(?<=\S)(?=\[rank\d+\]:\[[EWI]\d{4} )|(?<=it/s\])(?=[A-Za-z ])|(?<=s/it\])(?=[A-Za-z ])|(?<!\r)\r+(?=[^\r])",
    re.ASCII,
)
_NEAR_GLUE = re.compile(r"\[(?:\d{4}-|rank)|it/s\]|s/it\]|\r", re.ASCII)
"""Where a glue may be: what begins there, or ends there with a bracket. Quickly found, as it looks at what it takes."""
_RUN = re.compile("0+")
_NEWLINE = re.compile(r"(?:(?<=[^\\])|(?<=[^\\]\\\\))(?:\\r)?\\n")
"""A newline in a JSON string: what a collector put into one record."""
_FOLDED = re.compile(r"Traceback \(most recent call last\):(\\n|#000)")
"""A trace that was written into one line, with its newlines as `\\n` or in syslog's octal (`#012`, masked)."""
MAX_PARTS = 64
MAX_FOLDED = 400
"""Lines of one record that are told apart; the last one holds what is left."""
PARSES_KEPT = 50_000
"""Shapes whose parse is remembered at once."""
MAX_HOT = 50_000
"""Shapes of batch lines whose numbers are looked for; of further ones only the kind is told."""


class Slot(NamedTuple):
    """Where a number stands in a line: end and width of its whole part, width of its fraction; `slow` ones (long,
    with an exponent) are read one by one from [start, stop). `column` indexes the columns of the kind."""

    column: int
    start: int
    end: int
    width: int
    fraction: int
    negative: bool = False
    slow: bool = False
    constant: float | None = None


@frozen
class Spot:
    """Which digit runs of a shape are a column's number: the first and the last. Of all lines of a shape the same runs
    are, so that a new mask needs no search."""

    column: int
    first: int = 0
    last: int = 0
    simple: bool = True
    negative: bool = False
    from_end: bool = False
    constant: float | None = None


@frozen
class Part:
    """One writer's share of a raw line: [start, stop) in it, its header, kind, shape and slots."""

    start: int
    stop: int
    head: Head
    kind: str
    shape: tuple[str, str]
    slots: tuple[Slot, ...] = ()


@dataclass(slots=True)
class Columns:
    """Column names of one hot kind; grows with labels that nobody knew, up to a bound."""

    names: dict[str, int] = field(default_factory=dict)
    limit: int = 24

    def index(self, label: str) -> int | None:
        name = column_name(label)
        if name not in self.names and len(self.names) >= self.limit:
            return None
        return self.names.setdefault(name, len(self.names))


_KNOWN = {
    "#running-req": "running",
    "#queue-req": "queue",
    "token usage": "token_usage",
    "gen throughput (token/s)": "throughput",
    "input throughput (token/s)": "input_throughput",
    "accept len": "accept_len",
    "accept rate": "accept_rate",
    "#cached-token": "cached_tokens",
    "#new-token": "new_tokens",
    "#new-seq": "new_seqs",
    "cuda graph": "cuda_graph",
    "cpu graph": "cuda_graph",
    "npu graph": "cuda_graph",
    "#token": "tokens",
    "#full token": "tokens",
    "full token usage": "token_usage",
    "swa token usage": "swa_token_usage",
    "#swa token": "swa_tokens",
    "mamba usage": "mamba_usage",
    "mamba num": "mamba_num",
    "cache hit rate": "cache_hit_rate",
    "pre-allocated usage": "preallocated_usage",
    "#prealloc-req": "prealloc",
    "#transfer-req": "transfer",
    "#retracted-req": "retracted",
    "#pending-token": "pending_tokens",
    "#unbootstrapped-req": "unbootstrapped",
    "#bootstrap-req": "bootstrap",
    "#inflight-req": "inflight",
    "#transferring-req": "transferring",
    "time": "time_s",
    "#token-usage": "token_usage",
    "#pending-req": "pending",
}


def column_name(label: str) -> str:
    """Name of a label's column; an unknown label gives a plain name made from its words."""
    return _KNOWN.get(label) or re.sub(r"\W+", "_", label).strip("_").lower() or "value"


class LineReader:
    """Reads masked lines with the grammars and remembers every shape. One per source and process."""

    def __init__(self, preamble: str | None = None, forced: str | None = None) -> None:
        self.preamble = preamble
        self.forced = forced
        self.columns = {"decode-batch": Columns(), "prefill-batch": Columns(), "access": Columns({"status": 0}, 1)}
        self.parses: dict[str, LineParse] = {}
        self._hot_parses = 0
        self._heads: dict[str, Head] = {}
        self._spots: dict[tuple[str, str], tuple[int, tuple[Spot, ...]]] = {}
        self._headers = headers()
        self._grammar = line_grammar()

    def read(self, masked: str) -> tuple[Part, ...]:
        """All parts of one raw line (one, unless writers were glued or `\\r` bars share the line)."""
        head = self.head(masked)
        stop = len(masked)
        while stop and masked[stop - 1] == "\r":
            stop -= 1
        if head.payload:
            return self._payload_parts(masked, head, stop)
        folded = _FOLDED.search(masked[:65536], head.body_at)
        if folded is not None:
            return self._folded_parts(masked, head, stop, folded[1])
        cuts = self._cuts(masked, head.body_at, stop)
        if len(cuts) == 1:
            return (self._part(masked, 0, stop, head),)
        parts = [self._part(masked, 0, cuts[0], head)]
        for at, end in pairwise(cuts):
            while masked[at] == "\r" and at < end - 1:
                at += 1
            parts.append(self._part(masked, at, end, self._headers.plain(masked, at, None, self.forced)))
        return tuple(p for i, p in enumerate(parts) if i == 0 or p.kind != "blank")

    def head(self, masked: str) -> Head:
        """Wrapper and header; plain bracket headers repeat so often that they are remembered by their text.

        What follows the bracket can be part of the header (` WARNING file.py:12: `), so that only headers that end
        with the bracket are remembered, and only for messages that do not start with an upper-case word."""
        close = masked.find("] ", 0, 100) + 2
        if close < 3 or masked[0] != "[" or self.preamble or self.forced is not None:
            return self._headers.split(masked, self.preamble, self.forced)
        key = masked[:close]
        after = masked[close : close + 2]
        plain = after[:1].isalpha() and not after.isupper()
        found = self._heads.get(key) if plain else None
        if found is None:
            found = self._headers.split(masked, self.preamble, self.forced)
            if plain and found.body_at == close and len(self._heads) < 4096:
                self._heads[key] = found
        return found

    def message_of(self, masked: str) -> str:
        """What one line adds to a message that was begun before it."""
        head = self._headers.split(masked, self.preamble, self.forced)
        return masked[head.body_at : head.end]

    def is_partial(self, masked: str) -> bool:
        """Whether a message goes on after this line."""
        return self._headers.split(masked, self.preamble, self.forced).partial

    def joined(self, first: str, rest: list[str]) -> str:
        """A first partial line with what later lines add to its message (bounded)."""
        head = self._headers.split(first, self.preamble, self.forced)
        end = len(first) if head.end is None else head.end
        return first[:end] + "".join(rest)[:65536] + first[end:]

    def _cuts(self, masked: str, body: int, stop: int) -> list[int]:
        if "\r" not in masked and "[" not in masked[body + 1 :]:
            return [stop]
        window = masked[:65536]
        if fold(masked[body : body + 120])[2]:
            return [stop]
        return [*glue(window, body, stop), stop]

    def _part(self, masked: str, start: int, stop: int, head: Head) -> Part:
        body, places = strip_ansi(masked[head.body_at : stop])
        return self._classified(body, places, head.body_at, start, stop, head)

    def _payload_parts(self, masked: str, head: Head, stop: int) -> tuple[Part, ...]:
        """A JSON line: one part for each line of its message. The first has the whole line as its share, so that it
        is still JSON; the others have what stands between two newlines."""
        end = stop if head.end is None else head.end
        breaks = [m.span() for m in islice(_NEWLINE.finditer(masked, head.body_at, end), MAX_FOLDED)]
        if not breaks:
            return (self._payload_part(masked, head, stop),)
        first = self._payload_part(masked, replace(head, end=breaks[0][0]), stop)
        parts = [Part(first.start, first.stop, head, first.kind, first.shape, first.slots)]
        for (_, at), (until, _) in pairwise([*breaks, (end, end)]):
            inner = self._headers.plain(masked[:until], at, None, self.forced)
            head_here = replace(inner, wrappers=("W_ESCAPED", *inner.wrappers), end=until, payload=True)
            found = self._payload_part(masked, head_here, until)
            parts.append(Part(at, until, head_here, found.kind, found.shape, found.slots))
        return tuple(parts)

    def _folded_parts(self, masked: str, head: Head, stop: int, newline: str) -> tuple[Part, ...]:
        """A line that holds a whole trace: one part for each of its lines."""
        cuts = [head.body_at]
        while len(cuts) < MAX_FOLDED and (at := masked.find(newline, cuts[-1], stop)) >= 0:
            cuts.append(at + len(newline))
        parts = []
        for number, (at, after) in enumerate(pairwise([*cuts, stop + len(newline)])):
            until = after - len(newline)
            here = self._headers.plain(masked[:until], at, None, self.forced) if number else head
            parts.append(self._part(masked, at if number else 0, until, here))
        return tuple(parts)

    def _payload_part(self, masked: str, head: Head, stop: int) -> Part:
        inner, places = unescape(masked[head.body_at : head.end])
        if "\x1b" in inner:
            clean, kept = strip_ansi(inner)
            places = [places[k] for k in kept] if kept is not None else places
            inner = clean
        # JSON text may hold characters beyond latin-1; the grammar sees one stand-in each.
        inner = inner.encode("latin-1", "replace").decode("latin-1")
        return self._classified(inner.rstrip("\r\n"), places, head.body_at, 0, stop, head)

    def _classified(self, body: str, places: list[int] | None, base: int, start: int, stop: int, head: Head) -> Part:
        shape, _, opaque = fold(body)
        parse = self.parses.get(shape)
        if parse is None:
            parse = self._parse(shape)
        kind = self.kind_of(parse.kind, head)
        slots: tuple[Slot, ...] = ()
        if kind in HOT and not opaque:
            slots = self._slots(kind, body, places, base, shape, parse)
        return Part(start, stop, head, kind, (kind, shape), slots)

    @staticmethod
    def kind_of(kind: str, head: Head) -> str:
        """The grammar's kind, or what a header makes of a line that the grammar cannot name."""
        if kind == "text":
            return head.level or ("message" if head.header or head.stamp else "text")
        if kind in ("frame-source", "compile", "env-report", "shell") and head.header and head.header != "H_BRACKETS":
            return head.level or ("message" if kind != "compile" else kind)
        return kind

    def _parse(self, shape: str) -> LineParse:
        if len(self.parses) >= PARSES_KEPT:
            self.parses.clear()
        whole = self._hot_parses < MAX_HOT or not shape.strip()
        parse = self.parses[shape] = self._grammar.read(shape) if whole else self._grammar.glance(shape)
        self._hot_parses += parse.kind in HOT
        return parse

    def _slots(
        self, kind: str, body: str, places: list[int] | None, base: int, shape: str, parse: LineParse
    ) -> tuple[Slot, ...]:
        known = self._spots.get((kind, shape))
        if known is None:
            if len(self._spots) >= PARSES_KEPT:
                self._spots.clear()
            known = self._spots[kind, shape] = self._find_spots(kind, shape, parse.fields)
        count, spots = known
        runs = [m.span() for m in _RUN.finditer(body)]
        if len(runs) != count and kind != "access":
            count, spots = self._find_spots(kind, body, self._grammar.parse(body).fields)
        return tuple(_slot(spot, runs, len(runs) - count, places, base) for spot in spots)

    def _find_spots(self, kind: str, text: str, fields: Iterable[FieldPlace]) -> tuple[int, tuple[Spot, ...]]:
        """Number of digit runs in a text, and which of them are the numbers of its fields."""
        runs = [m.start() for m in _RUN.finditer(text)]
        spots = []
        for place in fields:
            column = self.columns[kind].index(place.label)
            if column is None:
                continue
            if place.constant is not None:
                spots.append(Spot(column, constant=place.constant))
                continue
            inside = [i for i, at in enumerate(runs) if place.start <= at < place.end]
            if inside:
                token = text[place.start : place.end]
                simple = "e" not in token and "E" not in token and len(inside) <= 2
                # A status is counted from the end: hex words before it would shift its index.
                spots.append(
                    Spot(column, inside[0], inside[-1], simple, token.startswith("-"), place.label == "status")
                )
        return len(runs), tuple(spots)


def glue(text: str, body: int, stop: int) -> list[int]:
    """Where further writers begin between `body` and `stop`, the first MAX_PARTS of these places."""
    found: list[int] = []
    for near in _NEAR_GLUE.finditer(text, body):
        at = near.end() if near[0][-1] == "]" else near.start()
        if (found[-1] if found else body) < at < stop and _GLUE.match(text, at):
            found.append(at)
            if len(found) == MAX_PARTS:
                break
    return found


def _slot(spot: Spot, runs: list[tuple[int, int]], shift: int, places: list[int] | None, base: int) -> Slot:
    """A spot's place in one line, whose message begins at `base` and has the digit runs `runs`, `shift` more than the
    shape; `places` gives the offset of each character of the message where codes between them were taken out."""
    if spot.constant is not None:
        return Slot(spot.column, 0, 0, 0, 0, constant=spot.constant)
    shift = shift if spot.from_end else 0
    (start, stop), (low, high) = runs[spot.first + shift], runs[spot.last + shift]
    width, fraction = stop - start, high - low if spot.last == spot.first + 1 else 0
    start -= spot.negative
    cut = places is not None and places[high - 1] - places[start] != high - 1 - start  # a code inside the number
    slow = cut or not spot.simple or width > 16 or fraction > 8
    if slow:
        stop, width, fraction = high, 0, 0
    if places is not None:
        start, stop = places[start], places[stop - 1] + 1
    return Slot(spot.column, base + start, base + stop, width, fraction, spot.negative, slow)


def stamp_of(head: Head, use_outer: bool) -> Stamp | None:
    """The timestamp that counts: the writer's own, else (where the file has no inner ones) the wrapper's."""
    return head.stamp or (head.outer_stamp if use_outer else None)
