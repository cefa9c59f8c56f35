"""Lint: each fault of a rule or finding is found at its place, with its code, and the safe ones repaired."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kb_files import DEPLOYMENT, FINDING, RULE, finding_file, lib_of, rule_file, small_base, write

from forensics.knowledge.lint import fix_file, lint_file
from forensics.knowledge.store import load
from forensics.rulebook.problem import Problem

ROOT = Path(__file__).parent.parent


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return small_base(tmp_path)


def lint(kb: Path, path: Path) -> list[Problem]:
    return lint_file(path, lib_of(kb), shipped=False)


def found(problems: list[Problem]) -> list[tuple[str, int, int]]:
    return [(p.code, p.span.line, p.span.column) for p in problems]


def test_good_files_are_clean(kb: Path) -> None:
    for path in (finding_file(kb), rule_file(kb), kb / "deployments" / "known-good.md"):
        assert [p.render() for p in lint(kb, path)] == []


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column"),
    [
        ("- widget-jam\n", "- widget-jamm\n", "C202", 9, 7),
        ("- widget-jam\n", "- not a-signal-of-nobody\n", "C202", 9, 11),
        ("- widget-jam\n", "- widget-jam.size > 3\n", "C203", 9, 7),
        ("- args.tp_size = 2", "- gpu.vram = 2", "C204", 10, 7),
        ("- args.tp_size = 2", "- args.tp_sice = 2", "C207", 10, 7),
        ("- args.tp_size = 2", "- args.tp_size = 2 and args.tp_size > 4", "C205", 10, 7),
        ("- args.tp_size = 2", "- args.tp_size = 2\n    - args.tp_size = 4", "C205", 9, 5),
        ("- args.tp_size = 2", "- version.sglang < 0.5.5", "C205", 10, 7),
        ("- args.tp_size = 2", "- false", "C205", 10, 7),
        ("- widget-jam on every rank", "- tried --tp-sise=3", "C207", 12, 7),
        ("- widget-jam on every rank", "- series thruput falls", "C208", 12, 7),
        ("- widget-jam on every rank", "- widget-jam on evry rank", "C201", 12, 21),
        ("- args.tp_size = 2", "- args.tp_size = 4", "F308", 10, 7),
        ("- args.tp_size = 2", "- deepgemm-scale-format", "F308", 10, 7),
        ("explains: [widget-jam]", "explains: [widget-yam]", "F302", 13, 12),
        ("explains: [widget-jam]", "look_alikes: [no-such-finding]", "F301", 13, 15),
        ("explains: [widget-jam]", "shows: [{signal: nope, stage: decode}]", "F302", 13, 18),
        ("    - widget-jam\n    - args.tp_size = 2\n", "    []\n", "F311", 9, 5),
        ("name: --tp-size", "name: --tp-sise", "F309", 15, 33),
        ('name: --tp-size, value: "1"', 'name: --enable-deepep-moe, versions: ">=0.5.8"', "F309", 15, 33),
        ('kind: flag, op: set, name: --tp-size, value: "1"', "kind: host, do: oil", "F312", 15, 37),
        ("name: --tp-size", "name: tp size", "F313", 15, 33),
        ("# The widget runs without oil\n", "# Another heading\n", "F310", 21, 1),
        ("## Fix\n", "## Remedy\n", "F304", 21, 1),
        ("log_evidence: rendered", "log_evidence: none", "F307", 19, 15),
        ("```log near-miss", "```text", "F306", 19, 15),
        ("```log match line=2", "```text", "F305", 19, 15),
        ("```log match line=2", "```log match line=9", "L402", 27, 1),
        ("```log match line=2", "```log match lines=2", "L401", 27, 1),
        ("```log match line=2", "```log match symptom=bored", "K005", 27, 1),
        (
            "model_path='/models/m', tp_size=2, dp_size=1)\n[2026-01-05 10:00:09 TP0] ValueError: widget 3 is jammed",
            "model_path='/home/jdoe/m', tp_size=2, dp_size=1)\n[2026-01-05 10:00:09 TP0] ValueError: widget 3 is jammed",
            "S402",
            28,
            64,
        ),
        ("widget 4 is jammed", "widget 4 is jammed, HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "S401", 30, 68),
        ("widget 4 is jammed", "widget 4 is jammed, ask jane.doe@corp.io", "S402", 30, 63),
        ("status: confirmed", "status: sure", "K005", 5, 9),
        ("category: runtime", "categorie: runtime", "K003", 4, 1),
        ('versions: ">=0.5.5"', 'versions: ">=0.6,<0.5"', "C205", 6, 11),
        ('versions: ">=0.5.5"', 'versions: "0.5.x"', "K010", 6, 11),
        ("id: widget-without-oil", "id: widget-with-oil", "K007", 2, 5),
        ("sources: [sgl-project/sglang#1]", "sources: [heard it]", "K009", 18, 11),
    ],
)
def test_each_fault_of_a_finding(kb: Path, old: str, new: str, code: str, line: int, column: int) -> None:
    assert old in FINDING
    finding_file(kb).write_text(FINDING.replace(old, new, 1))
    problems = lint(kb, finding_file(kb))
    assert (code, line, column) in found(problems), [p.render() for p in problems]
    one = next(p for p in problems if p.code == code)
    assert one.render().count("\n") >= 1


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column"),
    [
        ("widget (?P<n>\\d+) is jammed", "widget (?P<n>\\d+) of sampler.py", "R103", 5, 29),
        ("widget (?P<n>\\d+) is jammed", "widget (?P<n>\\d+) failed in /opt/venv/lib", "R103", 5, 36),
        ("widget (?P<n>\\d+) is jammed", "Qwen3 widget (?P<n>\\d+)", "R103", 5, 8),
        ("widget (?P<n>\\d+) is jammed", "widget (?P<n>\\d+) and 42 more", "R103", 5, 30),
        ("widget (?P<n>\\d+) is jammed", "\\w+ (?P<n>\\d+)", "R108", 5, 7),
        ("widget (?P<n>\\d+) is jammed", "Load weight begin. avail mem=(?P<n>\\d+)", "R107", 5, 7),
        ("captures:", "  kinds: [decode-batch]\ncaptures:", "R109", 6, 11),
        ("docs: A widget stopped turning.\n", "", "R112", 1, 1),
        ("role: root", "role: rot", "K005", 7, 7),
        ("widget (?P<n>\\d+) is jammed", "widget (?P<n>\\d+) (?!is)", "R101", 5, 26),
    ],
)
def test_each_fault_of_a_rule(kb: Path, old: str, new: str, code: str, line: int, column: int) -> None:
    assert old in RULE
    rule_file(kb).write_text(RULE.replace(old, new, 1))
    problems = lint(kb, rule_file(kb))
    assert (code, line, column) in found(problems), [p.render() for p in problems]


def test_a_mechanism_excuses_a_number(kb: Path) -> None:
    rule_file(kb).write_text(RULE.replace("is jammed", "and 42 more") + "mechanism: 42 is printed by the program\n")
    assert found(lint(kb, rule_file(kb))) == []


def test_zero_and_one_and_words_with_digits_are_no_accidents(kb: Path) -> None:
    rule_file(kb).write_text(RULE.replace("is jammed", "!= 0, fp8 on sm_90"))
    assert found(lint(kb, rule_file(kb))) == []


def test_a_quantifier_on_a_rankless_signal(kb: Path) -> None:
    rule_file(kb).write_text(RULE + "scope: process\n")
    assert ("C206", 12, 7) in found(lint(kb, finding_file(kb)))


def test_an_id_that_is_taken(kb: Path) -> None:
    shipped = load().findings[0].id
    path = write(kb / "findings" / f"{shipped}.md", FINDING.replace("widget-without-oil", shipped))
    assert "K008" in [p.code for p in lint(kb, path)]


def test_look_alikes_are_mutual_and_fix_adds_the_way_back(kb: Path) -> None:
    other = write(
        kb / "findings" / "widget-too-old.md",
        FINDING.replace("widget-without-oil", "widget-too-old").replace(
            "explains: [widget-jam]", "look_alikes: [widget-without-oil]"
        ),
    )
    problems = lint(kb, other)
    assert sorted(p.code for p in problems) == ["F303", "F317"]
    assert fix_file(other, problems) == 1
    assert "look_alikes: [widget-too-old]" in finding_file(kb).read_text()
    # What tells them apart is left to the author, on both pages.
    assert [p.code for p in (*lint(kb, other), *lint(kb, finding_file(kb)))] == ["F317", "F317"]


def test_shipped_findings_need_not_name_a_teams_own(kb: Path) -> None:
    shipped = load().findings[0].id
    finding_file(kb).write_text(
        FINDING.replace("explains:", f"look_alikes: [{shipped}]\nexplains:").replace(
            "with oil.", f"with oil ({shipped})."
        )
    )
    assert lint(kb, finding_file(kb)) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- widget-jam\n", "- widget-jamm\n"),
        ("status: confirmed", "status: confirmd"),
        ("category:", "categori:"),
        ("name: --tp-size", "name: --tp-sizee"),
        ("# The widget runs without oil\n", "# Other\n"),
        ("log_evidence: rendered", "log_evidence: none"),
        ("id: widget-without-oil", "id: widget-with-oil"),
        ("explains: [widget-jam]", "explains: [widget-jamm]"),
        (
            "model_path='/models/m', tp_size=2, dp_size=1)\n[2026-01-05 10:00:09 TP0] ValueError: widget 3 is jammed",
            "model_path='/home/jdoe/m', tp_size=2, dp_size=1)\n[2026-01-05 10:00:09 TP0] ValueError: widget 3 is jammed",
        ),
    ],
)
def test_fix_repairs_what_is_safe(kb: Path, old: str, new: str) -> None:
    path = finding_file(kb)
    path.write_text(FINDING.replace(old, new, 1))
    for _ in range(3):
        problems = lint(kb, path)
        if not fix_file(path, problems):
            break
    assert [p.render() for p in lint(kb, path)] == []


def test_deployments(kb: Path) -> None:
    path = write(
        kb / "deployments" / "known-good.md",
        DEPLOYMENT.replace("{tp_size: 8}", "{tp: 8}").replace("kv.dtype", "kv.kind").replace("[widget-jam]", "[nope]"),
    )
    assert sorted(p.code for p in lint(kb, path)) == ["D501", "D501", "F302"]


def test_no_input_makes_lint_fail(kb: Path) -> None:
    for text in (
        "",
        "---\n---\n",
        "---\n- a\n---\n",
        "---\nid: 3\n---\n",
        "---\nid: widget-without-oil\ngrounds: 3\nfix: 3\nshows: x\n---\n",
        "\x00",
        "---\ngrounds: {must: [[1]]}\n---\n",
    ):
        finding_file(kb).write_text(text)
        assert lint(kb, finding_file(kb))
    for text in (
        "",
        "- a",
        "match: 3",
        "id: widget-jam\nmatch: {any: 3}",
        "match: {any: [[1], {a: b}]}\ncaptures: []\nlifetime: 3",
    ):
        rule_file(kb).write_text(text)
        assert lint(kb, rule_file(kb))


def test_every_code_is_documented_and_every_documented_code_exists() -> None:
    used = {c for p in (ROOT / "forensics").rglob("*.py") for c in re.findall(r'"([KRCFLSDX]\d{3})"', p.read_text())}
    documented = re.findall(r"^### ([A-Z]\d{3}):", (ROOT / "docs" / "lint-codes.md").read_text(), re.MULTILINE)
    assert sorted(used) == sorted(documented)


def test_the_facts_that_lint_knows_are_those_of_the_docs() -> None:
    from forensics.knowledge.names import CLOSED

    text = (ROOT / "docs" / "facts.md").read_text()
    stated = {(g, n) for g, n in re.findall(r"`([a-z]+)\.(\w+)`", text) if g in CLOSED}
    assert stated == {(g, n) for g, names in CLOSED.items() for n in names}


def test_an_argument_that_no_flag_sets_is_only_a_warning(kb: Path) -> None:
    finding_file(kb).write_text(FINDING.replace("- widget-jam on every rank", "- args.watermark_context_window > 3"))
    assert [(p.code, p.severity) for p in lint(kb, finding_file(kb))] == [("C207", "warning")]
