"""Two launches compared: what changed, and whether they fail the same way."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from timeline_logs import SIGQUIT, args, at, launches, startup, trace

from forensics.timeline import attempts

SAGA = Path(__file__).parent.parent / "samples" / "cases" / "saga" / "session.log"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (None, False, True),
        (None, "", True),
        (1, 1.0, True),
        ("8", 8, True),
        (True, 1, False),
        (True, False, False),
        ("fa3", "triton", False),
        (None, "x", False),
        (0, None, False),
    ],
)
def test_values_that_mean_the_same(a: object, b: object, same: bool) -> None:
    assert attempts.equal(a, b) is same  # type: ignore[arg-type]


def test_only_what_can_matter_is_a_change(tmp_path: Path) -> None:
    lines = [
        args(0, port=30000, random_seed=1, attention_backend="fa3"),
        *startup(5, [""]),
        f"{at(30)} {SIGQUIT}",
        args(100, port=30001, random_seed=2, attention_backend="triton"),
        *startup(105, [""]),
    ]
    _, (one, two) = launches(tmp_path, lines)
    assert [(c.name, c.before, c.after) for c in attempts.changes(one, two)] == [("attention_backend", "fa3", "triton")]


def test_same_failure_needs_mechanism_and_place(tmp_path: Path) -> None:
    def run(second: int, message: str) -> list[str]:
        return [
            args(second),
            *startup(second + 5, [""]),
            *trace(second + 30, "", message),
            f"{at(second + 31)} {SIGQUIT}",
            "Killed",
        ]

    _, found = launches(
        tmp_path, [*run(0, "ValueError: bad page 12"), *run(200, "ValueError: bad page 99"), *run(400, "IndexError: x")]
    )
    assert attempts.same_failure(found[0], found[1])
    assert not attempts.same_failure(found[0], found[2])
    assert not attempts.got_further(found[0], found[1])


def test_the_session_tells_same_failures_from_others() -> None:
    from forensics.engine.scan import scan
    from forensics.grammar.blocks import find_blocks
    from forensics.schema.options import Options
    from forensics.timeline.failures import find_failures
    from forensics.timeline.launches import find_launches

    table = scan([SAGA])
    blocks = find_blocks(table)
    found = [find_failures(table, blocks, x, {}, {}) for x in find_launches(table, blocks, Options())]
    assert [attempts.same_failure(found[0], x) for x in found[1:]] == [False, True, True, True, False]
    changed = [{c.name for c in attempts.changes(a, b)} for a, b in itertools.pairwise(found)]
    assert all(changed)
