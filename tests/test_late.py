"""Expressions that are compiled at their first use: each of the program's is a right one."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import re

import pytest

import forensics
from forensics.late import Late

NEEDS_MORE = ("forensics.engine.compiled", "forensics.editor", "forensics.agents", "forensics.fleet")


def test_an_expression_has_the_methods_of_a_compiled_one() -> None:
    late = Late(r"(?P<rank>TP\d+)|x", re.IGNORECASE)
    assert vars(late).keys() == {"pattern", "flags"}, "not compiled yet"
    assert late.search("at tp3")["rank"] == "tp3"
    assert "search" in vars(late) and "match" not in vars(late)
    assert late.match("at TP3") is None and late.fullmatch("TP3")
    assert [m[0] for m in late.finditer("TP1 X")] == ["TP1", "X"]
    assert late.sub("-", "TP1, TP2") == "-, -" and late.findall("x") == [""]
    assert Late(rb"\d+").search(b"a1")[0] == b"1"
    with pytest.raises(AttributeError):
        _ = late.nothing
    assert "TP" in repr(late)


def test_all_expressions_of_the_program_compile() -> None:
    for module in pkgutil.walk_packages(forensics.__path__, "forensics."):
        if not module.name.startswith(NEEDS_MORE):
            importlib.import_module(module.name)
    every = [found for found in gc.get_objects() if isinstance(found, Late)]
    assert len(every) > 200
    for late in every:
        re.compile(late.pattern, late.flags)
