"""Frozen data to JSON and back without pickle: each class is a list of its number and its fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from forensics.grammar import condition_tree
from forensics.schema.finding import Condition, Deployment, Finding, FixStep, LogBlock, Shows
from forensics.schema.signal import Rule
from forensics.schema.span import Span

_TREE: list[type] = [
    condition_tree.Quantity,
    condition_tree.Text,
    condition_tree.FactRef,
    condition_tree.CaptureRef,
    condition_tree.Arithmetic,
    condition_tree.Quantifier,
    condition_tree.Seen,
    condition_tree.Absent,
    condition_tree.Before,
    condition_tree.Compare,
    condition_tree.Member,
    condition_tree.Search,
    condition_tree.Truth,
    condition_tree.Known,
    condition_tree.Count,
    condition_tree.Silence,
    condition_tree.Symptom,
    condition_tree.Reached,
    condition_tree.State,
    condition_tree.FirstFailureHas,
    condition_tree.Tried,
    condition_tree.Trend,
    condition_tree.Level,
    condition_tree.Not,
    condition_tree.And,
    condition_tree.Or,
]
CLASSES: list[Any] = [Span, Rule, Finding, Condition, FixStep, LogBlock, Shows, Deployment, *_TREE]
_NUMBER = {cls: i for i, cls in enumerate(CLASSES)}
_FIELDS: list[tuple[str, ...]] = [cls.__match_args__ for cls in CLASSES]
_MAKE: list[Callable[..., Any]] = list(CLASSES)
_TUPLE = -1


def encode(value: Any) -> Any:
    """JSON value of scalars, tuples and the known dataclasses."""
    if isinstance(value, tuple):
        return [_TUPLE, *map(encode, value)] if value else []
    number = _NUMBER.get(type(value))
    if number is None:
        return value
    return [number, *(encode(getattr(value, name)) for name in _FIELDS[number])]


def decode(value: Any) -> Any:
    """The value that `encode` was given. Anything malformed raises ValueError, TypeError or IndexError."""
    if not isinstance(value, list):
        return value
    if not value:
        return ()
    number = value[0]
    parts = [v if type(v) is not list else decode(v) if v else () for v in value[1:]]
    return tuple(parts) if number == _TUPLE else _MAKE[number](*parts)
