"""Order of releases, ranges over them, and three-valued comparison with an interval."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from forensics.rulebook.versions import (
    compare,
    contradictory,
    in_range,
    interval_satisfies,
    lifetime_range,
    overlap,
    parse_range,
    version_key,
)
from forensics.schema.facts import VersionInterval as V

ORDER = [
    "0.4.1.post7",
    "0.4.9.post6",
    "0.4.10.post2",
    "0.5.4",
    "0.5.4.post3",
    "0.5.8.dev3",
    "0.5.8rc1",
    "0.5.8",
    "0.5.8.post2.dev418",
    "0.5.8.post2",
    "0.5.10rc0",
    "0.5.10",
]


@pytest.mark.parametrize(("low", "high"), list(pairwise(ORDER)))
def test_releases_are_ordered(low: str, high: str) -> None:
    assert compare(low, high) == -1
    assert compare(high, low) == 1
    assert compare(low, low) == 0


def test_local_parts_and_leading_v_do_not_count() -> None:
    assert compare("v0.5.8+cu128", "0.5.8") == 0
    assert compare("2.9.1+cu130", "2.10") == -1
    assert version_key("latest") is None
    assert compare("main", "0.5.8") is None


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(0, 9)),
    st.one_of(st.none(), st.integers(0, 9)),
    st.one_of(st.none(), st.integers(0, 9)),
    st.lists(st.integers(0, 20), min_size=1, max_size=4),
)
def test_the_order_is_that_of_pep_440(a, rc, post, dev, b) -> None:
    text = ".".join(map(str, a)) + ("" if rc is None else f"rc{rc}")
    text += ("" if post is None else f".post{post}") + ("" if dev is None else f".dev{dev}")
    other = ".".join(map(str, b))
    left, right = Version(text), Version(other)
    assert compare(text, other) == (left > right) - (left < right)


def test_ranges() -> None:
    assert in_range("0.5.9", ">=0.5.7,<0.5.10") is True
    assert in_range("0.5.10", ">=0.5.7,<0.5.10") is False
    assert in_range("0.5.10", "") is True
    assert in_range("0.5.8", "0.5.8") is True
    assert in_range("main", ">=0.5") is None
    assert parse_range(">=abc") is None
    assert lifetime_range("0.5.7", None) == ">=0.5.7"
    assert lifetime_range(None, None) == ""


@pytest.mark.parametrize(
    ("text", "never"),
    [
        (">=0.5.7,<0.5.7", True),
        (">=0.5.7,<=0.5.7", False),
        (">0.5.7,<0.5.8", False),
        ("==0.5.7,!=0.5.7", True),
        (">=0.6,<0.5", True),
        ("", False),
    ],
)
def test_contradictory_ranges(text: str, never: bool) -> None:
    assert contradictory(parse_range(text) or ()) is never


@pytest.mark.parametrize(
    ("interval", "op", "version", "held"),
    [
        (V("0.5.7", "0.5.9"), "<", "0.5.10", True),
        (V("0.5.7", "0.5.9"), "<", "0.5.8", None),
        (V("0.5.7", "0.5.9"), "<", "0.5.7", False),
        (V("0.5.7", "0.5.9"), "<=", "0.5.9", True),
        (V("0.5.7", None), ">=", "0.5.7", True),
        (V("0.5.7", None), "<", "0.5.10", None),
        (V(None, "0.5.9"), ">", "0.5.9", False),
        (V(None, None), ">=", "0.5.7", None),
        (V("0.5.8", "0.5.8"), "==", "0.5.8", True),
        (V("0.5.7", "0.5.9"), "!=", "0.6", True),
        (V("0.5.1", "0.5.9", exact="0.5.8"), "==", "0.5.8", True),
        (V("0.5.7", "0.5.9"), "<", "main", None),
    ],
)
def test_intervals_compare_three_valued(interval: V, op: str, version: str, held: bool | None) -> None:
    assert interval_satisfies(interval, op, version) is held


def test_overlap() -> None:
    assert overlap(V("0.5.7", "0.5.9"), ">=0.5.7,<0.5.10") == "inside"
    assert overlap(V("0.5.7", None), "<0.5.10") == "partly"
    assert overlap(V("0.5.11", None), "<0.5.10") == "outside"
    assert overlap(V(), "") == "inside"
    assert overlap(V(), "nonsense") == "partly"
