"""Rule files: strict keys, places, carets, hints; one bad file never stops the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.errors import RuleError
from forensics.rulebook.load import check_rule, load_rules
from forensics.rulebook.located import Reader

GOOD = """id: pool-leak
title: The pool leaks
match:
  any:
    - 'pool leak: available=(?P<available>\\d+), size=(?P<size>\\d+)'
captures: {available: int, size: int}
where: 'available < size'
role: root
stages: [idle]
lifetime: {first: "0.5.7"}
docs: The pool lost pages.
sources: [sgl-project/sglang#1]
"""


def write(folder: Path, text: str, name: str = "pool-leak", family: str = "memory") -> Path:
    path = folder / "rules" / family / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_good_rule(tmp_path: Path) -> None:
    rule, problems = check_rule(write(tmp_path, GOOD))
    assert problems == []
    assert rule is not None
    assert (rule.id, rule.family, rule.role, rule.first, rule.last) == ("pool-leak", "memory", "root", "0.5.7", None)
    assert rule.captures == (("available", "int"), ("size", "int"))
    assert rule.where == "available < size"
    assert rule.severity == "error" and rule.scope == "rank" and rule.min_count == 1


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "column"),
    [
        ("title: The", "tittle: The", "K003", 2, 1),
        ("role: root\n", "", "K004", 1, 1),
        ("role: root", "role: roots", "K005", 8, 7),
        ("id: pool-leak", "id: pool-leek", "K007", 1, 5),
        ("id: pool-leak", "id: Pool_Leak", "K007", 1, 5),
        ("    - 'pool", "    - '(?!x)pool", "R101", 5, 8),
        (
            "    - 'pool leak: available=(?P<available>\\d+), size=(?P<size>\\d+)'",
            "    - '(?P<available>a)?(?P<size>b)?'",
            "R102",
            5,
            7,
        ),
        ("size: int}", "total: int}", "R104", 6, 28),
        ("available < size", "available < total", "R105", 7, 21),
        ("available < size", "available < ", "R105", 7, 21),
        ('first: "0.5.7"', 'first: "0.5.x"', "K010", 10, 19),
        ('first: "0.5.7"', 'first: "0.5.7", last: "0.5.2"', "R110", 10, 11),
        ("stages: [idle]", "stages: idle", "K002", 9, 9),
        ("stages: [idle]", "stages: [idling]", "K005", 9, 10),
        ("sources: [sgl-project/sglang#1]", "sources: [somewhere]", "K009", 12, 11),
        ("docs: The", "role: root\ndocs: The", "K006", 11, 1),
        ("id: pool-leak", "id: [unclosed", "K001", 2, 6),
    ],
)
def test_each_fault_has_code_and_place(tmp_path: Path, old: str, new: str, code: str, line: int, column: int) -> None:
    assert old in GOOD
    _, problems = check_rule(write(tmp_path, GOOD.replace(old, new)))
    found = [(p.code, p.span.line, p.span.column) for p in problems]
    assert (code, line, column) in found, [p.render() for p in problems]
    shown = next(p for p in problems if p.code == code)
    assert shown.excerpt and "^" in shown.render()


def test_a_typo_gets_the_nearest_word(tmp_path: Path) -> None:
    _, problems = check_rule(write(tmp_path, GOOD.replace("role: root", "role: roots")))
    assert "did you mean `root`?" in problems[0].hint
    assert problems[0].edit is not None and problems[0].edit.new == "root"


def test_one_bad_file_never_stops_the_rest(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    write(tmp_path, "id: [", "broken")
    write(tmp_path, GOOD.replace("pool-leak", "other").replace("role: root", "role: nope"), "other")
    (tmp_path / "rules" / "memory" / "binary.yaml").write_bytes(b"\xff\xfe\x00id")
    loaded = load_rules([tmp_path / "rules"])
    assert list(loaded.rules) == ["pool-leak"]
    assert len(loaded.problems) >= 3
    assert all(isinstance(p, RuleError) and p.span is not None for p in loaded.problems)


def test_two_files_with_one_id(tmp_path: Path) -> None:
    write(tmp_path, GOOD, family="memory")
    write(tmp_path, GOOD, family="runtime")
    loaded = load_rules([tmp_path / "rules"])
    assert len(loaded.rules) == 1
    assert [p.code for p in loaded.problems] == ["K008"]


def test_hostile_yaml_is_bounded() -> None:
    deep = "a: " + "[" * 200 + "]" * 200
    assert Reader("x", deep).problems[0].code == "K001"
    loop = "a: &x [*x]"
    assert Reader("x", loop).problems[0].code == "K001"
    assert Reader("x", "a: 1\n" * 400_000).problems[0].code == "K001"
    assert Reader("x", "a: !!python/object/apply:os.system ['true']").root is not None


def test_numbers_keep_their_spelling() -> None:
    reader = Reader("x", "version: 0.10\nvalue: 010\nflag: on\n")
    assert reader.root is not None
    fields = reader.root.fields()
    assert reader.text(fields["version"]) == "0.10"
    assert reader.text(fields["value"]) == "010"


def test_a_namespace_is_put_before_the_id(tmp_path: Path) -> None:
    rule, problems = check_rule(write(tmp_path, GOOD), namespace="acme")
    assert problems == [] and rule is not None and rule.id == "acme/pool-leak"
    rule, problems = check_rule(write(tmp_path, GOOD.replace("id: pool-leak", "id: acme/pool-leak")), namespace="acme")
    assert problems == [] and rule is not None and rule.id == "acme/pool-leak"
    rule, problems = check_rule(write(tmp_path, GOOD.replace("id: pool-leak", "id: acme/pool-leak")))
    assert problems == [] and rule is not None and rule.id == "acme/pool-leak"
    _, problems = check_rule(write(tmp_path, GOOD.replace("id: pool-leak", "id: other/pool-leak")), namespace="acme")
    assert [p.code for p in problems] == ["K007"]
