"""Conditions as a page writes them, each with its place."""

from __future__ import annotations

from forensics.errors import ConditionError
from forensics.grammar.conditions import parse_condition
from forensics.rulebook.located import Located, Reader
from forensics.schema.finding import Condition
from forensics.schema.span import Span


def read_conditions(reader: Reader, at: Located | None, strength: str) -> tuple[Condition, ...]:
    """Conditions of a list; those that do not parse are problems."""
    read = (read_condition(reader, item, strength) for item in reader.sequence(at))
    return tuple(condition for condition in read if condition is not None)


def read_condition(reader: Reader, item: Located, strength: str) -> Condition | None:
    """One condition with its place; None, and a problem, where it does not parse."""
    if isinstance(item.value, bool):
        reader.fault("C205", f"`{reader.text(item)}` is no condition", item, "name what the log must show")
        return None
    text = reader.text(item)
    if not text:
        return None
    line, column = item.at(0)
    span = Span(reader.path, line, column)
    try:
        parse_condition(text, span)
    except ConditionError as error:
        offset = error.span.column - column if error.span else 0
        place = item.at(offset) if "\n" not in text else (line, column)
        reader.add("C201", error.message, *place, error.hint)
        return None
    return Condition(text, strength, span)
