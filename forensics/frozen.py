"""Frozen data classes that are cheap to define: what a class needs is written when it is first used.

`dataclass(frozen=True, slots=True)` compiles six functions for each class while its module is imported, a quarter of a
millisecond. With all the classes of this program that took as long as reading a log of megabytes, and most of them play
no part in a run. Here only the slots are made at once. `dataclasses.replace`, `fields` and `asdict` work as with the
standard library's classes, and so do pickling, comparing and hashing.

Not here: inheritance between such classes, `InitVar`, `order`. The standard library has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field, make_dataclass
from dataclasses import fields as listed
from functools import cache
from inspect import get_annotations, signature
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar, dataclass_transform, overload

C = TypeVar("C", bound=type)


@overload
def frozen(cls: C, /) -> C: ...
@overload
def frozen(*, kw_only: bool = False) -> Callable[[C], C]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: C | None = None, /, *, kw_only: bool = False) -> C | Callable[[C], C]:
    """The class with slots, a constructor for its annotated names, comparison by value and no way to change it."""
    return _frozen(cls, kw_only) if cls is not None else lambda late: _frozen(late, kw_only)


def _frozen(cls: C, kw_only: bool) -> C:
    if any("__dataclass_fields__" in base.__dict__ for base in cls.__mro__[1:]):
        raise TypeError(f"{cls.__name__}: a frozen class does not inherit from a data class")
    kinds: dict[str, Any] = get_annotations(cls)
    names = tuple(name for name, kind in kinds.items() if not str(kind).removeprefix("typing.").startswith("ClassVar"))
    fields = {name: _field(cls.__dict__.get(name, MISSING)) for name in names}
    space = {k: v for k, v in cls.__dict__.items() if k not in fields and k not in ("__dict__", "__weakref__")}
    compared = tuple(name for name in names if fields[name].compare)
    space |= {
        "__slots__": names,
        "__init__": _Later(lambda made: _init(made, fields, kinds, kw_only)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _Later(lambda made: _written(f"def __getstate__(self): return {_tuple(names)}", {})),
        "__setstate__": _Later(lambda made: _setstate(made, names)),
        "__dataclass_fields__": _Later(lambda made: _described(fields, kinds, kw_only)),
    }
    space.setdefault("__match_args__", () if kw_only else names)
    space.setdefault("__repr__", _repr)
    if space.get("__doc__") is None:
        space["__doc__"] = _Later(lambda made: f"{made.__name__}{signature(made)}".removesuffix(" -> None"))
    if "__eq__" not in space:
        space["__eq__"] = _Later(lambda made: _eq(compared))
        space["__hash__"] = _Later(lambda made: _written(f"def __hash__(self): return hash({_tuple(compared)})", {}))
    made: C = type(cls)(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    return made


class _Later:
    """Stands in a class for something that is made, and put in its place, when it is first asked for."""

    __slots__ = ("_make", "_name", "_owner")

    def __init__(self, make: Callable[[type], Any]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        made = self._make(self._owner)
        setattr(self._owner, self._name, made)
        return MethodType(made, instance) if instance is not None and callable(made) else made


def _field(given: Any) -> Field[Any]:
    if isinstance(given, Field):
        return given
    if isinstance(given, list | dict | set):
        raise ValueError(f"{given!r} would be shared by all instances: use default_factory")
    made: Field[Any] = field(default=given)
    return made


class _Made:
    """Stands in a constructor's signature for what it makes where nothing is given, and reads as the call does."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def __repr__(self) -> str:
        return f"{self.make.__name__}()" if isinstance(self.make, type) else repr(self.make())


def _init(owner: type, fields: dict[str, Field[Any]], kinds: dict[str, Any], kw_only: bool) -> Callable[..., None]:
    """The constructor: compiled code for as many fields, under this class's names and with its defaults."""
    made = tuple(one.default_factory is not MISSING for one in fields.values())
    code = _constructor(made, hasattr(owner, "__post_init__"))
    count = 1 if kw_only else 1 + len(fields)
    code = code.replace(co_varnames=("self", *fields), co_argcount=count, co_kwonlyargcount=1 + len(fields) - count)
    known: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for number, (name, one) in enumerate(fields.items()):
        known[f"set{number}"] = owner.__dict__[name].__set__
        if one.default_factory is not MISSING:
            known[f"make{number}"] = one.default_factory
            known[f"absent{number}"] = defaults[name] = _Made(one.default_factory)
        elif one.default is not MISSING:
            defaults[name] = one.default
        elif defaults and not kw_only:
            raise TypeError(f"{owner.__name__}: {name} has no default and follows one that has")
    function = FunctionType(code, known, "__init__", None if kw_only else tuple(defaults.values()))
    function.__kwdefaults__ = defaults if kw_only else None
    function.__qualname__ = f"{owner.__qualname__}.__init__"
    function.__annotations__ = {name: kinds[name] for name in fields} | {"return": None}
    return function


@cache
def _constructor(made: tuple[bool, ...], checked: bool) -> CodeType:
    """Code of a constructor for so many fields. `made`: which are made by a call where none is given; `checked`: the
    class looks at the whole afterwards."""
    words = [f"a{n}" for n in range(len(made))]
    lines = [f"set{n}(self, {f'make{n}() if a{n} is absent{n} else ' if m else ''}a{n})" for n, m in enumerate(made)]
    lines += ["self.__post_init__()"] if checked else []
    return _written(f"def __init__({', '.join(['self', *words])}):\n " + "\n ".join(lines or ["pass"]), {}).__code__


def _setstate(owner: type, names: Iterable[str]) -> Callable[..., None]:
    known = {f"_set_{name}": owner.__dict__[name].__set__ for name in names}
    sets = "".join(f"\n _set_{name}(self, {name})" for name in names)
    return _written(f"def __setstate__(self, state):\n {''.join(f'{n}, ' for n in names) or '()'} = state{sets}", known)


def _eq(compared: Iterable[str]) -> Callable[..., bool]:
    both = f"{_tuple(compared)} == {_tuple(compared, 'other')}"
    return _written(
        f"def __eq__(self, other):\n return {both} if other.__class__ is self.__class__ else NotImplemented", {}
    )


def _tuple(names: Iterable[str], of: str = "self") -> str:
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _written(source: str, known: dict[str, Any]) -> FunctionType:
    space: dict[str, FunctionType] = {}
    exec(source, known, space)
    return next(iter(space.values()))


def _described(fields: dict[str, Field[Any]], kinds: dict[str, Any], kw_only: bool) -> dict[str, Field[Any]]:
    """What the standard library's functions ask of a data class."""
    parts = [(name, kinds[name], one) for name, one in fields.items()]
    space = {"__doc__": "Fields only: nothing is compiled for it."}
    holder = make_dataclass(
        "Fields", parts, namespace=space, kw_only=kw_only, init=False, repr=False, eq=False, match_args=False
    )
    return {one.name: one for one in listed(holder)}


def _repr(self: Any) -> str:
    """The constructor's call that gives an equal value."""
    shown = (f"{name}={getattr(self, name)!r}" for name, one in self.__dataclass_fields__.items() if one.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: object, name: str, value: object = None) -> None:
    """Raise FrozenInstanceError: nothing of a frozen value changes."""
    raise FrozenInstanceError(f"cannot change field {name!r}")
