"""What all pieces of the report have: copies with changes, plain data, and pydantic where their types matter.

Pydantic checks a report that comes from outside and writes the JSON Schema. Building a report needs neither, and
loading pydantic and a model for each class takes as long as reading megabytes of log. So the pieces are frozen classes,
and pydantic learns of them from their annotations when it is first asked. The methods are named as pydantic's.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class Part:
    """A piece of the report, or the report itself."""

    __slots__: tuple[str, ...] = ()
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - read by pydantic

    @classmethod
    def of_values(cls, values: Mapping[str, Any]) -> Self:
        """The piece with these fields, from callers whose words the contract knows as a closed set."""
        return cls(**values)

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """The same piece with some fields changed."""
        return type(self)(**{name: getattr(self, name) for name in self.__slots__} | dict(update or {}))

    def model_dump(self) -> dict[str, Any]:
        """Dictionaries, lists and plain values, in the contract's order: what the JSON text holds."""
        return {name: plain(getattr(self, name)) for name in self.__slots__}

    def model_dump_json(self, *, indent: int | None = None) -> str:
        """JSON text on one line, or indented."""
        return _adapter(type(self)).dump_json(self, indent=indent).decode()

    @classmethod
    def model_validate(cls, data: Any) -> Self:
        """A piece from plain data. Raises pydantic.ValidationError where they do not keep to the contract."""
        piece: Self = _adapter(cls).validate_python(data)
        return piece

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Self:
        """A piece from JSON text. Raises pydantic.ValidationError."""
        piece: Self = _adapter(cls).validate_json(text)
        return piece

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The contract as a JSON Schema."""
        return _adapter(cls).json_schema()


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(cls: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    if cls not in _adapters:
        _adapters[cls] = TypeAdapter(cls)
    return _adapters[cls]


def plain(value: Any) -> Any:
    """What JSON can hold of a value: numbers that are none (infinite, not a number) become null, as with pydantic."""
    if isinstance(value, Part):
        return value.model_dump()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return None if isinstance(value, float) and not isfinite(value) else value
