"""Frozen classes behave as the standard library's frozen data classes with slots do."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import re
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

import pytest

import forensics
from forensics.frozen import frozen
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

T = TypeVar("T")


@frozen
class Ours:
    """A class with every kind of field."""

    rank: int
    name: str = "decode"
    seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    lines: tuple[int, int] = field(default=(0, 0), compare=False)
    axes: ClassVar[int] = 3

    def twice(self) -> int:
        return 2 * self.rank


@dataclass(frozen=True, slots=True)
class Theirs:
    """The same from the standard library."""

    rank: int
    name: str = "decode"
    seen: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    lines: tuple[int, int] = field(default=(0, 0), compare=False)
    axes: ClassVar[int] = 3

    def twice(self) -> int:
        return 2 * self.rank


@frozen
class Holder(Generic[T]):
    value: T


@frozen(kw_only=True)
class Named:
    first: int = 1
    second: str


@frozen
class Checked:
    width: int

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError("width")


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_a_frozen_class_is_a_data_class(kind) -> None:
    one = kind(4)
    two = replace(one, name="prefill", lines=(1, 2))
    assert (two.rank, two.name, two.lines, two.seen, two.twice()) == (4, "prefill", (1, 2), {}, 8)
    assert [f.name for f in fields(kind)] == ["rank", "name", "seen", "lines"]
    assert asdict(two) == {"rank": 4, "name": "prefill", "seen": {}, "lines": (1, 2)}
    assert repr(two) == f"{kind.__name__}(rank=4, name='prefill', lines=(1, 2))"
    assert one == kind(4, lines=(5, 5), seen={"a": 1}) and one != two and one != 4
    assert hash(one) == hash(kind(4, lines=(5, 5))) == hash((4, "decode"))
    assert kind(1).seen is not kind(1).seen
    assert kind.__match_args__ == ("rank", "name", "seen", "lines")
    assert not hasattr(one, "__dict__") and kind.axes == 3 and kind.__doc__
    with pytest.raises(FrozenInstanceError):
        one.rank = 5
    with pytest.raises(FrozenInstanceError):
        del one.rank
    with pytest.raises(TypeError):
        kind()


def test_copies_and_pickles_keep_all_fields() -> None:
    one = Ours(1, "x", {"a": 2}, (3, 4))
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert asdict(other) == asdict(one)
    assert pickle.loads(pickle.dumps(Holder((1, Ours(2))))) == Holder((1, Ours(2)))


def test_keyword_only_and_post_init() -> None:
    assert Named(second="b") == Named(first=1, second="b")
    with pytest.raises(TypeError):
        Named(1, "b")
    assert replace(Named(second="b"), first=2).first == 2
    with pytest.raises(ValueError, match="width"):
        Checked(-1)


def test_wrong_calls_are_told_by_the_names_of_the_class() -> None:
    assert str(inspect.signature(Ours.__init__)).startswith("(self, rank: 'int', name: 'str' = 'decode', seen: ")
    assert [p.kind.name for p in inspect.signature(Named).parameters.values()] == ["KEYWORD_ONLY"] * 2
    for call, said in (
        (lambda: Ours(), "missing 1 required positional argument: 'rank'"),
        (lambda: Ours(1, rank=2), "multiple values for argument 'rank'"),
        (lambda: Ours(1, row=2), "unexpected keyword argument 'row'"),
        (lambda: Ours(1, 2, 3, 4, 5), "takes from 2 to 5 positional arguments"),
        (lambda: Named(), "missing 1 required keyword-only argument: 'second'"),
    ):
        with pytest.raises(TypeError, match=said):
            call()

    @frozen
    class Wrong:
        first: int = 1
        second: int

    with pytest.raises(TypeError, match="second has no default"):
        Wrong(1, 2)


def test_signatures_and_help_read_as_the_class_was_written() -> None:
    said = "(rank: 'int', name: 'str' = 'decode', seen: 'dict[str, int]' = {}, lines: 'tuple[int, int]' = (0, 0))"
    assert str(inspect.signature(Ours)) == said.replace("= {}", "= dict()") + " -> None"
    assert str(inspect.signature(Named)) == "(*, first: 'int' = 1, second: 'str') -> None"

    @frozen
    class Bare:
        ranks: tuple[int, ...] = field(default_factory=lambda: (0, 1))
        named: Named = field(default_factory=lambda: Named(second="b"))

    assert Bare.__doc__ == "Bare(ranks: 'tuple[int, ...]' = (0, 1), named: 'Named' = Named(first=1, second='b'))"
    assert Bare().ranks == (0, 1)
    for kind in (Ours, Bare, Options, LaunchInfo):
        page = pydoc.render_doc(kind, renderer=pydoc.plaintext)
        assert "MISSING" not in page and " object at 0x" not in page


def test_classes_of_one_form_do_not_mix() -> None:
    @frozen
    class Left:
        low: int
        high: list[int] = field(default_factory=list)

    @frozen
    class Right:
        first: str
        last: tuple[str, ...] = field(default_factory=tuple)

    assert (Left(1).high, Right("a").last, Left(high=[2], low=1).high) == ([], (), [2])
    assert Right(last=("b",), first="a").last == ("b",)


def test_what_is_not_supported_is_refused() -> None:
    with pytest.raises(TypeError, match="does not inherit"):

        @frozen
        class Child(Ours):
            more: int = 0

    with pytest.raises(ValueError, match="default_factory"):

        @frozen
        class Shared:
            rows: list[int] = []  # noqa: RUF012


def test_methods_are_written_when_they_are_needed() -> None:
    @frozen
    class Fresh:
        value: int

    before = vars(Fresh)["__init__"]
    assert Fresh(1).value == 1 and vars(Fresh)["__init__"] is not before
    assert type(vars(Fresh)["__hash__"]) is type(before), "nobody has asked for a hash"


def test_the_program_uses_them() -> None:
    own = Path(forensics.__file__).parent
    plain = re.compile(r"^@dataclass\(frozen=True, slots=True\)$", re.MULTILINE)
    found = [p for p in own.rglob("*.py") if plain.search(p.read_text()) and p.name != "agent.py"]
    assert not found, "@frozen of forensics/frozen.py costs less at import"


def test_a_class_variable_is_no_field_however_it_is_written() -> None:
    made = type(
        "Made", (), {"__annotations__": {"rank": int, "axes": ClassVar[int], "size": "ClassVar[int]"}, "axes": 3}
    )
    assert [one.name for one in fields(frozen(made))] == ["rank"]
