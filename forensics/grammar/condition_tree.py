"""The tree of a condition: what docs/conditions.md describes, as frozen data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from typing import TypeAlias

from forensics.frozen import frozen

Place: TypeAlias = tuple[int, int]
"""Start and end offset in the condition's text (0-based, code points)."""


@frozen
class Quantity:
    """A number, scaled to its base unit (bytes, seconds); `text` is as written."""

    value: float
    text: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Text:
    """A word or a quoted text."""

    text: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class FactRef:
    """A fact by its dotted name."""

    name: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class CaptureRef:
    """A capture of a signal's match; inside a rule's `where` the signal is the empty text."""

    signal: str
    capture: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Arithmetic:
    """`op` is one of + - * /."""

    op: str
    left: Term
    right: Term
    place: Place = field(default=(0, 0), compare=False, repr=False)


Term: TypeAlias = "Quantity | Text | FactRef | CaptureRef | Arithmetic"


@frozen
class Quantifier:
    """`kind`: every, some, one, failing, or named (then `rank` is its text)."""

    kind: str
    rank: str = ""


@frozen
class Seen:
    """The signal was seen (on these ranks)."""

    signal: str
    on: Quantifier | None = None
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Absent:
    """The signal is missing where the log would show it."""

    signal: str
    on: Quantifier | None = None
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Before:
    """The first match of one side stands before the first of the other; `on` binds ranked sides."""

    first: Seen
    second: Seen
    on: Quantifier | None = None
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Compare:
    """`op` is one of = != < <= > >=."""

    op: str
    left: Term
    right: Term
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Member:
    """The fact has one of the values (none of them, when negated)."""

    left: Term
    values: tuple[Term, ...]
    negated: bool = False
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Search:
    """RE2 search in a fact's text."""

    left: Term
    pattern: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Truth:
    """The fact is true, or set."""

    name: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Known:
    """The log states the fact."""

    name: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Count:
    """Number of matches (inside a window of seconds)."""

    signal: str
    op: str
    number: Quantity
    within: Quantity | None = None
    on: Quantifier | None = None
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Silence:
    """A time without lines."""

    op: str
    length: Quantity
    on: Quantifier | None = None
    before: str = ""
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Symptom:
    name: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Reached:
    """Start-up got at least to this stage."""

    stage: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class State:
    """`subject` is stage (of the first failure) or ended; the value is (not, when negated) among `values`."""

    subject: str
    values: tuple[str, ...]
    negated: bool = False
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class FirstFailureHas:
    signal: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Tried:
    """An earlier launch had the setting. `outcome`: same (it failed the same way), none (it did not fail) or empty."""

    name: str
    value: str | None
    outcome: str = ""
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Trend:
    """A batch metric falls or rises over the serving time."""

    series: str
    direction: str
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Level:
    """Median of a batch metric, compared."""

    series: str
    op: str
    number: Quantity
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Not:
    part: Node
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class And:
    parts: tuple[Node, ...]
    place: Place = field(default=(0, 0), compare=False, repr=False)


@frozen
class Or:
    parts: tuple[Node, ...]
    place: Place = field(default=(0, 0), compare=False, repr=False)


Node: TypeAlias = (
    "Seen | Absent | Before | Compare | Member | Search | Truth | Known | Count | Silence | Symptom | Reached | State"
    " | FirstFailureHas | Tried | Trend | Level | Not | And | Or"
)


@frozen
class Names:
    """What a condition refers to, each name with its place: signals, captures (`signal.capture`), facts, and flags or
    environment variables of `tried`."""

    signals: tuple[tuple[str, Place], ...]
    captures: tuple[tuple[str, str, Place], ...]
    facts: tuple[tuple[str, Place], ...]
    flags: tuple[tuple[str, Place], ...]


def walk(node: object) -> Iterator[object]:
    """The node and everything below it, in order."""
    yield node
    if isinstance(node, tuple):
        for item in node:
            yield from walk(item)
    elif hasattr(node, "__dataclass_fields__"):
        for part in fields(node):  # type: ignore[arg-type]
            value = getattr(node, part.name)
            if part.name != "place" and (isinstance(value, tuple) or hasattr(value, "__dataclass_fields__")):
                for below in walk(value):
                    if not isinstance(below, tuple):
                        yield below


def names(node: Node) -> Names:
    """Signals, captures, facts and flags that the condition uses."""
    signals: list[tuple[str, Place]] = []
    captures: list[tuple[str, str, Place]] = []
    facts: list[tuple[str, Place]] = []
    flags: list[tuple[str, Place]] = []
    for part in walk(node):
        if isinstance(part, (Seen, Absent, Count, FirstFailureHas)):
            signals.append((part.signal, part.place))
        elif isinstance(part, Silence) and part.before:
            signals.append((part.before, part.place))
        elif isinstance(part, CaptureRef):
            captures.append((part.signal, part.capture, part.place))
            signals.append((part.signal, part.place))
        elif isinstance(part, (FactRef, Truth, Known)):
            facts.append((part.name, part.place))
        elif isinstance(part, Tried):
            flags.append((part.name, part.place))
    return Names(tuple(dict.fromkeys(signals)), tuple(captures), tuple(facts), tuple(flags))
