"""A draft that nobody filled in takes part in no diagnosis, and the report says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from kb_files import CRASH, write

from forensics import analyze
from forensics.cli.main import run
from forensics.knowledge.draft import UNFILLED
from forensics.knowledge.store import load
from forensics.schema.options import Options


@pytest.fixture
def draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A draft in a project of its own, made from the log's report."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["kb"]\nrules = ["rules"]\n')
    (tmp_path / "rules").mkdir()
    write(tmp_path / "server.log", CRASH)
    run(["analyze", "server.log", "--format", "json", "-o", "report.json"])
    assert run(["kb", "new", "--from", "report.json", "--id", "width-differs"]) == 0
    return tmp_path / "kb" / "findings" / "width-differs.md"


def test_a_draft_takes_no_part_and_is_told(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = analyze(["server.log"])
    assert all(h.finding != "width-differs" for launch in report.launches for h in launch.hypotheses)
    told = [p for p in report.problems if p.code == "F316"]
    assert len(told) == 1 and "unfinished draft" in told[0].message and told[0].line
    line = draft.read_text().splitlines()[told[0].line - 1]
    assert any(text in line for text in UNFILLED)
    run(["analyze", "server.log"])
    assert "width-differs is an unfinished draft" in " ".join(capsys.readouterr().out.split())


def test_a_filled_in_draft_counts(draft: Path) -> None:
    text = draft.read_text()
    for number, told in enumerate(sorted(UNFILLED)):
        text = text.replace(told, f"written by the author, number {number}")
    draft.write_text(text)
    report = analyze(["server.log"])
    assert any(h.finding == "width-differs" for launch in report.launches for h in launch.hypotheses)
    assert not [p for p in report.problems if p.code == "F316"]


def test_the_tools_of_the_author_see_the_draft(draft: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "lint"]) == 1 and "F316" in capsys.readouterr().out
    assert run(["kb", "list"]) == 0 and "width-differs" in capsys.readouterr().out
    assert "width-differs" in {f.id for f in load(Options(), drafts=True).findings}


def test_a_draft_replaces_no_finished_page(draft: Path) -> None:
    shipped = load(Options()).findings[0]
    text = draft.read_text().replace("id: width-differs", f"id: {shipped.id}\noverride: true")
    draft.unlink()
    write(draft.with_name(f"{shipped.id}.md"), text)
    found = load(Options()).finding(shipped.id)
    assert found is not None and found.title == shipped.title
