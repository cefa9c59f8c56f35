"""The shipped knowledge base keeps its own rules: lint is clean, references hold, the index is fresh."""

from __future__ import annotations

import pytest

from forensics.cli.kb import _lint
from forensics.grammar.condition_text import format_condition
from forensics.grammar.conditions import parse_condition
from forensics.knowledge.healthy import healthy_hits, healthy_lines, must_be_silent
from forensics.knowledge.index import stale
from forensics.knowledge.workplace import Workplace, open_workplace
from forensics.rulebook.program import program_of


@pytest.fixture(scope="module")
def place() -> Workplace:
    return open_workplace()


def test_lint_finds_nothing(place: Workplace) -> None:
    problems = [p.render() for target in place.targets for p in _lint(target, place) if p.severity == "error"]
    assert problems == []


def test_the_index_is_fresh(place: Workplace) -> None:
    assert place.root.kb is not None
    problem = stale(place.root.kb / "README.md", place.library)
    assert problem is None, "run `forensics kb index`"


def test_no_fault_is_seen_in_a_healthy_log(place: Workplace) -> None:
    assert len(healthy_lines()) > 300
    rules = place.library.rules
    hits = healthy_hits(program_of(rules))
    assert hits, "the corpus says nothing"
    assert {i: line.text for i, line in hits.items() if must_be_silent(rules[i])} == {}


def test_every_condition_can_be_printed_and_read_again(place: Workplace) -> None:
    for finding in place.library.knowledge.findings:
        for condition in (*finding.applies, *finding.grounds):
            node = parse_condition(condition.text)
            assert parse_condition(format_condition(node)) == node
