"""Knowledge from folders: findings, deployments, own bases, precedence, namespaces, cache, problems."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from kb_files import DEPLOYMENT, FINDING, RULE, finding_file, rule_file, small_base, write

from forensics.errors import FindingError, UsageError
from forensics.knowledge import read_root as reading
from forensics.knowledge import stamps
from forensics.knowledge.cache import cache_folder
from forensics.knowledge.codec import decode, encode
from forensics.knowledge.read_root import files_of, read_root
from forensics.knowledge.roots import Root, builtin_root
from forensics.knowledge.store import load
from forensics.rulebook.load import load_rules
from forensics.schema.options import Options


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSICS_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return small_base(tmp_path)


def test_a_finding_with_all_its_parts(kb: Path) -> None:
    content = read_root(Root(kb, kb / "rules"))
    assert content.problems == ()
    (finding,) = content.findings
    assert [(c.strength, c.text) for c in finding.grounds] == [
        ("must", "widget-jam"),
        ("must", "args.tp_size = 2"),
        ("strong", "widget-jam on every rank"),
    ]
    assert [(c.span.line, c.span.column) for c in finding.grounds] == [(9, 7), (10, 7), (12, 7)]
    assert finding.fix[0].runnable and finding.fix[0].name == "--tp-size" and finding.fix[0].value == "1"
    match, near = finding.logs
    assert (match.expect, match.named_line, match.span.line) == ("match", 2, 28)
    assert match.text.startswith("[2026-01-05 10:00:00] server_args")
    assert near.expect == "near-miss" and near.named_line is None
    assert finding.body.startswith("# The widget")


def test_a_deployment_with_all_its_parts(kb: Path) -> None:
    (found,) = read_root(Root(kb, None)).deployments
    assert (found.gpu, found.gpu_count, found.sm, found.nodes, found.quantization) == ("H200", 8, 90, 1, "fp8")
    assert found.architecture == "DeepseekV3ForCausalLM" and found.features == ("mla", "moe")
    assert found.args == (("tp_size", 8),) and found.env == (("NCCL_DEBUG", "INFO"),)
    assert found.warnings == ("widget-jam",)


def test_the_shipped_base_loads_without_problems() -> None:
    known = load()
    assert known.problems == ()
    assert len(known.rules) > 100 and len(known.findings) > 50


def test_own_bases_add_to_the_shipped_one(kb: Path) -> None:
    known = load(Options(kb=(kb,)))
    assert known.problems == ()
    assert known.finding("widget-without-oil") is not None and "widget-jam" in known.rules
    assert "nan-probabilities" in known.rules


def test_a_flat_folder_of_findings(tmp_path: Path) -> None:
    write(tmp_path / "notes" / "widget-without-oil.md", FINDING)
    write(tmp_path / "notes" / "README.md", "# Notes\n")
    write(tmp_path / "rules" / "runtime" / "widget-jam.yaml", RULE)
    known = load(Options(kb=(tmp_path / "notes",), rules=(tmp_path / "rules",)))
    assert known.problems == () and known.finding("widget-without-oil") is not None


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        load(Options(kb=(tmp_path / "nowhere",)))
    assert "nowhere" in error.value.message and error.value.hint


def test_a_bad_file_is_a_problem_and_the_rest_is_used(kb: Path) -> None:
    write(kb / "findings" / "broken.md", "---\nid: broken\n  title: [\n---\n")
    write(kb / "findings" / "no-front.md", "# Just text\n")
    write(
        kb / "findings" / "bad-condition.md",
        FINDING.replace("widget-without-oil", "bad-condition").replace("- widget-jam\n", "- widget-jam and\n"),
    )
    known = load(Options(kb=(kb,)))
    assert known.finding("widget-without-oil") is not None
    assert {Path(p.span.path).name for p in known.problems if p.span} == {
        "broken.md",
        "no-front.md",
        "bad-condition.md",
    }
    assert all(isinstance(p, FindingError) for p in known.problems)
    bad = next(p for p in known.problems if p.span and p.span.path.endswith("bad-condition.md"))
    assert bad.span is not None and (bad.span.line, bad.span.column) == (9, 21)
    assert "^" in bad.render()


def test_a_linked_folder_is_told_and_the_folders_that_are_named_may_be_links(kb: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / rule_file(kb).parent.name / "widget-rust.yaml", RULE.replace("widget-jam", "widget-rust"))
    (tmp_path / "named").symlink_to(kb)
    assert not load(Options(kb=(tmp_path / "named",))).problems
    link = kb / "rules" / "team"
    link.symlink_to(elsewhere)
    (kb / "findings" / "more").symlink_to(elsewhere)
    for _ in "read", "cached":
        found = load(Options(kb=(kb,)))
        assert "widget-rust" not in found.rules
        assert [(p.code, p.span.path) for p in found.problems if p.span] == [
            ("K014", str(link)),
            ("K014", str(kb / "findings" / "more")),
        ]
    assert [p.code for p in load_rules([kb / "rules"]).problems] == ["K014"]
    link.unlink()
    (kb / "findings" / "more").unlink()
    assert not load(Options(kb=(kb,))).problems
    assert "widget-rust" in load(Options(kb=(kb,), rules=(elsewhere,))).rules


def test_precedence_and_override(kb: Path, tmp_path: Path) -> None:
    shipped = load().findings[0]
    own = kb / "findings" / f"{shipped.id}.md"
    write(own, FINDING.replace("widget-without-oil", shipped.id))
    known = load(Options(kb=(kb,)))
    assert [p.code for p in known.problems] == ["K008"]
    assert known.finding(shipped.id) == shipped
    write(
        own,
        FINDING.replace("widget-without-oil", shipped.id).replace(
            "status: confirmed", "status: confirmed\noverride: true"
        ),
    )
    known = load(Options(kb=(kb,)))
    found = known.finding(shipped.id)
    assert known.problems == () and found is not None and found.title == "The widget runs without oil"


def test_forensics_toml(kb: Path, tmp_path: Path) -> None:
    shipped = load().findings[0].id
    config = write(
        tmp_path / "forensics.toml",
        f'[kb]\npaths = ["kb"]\nnamespace = "acme"\ndisabled = ["{shipped}"]\nrequires = ">=0.1"\n[privacy]\nsecrets = ["tok-[0-9]+"]\nallow_env = ["ACME"]\n',
    )
    finding_file(kb).write_text(FINDING.replace("- widget-jam", "- acme/widget-jam"))
    known = load(Options(config=config))
    assert known.problems == ()
    assert "acme/widget-jam" in known.rules and known.finding("acme/widget-without-oil") is not None
    assert known.finding(shipped) is None
    assert known.config.secrets == ("tok-[0-9]+",) and known.config.allow_env == ("ACME",)


def test_forensics_toml_of_the_current_folder(kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["kb"]\n')
    monkeypatch.chdir(tmp_path)
    assert load().finding("widget-without-oil") is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[kb]\npathes = []\n", "unknown key"),
        ("[kb]\npaths = 3\n", "list of texts"),
        ("[kb\n", "not TOML"),
        ('[kb]\nrequires = ">=99"\n', "needs forensics"),
        ("[other]\nx = 1\n", "unknown key"),
        ('[privacy]\nsecrets = ["a(?=b)"]\n', "not RE2"),
        ('[kb]\nnamespace = "Acme Inc"\n', "namespace"),
    ],
)
def test_a_bad_forensics_toml_is_told(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        load(Options(config=write(tmp_path / "forensics.toml", text)))
    assert said in error.value.message and error.value.hint


@pytest.mark.parametrize(
    ("text", "code", "place", "hint"),
    [
        ('[kb]\npaths = ["kb", "knowlege"]\n', "K012", (2, 17), "mkdir -p knowlege"),
        ('[kb]\nrules = ["rools"]\n', "K012", (2, 11), "mkdir -p rools"),
        ('[kb]\ndisabled = ["fp16-overflw"]\n', "K013", (2, 14), "did you mean `fp16-overflow`?"),
        ('[kb]\noverride = ["nan-probabilitys"]\n', "K013", (2, 14), "did you mean `nan-probabilities`?"),
        ("[kb]\noverride = ['zz']\n", "K013", (2, 14), "forensics kb list"),
    ],
)
def test_what_forensics_toml_names_and_nobody_has(
    kb: Path, tmp_path: Path, text: str, code: str, place: tuple[int, int], hint: str
) -> None:
    known = load(Options(config=write(tmp_path / "forensics.toml", text)))
    (problem,) = known.problems
    assert problem.code == code and problem.span is not None
    assert (problem.span.line, problem.span.column) == place and hint in problem.hint


def test_requires_of_a_finding(kb: Path) -> None:
    finding_file(kb).write_text(FINDING.replace("status: confirmed", 'status: confirmed\nrequires: ">=99"'))
    known = load(Options(kb=(kb,)))
    assert known.finding("widget-without-oil") is None and [p.code for p in known.problems] == ["K011"]


# -- cache ---------------------------------------------------------------------------------------------------------


def test_the_cache_gives_the_same_and_follows_changes(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(kb, kb / "rules")
    first = read_root(root)
    monkeypatch.setattr(reading, "_parse", lambda *_: pytest.fail("parsed although nothing changed"))
    assert read_root(root) == first
    monkeypatch.undo()
    rule_file(kb).write_text(RULE.replace("The widget jams", "Another title"))
    assert read_root(root).rules[0].title == "Another title"


def test_problems_are_cached_too(kb: Path) -> None:
    write(kb / "findings" / "no-front.md", "# Just text\n")
    first, second = (read_root(Root(kb, None)).problems for _ in range(2))
    assert [p.render() for p in first] == [p.render() for p in second] and len(first) == 1


def test_a_damaged_or_unwritable_cache_is_no_reason_to_fail(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root(kb, kb / "rules")
    first = read_root(root)
    folder = cache_folder()
    assert folder is not None
    for content in (
        "{",
        "[]",
        '{"rules": [99]}',
        json.dumps(
            {"rules": [-1], "findings": 3, "deployments": None, "problems": [], "conditions": {}, "literals": {}}
        ),
    ):
        for file in folder.glob("*.json"):
            file.write_text(content)
        assert read_root(root) == first
    monkeypatch.setenv("FORENSICS_CACHE", str(rule_file(kb)))
    assert read_root(root) == first
    monkeypatch.setenv("FORENSICS_CACHE", "off")
    assert read_root(root) == first


def test_the_codec_gives_back_what_it_got() -> None:
    known = load()
    for item in (*known.rules.values(), *known.findings, *known.deployments):
        assert decode(json.loads(json.dumps(encode(item)))) == item


def test_shipped_files_are_named_by_their_place_in_the_project() -> None:
    known = load()
    assert all(f.span.path.startswith("kb/findings/") for f in known.findings)
    assert all(r.span.path.startswith("rules/") for r in known.rules.values())
    files = files_of(builtin_root())
    assert len(files.findings) == len(known.findings)


def test_deployments_are_checked(kb: Path) -> None:
    write(
        kb / "deployments" / "known-good.md", DEPLOYMENT.replace("served", "seen").replace("count: 8", "count: eight")
    )
    known = load(Options(kb=(kb,)))
    assert [p.code for p in known.problems] == ["K005", "K002"]


def test_settled_files_are_not_read_again(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Root(kb, kb / "rules")
    asked: list[Root] = []
    monkeypatch.setattr(reading, "files_of", lambda given: asked.append(given) or files_of(given))
    first = read_root(root)
    assert read_root(root) == first
    assert len(asked) == 2, "written a moment ago: the next change might bear the same time"
    monkeypatch.setattr(stamps, "_SETTLED_S", -1.0)
    assert read_root(root) == read_root(root) == first
    assert len(asked) == 3


@pytest.mark.parametrize("change", ["same size", "new rule", "gone", "renamed"])
def test_every_change_of_a_file_is_seen(kb: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    def said() -> tuple[object, ...]:
        found = read_root(Root(kb, kb / "rules"))
        return found.rules, found.findings, [str(problem) for problem in found.problems]

    monkeypatch.setattr(stamps, "_SETTLED_S", -1.0)
    before, path = said(), rule_file(kb)
    times = path.stat()
    if change == "same size":
        path.write_text(path.read_text().replace("title: The", "title: One"))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert path.stat().st_size == times.st_size
    elif change == "new rule":
        path.with_name("gadget-jam.yaml").write_text(path.read_text().replace("widget", "gadget"))
    elif change == "gone":
        path.unlink()
    else:
        path.rename(path.with_name("other-name.yaml"))
    after = said()
    assert after != before
    monkeypatch.setenv("FORENSICS_CACHE", "off")
    assert after == said()
