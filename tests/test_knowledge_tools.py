"""The kb tools: search, restatements, index, import, drafts, schemas, executable blocks, the hook."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from kb_files import DEPLOYMENT, FINDING, RULE, finding_file, lib_of, rule_file, small_base, write

from forensics.cli.main import run
from forensics.knowledge.draft import open_pattern, slug
from forensics.knowledge.finding import check_finding
from forensics.knowledge.importer import split_findings
from forensics.knowledge.index import BEGIN, END, index_text, stale, with_index
from forensics.knowledge.json_schema import schema_of
from forensics.knowledge.search import search
from forensics.knowledge.similar import nearest_profiles, profile, similar
from forensics.knowledge.store import load
from forensics.rulebook.patterns import compiled
from forensics.schema.options import Options

ROOT = Path(__file__).parent.parent


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return small_base(tmp_path)


# -- search ---------------------------------------------------------------------------------------------------------


def test_search_by_words(kb: Path) -> None:
    hits = search("widget oil", lib_of(kb))
    assert hits[0].id in ("widget-without-oil", "widget-jam")
    assert {h.id for h in hits[:2]} == {"widget-without-oil", "widget-jam"}


def test_search_by_a_pasted_message_with_other_numbers(kb: Path) -> None:
    lib = lib_of(kb)
    hits = search("[2027-09-09 09:09:09 TP7] ValueError: widget 999 is jammed", lib)
    assert [(h.kind, h.id) for h in hits[:2]] == [("rule", "widget-jam"), ("finding", "widget-without-oil")]


def test_search_finds_messages_that_no_rule_knows_by_likeness(kb: Path) -> None:
    rule_file(kb).write_text(RULE.replace("is jammed", "has stopped"))
    hits = search("ValueError: widget 17 is jammd", lib_of(kb))
    assert hits[0].id == "widget-without-oil" and "its log holds" in hits[0].why


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "a* NEAR(b)", "'; drop table entries; --", "é\x00\x1b[31m", " "])
def test_search_takes_any_text(kb: Path, query: str) -> None:
    lib = lib_of(kb)
    known = {*lib.findings, *lib.rules, *(d.id for d in lib.knowledge.deployments)}
    assert {h.id for h in search(query, lib)} <= known


# -- restatements -----------------------------------------------------------------------------------------------------


def test_a_restatement_is_refused(kb: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = FINDING.replace("id: widget-without-oil", "id: dry-widget").replace(
        "The widget runs without oil", "A dry widget"
    )
    path = write(kb / "findings" / "dry-widget.md", again)
    finding, _ = check_finding(path)
    assert finding is not None
    near = similar(finding, lib_of(kb).knowledge.findings)
    assert near[0].id == "widget-without-oil" and near[0].restates
    assert run(["kb", "similar", str(path)]) == 1
    assert "restates widget-without-oil" in capsys.readouterr().out


def test_a_new_cause_of_the_same_signal_is_no_restatement(kb: Path) -> None:
    other = (
        FINDING.replace("widget-without-oil", "widget-too-hot")
        .replace("The widget runs without oil", "The room is too hot for widgets")
        .replace("    - args.tp_size = 2\n", "    - gpu.family = ada\n")
        .replace("Oil it.", "Cool the room.")
        .replace("No oil.", "Heat bends it.")
        .replace("A jam on every rank.", "It stops at noon.")
        .replace('--tp-size, value: "1"', '--mem-fraction-static, value: "0.8"')
    )
    finding, problems = check_finding(write(kb / "findings" / "widget-too-hot.md", other))
    assert finding is not None, problems
    assert not any(n.restates for n in similar(finding, lib_of(kb).knowledge.findings))


def test_no_shipped_finding_restates_another() -> None:
    findings = load().findings
    profiles = [profile(f) for f in findings]
    bad = [(p.finding.id, n.id, n.why) for p in profiles for n in nearest_profiles(p, profiles) if n.restates]
    assert bad == []


# -- index ---------------------------------------------------------------------------------------------------------


def test_the_index_is_written_and_goes_stale(kb: Path) -> None:
    readme = write(kb / "README.md", "# Our base\n\nText.\n")
    assert stale(readme, lib_of(kb)) is not None
    readme.write_text(with_index(readme.read_text(), index_text(lib_of(kb))))
    text = readme.read_text()
    assert text.startswith("# Our base\n\nText.\n") and "[widget-without-oil](findings/widget-without-oil.md)" in text
    assert stale(readme, lib_of(kb)) is None
    finding_file(kb).write_text(FINDING.replace("status: confirmed", "status: suspected"))
    problem = stale(readme, lib_of(kb))
    assert problem is not None and problem.code == "X501" and problem.span.line > 1


def test_text_around_the_index_stays() -> None:
    assert with_index(f"a\n{BEGIN}\nold\n{END}\nb\n", f"{BEGIN}\nnew\n{END}") == f"a\n{BEGIN}\nnew\n{END}\nb\n"


# -- import ----------------------------------------------------------------------------------------------------------

NOTES = """Some words before.

## NaN after the upgrade

Seen with https://github.com/sgl-project/sglang/issues/123.

### Fix

Set `X=1`.

```text
## not a heading
```

## Hang at start

Look at [this](https://example.org/x).

## Hang at start

Another one.
"""


def test_notes_become_drafts_and_nothing_is_lost(tmp_path: Path) -> None:
    drafts = split_findings(NOTES)
    assert [d.id for d in drafts] == ["imported-preface", "nan-after-the-upgrade", "hang-at-start", "hang-at-start-2"]
    everything = "\n".join(d.text for d in drafts)
    for line in NOTES.split("\n"):
        assert line.lstrip("# ").strip() in everything
    assert "sgl-project/sglang#123" in drafts[1].text and "status: suspected" in drafts[1].text
    covered = [n for d in drafts for n in range(d.lines[0], d.lines[1] + 1)]
    assert covered == list(range(1, len(NOTES.split("\n")) + 1))
    for draft in drafts:
        finding, problems = check_finding(write(tmp_path / "findings" / f"{draft.id}.md", draft.text))
        assert finding is not None, [p.render() for p in problems]
        assert finding.status == "suspected"


@pytest.mark.parametrize("text", ["", "   \n", "no headings at all", "# Only a title\n\ntext", "#\n##\n", "```\n# x\n"])
def test_odd_notes(text: str) -> None:
    drafts = split_findings(text)
    assert bool(drafts) is bool(text.strip())


def test_import_writes_files_and_refuses_to_overwrite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = write(tmp_path / "FINDINGS.md", NOTES)
    assert run(["kb", "import", str(notes), "--into", str(tmp_path / "kb")]) == 0
    assert len(list((tmp_path / "kb" / "findings").glob("*.md"))) == 4
    assert run(["kb", "import", str(notes), "--into", str(tmp_path / "kb")]) == 2
    assert "exists already" in capsys.readouterr().err


# -- new -------------------------------------------------------------------------------------------------------------


def test_an_empty_draft_is_well_formed(tmp_path: Path) -> None:
    assert run(["kb", "new", "Ranks disagree: about lunch", "--into", str(tmp_path / "kb")]) == 0
    finding, problems = check_finding(tmp_path / "kb" / "findings" / "ranks-disagree-about-lunch.md")
    assert finding is not None, [p.render() for p in problems]


def report_of(log: Path, tmp_path: Path) -> Path:
    from forensics.analysis import analyze

    return write(tmp_path / "report.json", analyze([str(log)], Options(launch="last")).model_dump_json())


def test_a_draft_from_a_report_has_signals_grounds_and_masked_logs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ROOT / "samples" / "cases" / "run-gpu2-tp2_nan" / "log.txt"
    report = report_of(log, tmp_path)
    assert run(["kb", "new", "--from", str(report), "--id", "our-nan", "--into", str(tmp_path / "kb")]) == 0
    finding, problems = check_finding(tmp_path / "kb" / "findings" / "our-nan.md")
    assert finding is not None, [p.render() for p in problems]
    assert finding.log_evidence == "real" and [b.expect for b in finding.logs] == ["match", "near-miss"]
    assert any(c.strength == "must" for c in finding.grounds)
    assert run(["kb", "test", str(tmp_path / "kb" / "findings" / "our-nan.md")]) in (0, 1)
    assert "1 findings, 2 log blocks" in capsys.readouterr().err


def test_an_unknown_failure_drafts_a_rule_too(tmp_path: Path) -> None:
    log = write(
        tmp_path / "server.log",
        FINDING.split("```log match line=2\n")[1].split("```")[0].replace("widget", "gizmo /opt/models/x"),
    )
    report = report_of(log, tmp_path)
    assert run(["kb", "new", "--from", str(report), "--id", "gizmo-jam", "--into", str(tmp_path / "kb")]) == 0
    (path,) = (tmp_path / "kb" / "rules").glob("*/gizmo-jam.yaml")
    rule = yaml.safe_load(path.read_text())
    (pattern,) = rule["match"]["any"]
    assert compiled(pattern).search("ValueError: gizmo /srv/other 99 is jammed") and "opt" not in pattern


def test_patterns_of_drafts_leave_open_what_varies() -> None:
    said = "CUDA error in '/opt/x/y.cu': code 719 (a|b) [c] at 0.5"
    pattern = open_pattern(said)
    assert compiled(pattern).search(said) and compiled(pattern).search(said.replace("719", "3"))
    assert slug("  42 Ways, to FAIL! ") == "finding-42-ways-to-fail"


def test_a_report_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "new", "--from", str(write(tmp_path / "r.json", "{}")), "--into", str(tmp_path)]) == 2
    assert "is no report" in capsys.readouterr().err


# -- executable blocks -------------------------------------------------------------------------------------------------


def test_blocks_run_through_the_analyzer(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "test", str(finding_file(kb))]) == 0, capsys.readouterr().out
    finding_file(kb).write_text(FINDING.replace("line=2", "line=3").replace("widget 4 is jammed", "widget 4 is fine"))
    assert run(["kb", "test", str(finding_file(kb))]) == 1
    assert "[L408]" in capsys.readouterr().out
    finding_file(kb).write_text(FINDING.replace("squeaking", "jammed"))
    assert run(["kb", "test", str(finding_file(kb))]) == 1
    assert "[L407]" in capsys.readouterr().out
    finding_file(kb).write_text(
        FINDING.replace("widget 3 is jammed", "all is well").replace("widget 4 is jammed", "all is well")
    )
    assert run(["kb", "test", str(finding_file(kb))]) == 1
    assert "[L406]" in capsys.readouterr().out


def test_a_block_may_name_a_sample(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    block = FINDING.split("```log near-miss")[1].split("```")[0]
    finding_file(kb).write_text(FINDING.replace(f"near-miss{block}", "near-miss sample=run-gpu2-tp2_nan\n"))
    assert run(["kb", "test", str(finding_file(kb))]) == 0, capsys.readouterr().out
    finding_file(kb).write_text(FINDING.replace(f"near-miss{block}", "near-miss sample=no-such-case\n"))
    assert run(["kb", "test", str(finding_file(kb))]) == 1
    assert "[L404]" in capsys.readouterr().out


# -- hook, lint, list, show -------------------------------------------------------------------------------------------


def test_the_hook_passes_good_files_and_refuses_bad_ones(
    kb: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [
        "kb/findings/widget-without-oil.md",
        "kb/rules/runtime/widget-jam.yaml",
        "kb/deployments/known-good.md",
        "kb/README.md",
    ]
    assert run(["kb", "hook", *files]) == 0, capsys.readouterr().out
    for old, new, code in [
        ("- widget-jam\n", "- widget-jem-x\n", "C202"),
        ("squeaking", "jammed", "L407"),
        ("```log near-miss", "```text", "F306"),
        ("ValueError: widget 4", "api_key='abcdefghijklmnop' widget 4", "S401"),
    ]:
        finding_file(kb).write_text(FINDING.replace(old, new))
        assert run(["kb", "hook", files[0]]) == 1
        assert f"[{code}]" in capsys.readouterr().out
    finding_file(kb).write_text(FINDING)
    write(kb / "findings" / "dry-widget.md", FINDING.replace("id: widget-without-oil", "id: dry-widget"))
    assert run(["kb", "hook", "kb/findings/dry-widget.md"]) == 1
    assert "[F315]" in capsys.readouterr().out
    rule_file(kb).write_text(RULE.replace("is jammed", "(?!x)"))
    assert run(["kb", "hook", files[1]]) == 1
    assert "[R101]" in capsys.readouterr().out


def test_rules_beside_the_kb_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "rules" / "runtime" / "widget-jam.yaml", RULE)
    write(tmp_path / "kb" / "findings" / "widget-without-oil.md", FINDING)
    monkeypatch.chdir(tmp_path)
    assert run(["kb", "hook", "kb/findings/widget-without-oil.md"]) == 0, capsys.readouterr().out
    assert run(["kb", "hook", "rules/runtime/widget-jam.yaml"]) == 0, capsys.readouterr().out


def test_a_namespace_from_forensics_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["kb"]\nnamespace = "acme"\n')
    small_base(tmp_path)
    finding_file(tmp_path / "kb").write_text(
        FINDING.replace("- widget-jam", "- acme/widget-jam").replace("[widget-jam]", "[acme/widget-jam]")
    )
    write(tmp_path / "kb" / "deployments" / "known-good.md", DEPLOYMENT.replace("[widget-jam]", "[acme/widget-jam]"))
    monkeypatch.chdir(tmp_path)
    assert run(["kb", "lint"]) == 0, capsys.readouterr().out
    assert run(["kb", "hook", "kb/findings/widget-without-oil.md"]) == 0, capsys.readouterr().out
    assert run(["kb", "list", "rules", "--category", "runtime"]) == 0
    assert "acme/widget-jam" in capsys.readouterr().out


def test_lint_as_json_and_with_fix(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding_file(kb).write_text(FINDING.replace("- widget-jam\n", "- widget-jamm\n"))
    assert run(["kb", "lint", str(finding_file(kb)), "--format", "json"]) == 1
    (problem,) = json.loads(capsys.readouterr().out)
    assert (problem["code"], problem["line"], problem["column"], problem["fixable"]) == ("C202", 9, 7, True)
    assert run(["kb", "lint", str(finding_file(kb)), "--fix"]) == 0
    assert finding_file(kb).read_text() == FINDING


def test_list_show_search(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--kb", str(kb)]
    assert run(["kb", "list", "deployments", *more]) == 0
    assert "known-good" in capsys.readouterr().out
    assert run(["kb", "show", "widget-without-oil", *more]) == 0
    assert "The widget turns with oil." in capsys.readouterr().out
    assert run(["kb", "show", "widget-jam", *more]) == 0
    assert "asked for by: widget-without-oil" in capsys.readouterr().out
    assert run(["kb", "show", "widget-jem", *more]) == 2
    assert "did you mean `widget-jam`?" in capsys.readouterr().err
    assert run(["kb", "search", "widget oil", "--format", "json", *more]) == 0
    assert json.loads(capsys.readouterr().out)[0]["kind"] in ("finding", "rule")
    assert run(["kb", "list", "causes"]) == 2
    assert run(["kb", "lint", "no/such/file.md"]) == 2


# -- schemas ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["rule", "finding", "deployment"])
def test_schemas_are_schemas_and_accept_what_is_shipped(what: str) -> None:
    schema = schema_of(what)
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    folder = {"rule": "rules/*/*.yaml", "finding": "kb/findings/*.md", "deployment": "kb/deployments/*.md"}[what]
    for path in sorted(ROOT.glob(folder))[:60]:
        text = path.read_text()
        data = yaml.safe_load(text.split("---\n")[1] if path.suffix == ".md" else text)
        assert [e.message for e in check.iter_errors(data)] == [], path.name


def test_schemas_refuse_unknown_keys() -> None:
    data = yaml.safe_load(RULE)
    check = jsonschema.Draft202012Validator(schema_of("rule"))
    assert not list(check.iter_errors(data))
    assert list(check.iter_errors({**data, "tittle": "x"})) and list(check.iter_errors({**data, "role": "rot"}))


def test_the_hook_file_names_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [h["id"] for h in hooks] == ["forensics-kb", "forensics-rules"]
    assert all(h["entry"] == "forensics kb hook" for h in hooks)
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "kb", "hook", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "pre-commit" in done.stdout
