"""Where `forensics kb new` writes: the project's own base, never the installed program's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kb_files import CRASH, write

from forensics.cli.main import run
from forensics.knowledge.roots import builtin_root


def shipped() -> set[Path]:
    root = builtin_root()
    return {p for folder in (root.kb, root.rules) if folder is not None for p in folder.rglob("*") if p.is_file()}


def test_a_folder_of_no_project_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "server.log", CRASH)
    run(["analyze", "server.log", "--format", "json", "-o", "report.json"])
    before = shipped()
    assert run(["kb", "new", "--from", "report.json", "--id", "own-width"]) == 2
    said = capsys.readouterr().err
    assert "belongs to no knowledge base" in said and "--into DIR" in said and "mkdir -p kb/findings" in said
    assert run(["kb", "new", "Widths differ"]) == 2
    assert shipped() == before
    assert run(["kb", "new", "--from", "report.json", "--id", "own-width", "--into", "ours"]) == 0
    assert (tmp_path / "ours/findings/own-width.md").is_file() and shipped() == before


def test_a_kb_folder_here_is_the_projects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kb").mkdir()
    assert run(["kb", "new", "Widths differ"]) == 2, "an empty folder is no knowledge base yet"
    (tmp_path / "kb" / "findings").mkdir()
    assert run(["kb", "new", "Widths differ"]) == 0
    assert (tmp_path / "kb/findings/widths-differ.md").is_file()


def test_below_a_project_its_own_base_is_found(tmp_path: Path) -> None:
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["knowledge"]\nnamespace = "acme"\n')
    (tmp_path / "logs" / "today").mkdir(parents=True)
    command = [sys.executable, "-m", "forensics", "kb", "new", "Widths differ"]
    done = subprocess.run(command, cwd=tmp_path / "logs" / "today", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "knowledge/findings/widths-differ.md").is_file()


def test_another_repositorys_settings_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["kb"]\n')
    inner = tmp_path / "vendor"
    (inner / ".git").mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert run(["kb", "new", "Widths differ"]) == 2
