"""What a condition came to, and Kleene's logic over it."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.frozen import frozen
from forensics.schema.span import Span

MAX_WITNESSES = 8


@frozen
class Outcome:
    """`value`: True, False or None (the log cannot tell). `witnesses` are the places it rests on, `why` says it in
    words, `settle` names the command or datum that would decide an unknown. `parts` explain a compound; `text` is
    the part of the condition that this outcome is about, in canonical form. `lapsed`: unknown only because this release
    does not print the message."""

    value: bool | None
    witnesses: tuple[Span, ...] = ()
    why: str = ""
    settle: str = ""
    parts: tuple[Outcome, ...] = ()
    text: str = ""
    lapsed: bool = False


def kleene_not(value: bool | None) -> bool | None:
    return None if value is None else not value


def kleene_and(values: Iterable[bool | None]) -> bool | None:
    """True of nothing."""
    held = list(values)
    return False if False in held else None if None in held else True


def kleene_or(values: Iterable[bool | None]) -> bool | None:
    """False of nothing."""
    held = list(values)
    return True if True in held else None if None in held else False


def some_of(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The first distinct witnesses; a generator is asked for no more than these."""
    found: dict[Span, None] = {}
    for span in spans:
        found[span] = None
        if len(found) == MAX_WITNESSES:
            break
    return tuple(found)
