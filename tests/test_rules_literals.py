"""The prefilter may only refuse what no pattern can match: whatever the engine masks."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.engine.mask import fold
from forensics.rulebook.literals import demands, digit_blind, required
from forensics.rulebook.patterns import BadPattern, compiled


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        ("out of memory", {"out of memory"}),
        (r"probability tensor .* element < 0", {"probability tensor "}),
        ("(?:out of memory|OOM)", {"out of memory", "oom"}),
        ("(?i)CUDA ERROR", {"cuda error"}),
        (r"exit code -9 \(SIGKILL\)", {"exit code -"}),
        (r"a\.b\(c\)", {"a.b(c)"}),
        (r"foo|", None),
        (r"\w+\s\d+", None),
        (r"(abc)?def+", None),
        (r"(xyz)?ghi+", {"gh"}),
        (r"(xyz){2}w", {"xyz"}),
        (r"(abc){0,2}x", {"x"}),
        (r"\Qa.b\E!", {"a.b!"}),
        (r"[ab]cut", {"cut"}),
        (r"torch 2.9.1 is broken", {" is broken"}),
        ("^Killed$", {"killed"}),
        (r"(?P<n>\d+) GB left", {" gb left"}),
    ],
)
def test_required_texts(pattern: str, needs: set[str] | None) -> None:
    found = required(pattern)
    assert found == (None if needs is None else frozenset(needs))


@pytest.mark.parametrize(
    ("pattern", "blind"),
    [
        (r"took \d+ s", True),
        (r"took \S+ s", True),
        ("code 9", False),
        (r"[1-3] of", False),
        (r"\d{3} x", False),
        (r"[^\d] x", True),
        ("fp8", False),
    ],
)
def test_digit_blindness(pattern: str, blind: bool) -> None:
    assert digit_blind(pattern) is blind


ATOMS = st.sampled_from(
    [
        "abc",
        "Fp8",
        r"\|",
        "##",
        "deadbee",
        "0x",
        "x",
        r"\d+",
        r"\d",
        r"\S+",
        ".*",
        "[a-f]+",
        r"[^\s]",
        "7",
        " ",
        "  ",
        r"\.",
        "0.5",
        "(?:ab|cd)",
        "(?P<g>x?y)",
        "é",
        "Z*",
        r"\b",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(ATOMS, min_size=1, max_size=5), min_size=1, max_size=3),
    st.text("abcdefxyzXZ079. Fpé\t|#", max_size=30),
)
def test_a_match_always_holds_a_required_text(branches: list[list[str]], noise: str) -> None:
    pattern = "|".join("".join(b) for b in branches)
    try:
        found = compiled(pattern).search(noise)
    except BadPattern:
        return
    needs = required(pattern)
    if found is None or needs is None:
        return
    for masked in masks(noise):
        assert any(literal in masked for literal in needs), (pattern, needs, masked)


def masks(text: str) -> list[str]:
    """Every masking that an engine may use: digit by digit, by runs, by numbers; blanks and foreign letters folded."""
    low = text.lower()
    runs = re.sub(r"\d+", "0", low)
    numbers = re.sub(r"\d+(?:\.\d+)?", "0", low)
    folded = re.sub(r"[^\x20-\x7e]+", "?", re.sub(r"\s+", " ", numbers))
    engine = fold(re.sub(r"\d", "0", text))[0].lower()
    return [re.sub(r"\d", "0", low), runs, numbers, folded, engine]


def test_patterns_that_are_not_re2_say_what_to_write() -> None:
    for pattern, word in [
        ("a(?=b)", "look-ahead"),
        (r"(a)\1", "back-references"),
        ("(?<!a)b", "look-behind"),
        ("a++", "possessive"),
        ("(", "escape"),
    ]:
        with pytest.raises(BadPattern) as error:
            compiled(pattern)
        assert word in error.value.hint
    with pytest.raises(BadPattern):
        compiled("x" * 5000)


def test_every_part_of_a_pattern_demands_its_own_text() -> None:
    assert demands(r"ibgda\S{0,40}: (?:bad status|mlx5dv_\w+ failed)") == (
        frozenset({"ibgda"}),
        frozenset({": "}),
        frozenset({"bad status", " failed"}),
    )
    assert demands(r"(?i)Errno 98\b") == (frozenset({"errno "}),)
    assert demands(r"a|b\d") == ()
    for pattern in ("x+ is (?:not )?here", r"\bcode -?9\b", "one(?:two)?three"):
        assert required(pattern) in demands(pattern)
