"""The shipped knowledge base keeps its own rules: lint is clean, references hold, the index is fresh."""

from __future__ import annotations

import re
from collections import Counter

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


FAMILIES = {
    "numerics", "memory", "kernel", "compile", "distributed", "load", "config", "runtime", "disaggregation", "network",
    "tokenizer", "host", "performance",
}  # fmt: skip


def test_the_base_holds_what_it_promises(place: Workplace) -> None:
    findings, rules = place.library.knowledge.findings, place.library.rules.values()
    assert len(findings) >= 200
    assert {r.family for r in rules} == FAMILIES
    roles = Counter(r.role for r in rules)
    assert min(roles[r] for r in ("root", "cascade", "teardown", "advice", "warning", "progress", "info")) >= 1
    assert roles["advice"] >= 10 and roles["cascade"] >= 10
    # Suspected is said where nobody confirmed it; what no log can show is never more than possible.
    assert 15 <= sum(f.status == "suspected" for f in findings) < len(findings) / 4
    assert sum(f.log_evidence == "none" for f in findings) < 25
    assert sum(f.log_evidence == "real" for f in findings) >= 50


def test_deployments_are_controls_with_visible_strength(place: Workplace) -> None:
    strengths = Counter(d.strength for d in place.library.knowledge.deployments)
    assert sum(strengths[s] for s in ("accuracy", "throughput", "served", "benchmarked")) >= 110
    assert set(strengths) == {"accuracy", "throughput", "served", "benchmarked", "recommended"}


def test_real_logs_of_a_cause_are_used_by_its_finding(place: Workplace) -> None:
    for finding in place.library.knowledge.findings:
        if finding.log_evidence == "real":
            assert any(b.sample for b in finding.logs if b.expect == "match"), finding.id


def test_links_between_pages_lead_somewhere(place: Workplace) -> None:
    known = place.library.findings
    for finding in known.values():
        for name, target in re.findall(r"\[([a-z0-9-]+)\]\(([a-z0-9-]+)\.md\)", finding.body):
            assert name == target and target in known, (finding.id, target)
