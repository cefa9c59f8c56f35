"""What pre-commit runs: a good change passes, every kind of bad one is refused with the place and what to do."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kb_files import FINDING, RULE, write

from forensics.cli.main import run

ROOT = Path(__file__).parent.parent
PAGE, RULE_PATH, README = "kb/findings/widget-without-oil.md", "rules/runtime/widget-jam.yaml", "kb/README.md"
NEAR = FINDING[FINDING.index("```log near-miss") : FINDING.index("\n\n## Fix")]
PATTERN = "widget (?P<n>\\d+) is jammed"
OWN = (
    FINDING.replace("- widget-jam\n", "- acme/widget-jam\n")
    .replace("- widget-jam on", "- acme/widget-jam on")
    .replace("[widget-jam]", "[acme/widget-jam]")
)


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A team's repository with an index, as the current folder."""
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["kb"]\nrules = ["rules"]\nnamespace = "acme"\n')
    write(tmp_path / PAGE, OWN)
    write(tmp_path / RULE_PATH, RULE)
    monkeypatch.chdir(tmp_path)
    assert run(["kb", "index"]) == 0
    capsys.readouterr()
    return tmp_path


def changed(path: str, old: str, new: str) -> None:
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new, 1))


def test_good_changes_pass(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "hook", PAGE, RULE_PATH, README, "kb/findings/deleted.md"]) == 0, capsys.readouterr().out
    changed(PAGE, "No oil.", "There is no oil.")
    assert run(["kb", "hook", PAGE]) == 0, capsys.readouterr().out


BAD = [
    ("unknown key", PAGE, "log_evidence:", "log_evidense:", "K003", "did you mean `log_evidence`?"),
    ("opposite word", PAGE, "op: set", "op: unset", "K005", "did you mean `remove`?"),
    ("dead rule", PAGE, "- acme/widget-jam\n", "- acme/widget-jem\n", "C202", "did you mean `acme/widget-jam`?"),
    ("rule without namespace", PAGE, "- acme/widget-jam\n", "- widget-jam\n", "C202", "did you mean `acme/widget-jam`?"),
    ("dead look-alike", PAGE, "fix:", "look_alikes: [no-such-thing]\nfix:", "F301", "take the reference out"),
    ("bad condition", PAGE, "- args.tp_size = 2", "- args.tp_size >", "C201", "expected here: a name, a number"),
    ("unknown argument", PAGE, "- args.tp_size = 2", "- args.tp_sise = 2", "C207", "did you mean `args.tp_size`?"),
    ("no near miss", PAGE, NEAR, "", "F306", "add a fenced block ```log near-miss"),
    ("near miss is a match", PAGE, "widget 3 is squeaking", "widget 3 is jammed", "L407", "demand under `must` what tells them apart"),
    ("healthy line", RULE_PATH, PATTERN, "Load weight (?P<n>begin)", "R107", "say more of the message"),
    ("path in a pattern", RULE_PATH, PATTERN, "/mnt/models/x: widget (?P<n>\\d+)", "R103", "or say under `mechanism:`"),
    ("number in a pattern", RULE_PATH, PATTERN, "widget 41 of (?P<n>\\d+)", "R103", "write `\\d+`"),
    ("model in a pattern", RULE_PATH, PATTERN, "widget (?P<n>\\d+) of qwen", "R103", "write `\\S+`"),
    ("no RE2", RULE_PATH, PATTERN, "widget (?P<n>\\d+)(?! x)", "R101", "under `not`"),
    ("secret", PAGE, "widget 3 is jammed", "widget 3 is jammed api_key='abcdefghijklmnop'", "S401", "write `"),
    ("user name", PAGE, "/models/m", "/home/jdoe/m", "S402", "write `user`"),
    ("unknown flag", PAGE, "--tp-size", "--tp-sizes", "F309", "did you mean `--tp-size`?"),
    ("draft text", PAGE, "No oil.", "The mechanism, in a few sentences.", "F316", "write it"),
    ("stale index", PAGE, "status: confirmed", "status: suspected", "X501", "run `forensics kb index`"),
    ("index by hand", README, "| confirmed |", "| proved |", "X501", "run `forensics kb index`"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "old", "new", "code", "hint"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_changes_are_refused_and_told_what_to_do(
    team: Path, capsys: pytest.CaptureFixture[str], path: str, old: str, new: str, code: str, hint: str
) -> None:
    changed(path, old, new)
    assert run(["kb", "hook", path]) == 1
    said = capsys.readouterr().out
    place = README if code == "X501" else path
    assert f"{place}:" in said and f"[{code}]" in said and hint in said
    # One slip is told once (a dead name wherever it stands), and a stale index not before the files are whole.
    codes = set(re.findall(r": \[([A-Z]\d+)\]", said))
    assert codes == {code} or (code == "C207" and codes == {code, "F308"})


@pytest.mark.parametrize("shipped", [False, True])
def test_restatements_are_refused(team: Path, shipped: bool, capsys: pytest.CaptureFixture[str]) -> None:
    name = "tp-size-not-dividing-vocab" if shipped else "widget-without-oil"
    text = (ROOT / "kb" / "findings" / f"{name}.md").read_text() if shipped else OWN
    write(team / "kb" / "findings" / "again.md", text.replace(f"id: {name}", "id: again", 1))
    assert run(["kb", "hook", "kb/findings/again.md"]) == 1
    said = capsys.readouterr().out
    assert "[F315]" in said and name in said and "add what is new to that finding" in said


def test_fix_never_writes_the_opposite(team: Path) -> None:
    changed(PAGE, 'op: set, name: --tp-size, value: "1"', "op: unset, name: --tp-size")
    assert run(["kb", "lint", PAGE, "--fix"]) == 0
    assert "op: remove" in Path(PAGE).read_text()


def test_a_finding_that_cannot_be_read_is_not_called_tested(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(PAGE, "log_evidence:", "log_evidense:")
    assert run(["kb", "test", PAGE]) == 1
    assert "[K003]" in capsys.readouterr().out


def test_the_index_of_a_team_holds_its_own_files(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path(README).read_text()
    assert (
        "1 findings (1 confirmed" in text
        and "1 rules, 0 deployments" in text
        and "tp-size-not-dividing-vocab" not in text
    )
    assert "[acme/widget-without-oil](findings/widget-without-oil.md)" in text
    # A README of a team without an index stays as it is.
    Path(README).write_text("# Ours\n")
    assert run(["kb", "hook", PAGE, README]) == 0, capsys.readouterr().out


def test_search_says_when_nothing_is_known(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "search", "ValueError: widget 77 is jammed"]) == 0
    assert "nothing known" not in capsys.readouterr().err
    run(["kb", "search", "QuuxError: frobnicated a blarg of width 12 into the zorp"])
    assert "nothing" in capsys.readouterr().err


# -- the real program ---------------------------------------------------------------------------------------------------


def cpu(*words: str) -> float:
    """CPU seconds of a `kb hook` in a process of its own, which must pass."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "kb", "hook", *words], capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout + done.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_one_file_takes_less_than_two_seconds(team: Path) -> None:
    assert cpu(PAGE) < 2.0


@pytest.mark.slow
def test_two_hundred_findings_take_less_than_twenty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    files = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "kb" / "findings").glob("*.md"))[:200]
    assert len(files) == 200 and cpu(*files) < 20.0


PRE_COMMIT = shutil.which("pre-commit", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")


@pytest.mark.skipif(PRE_COMMIT is None, reason="pre-commit is not installed")
def test_the_pre_commit_program_runs_the_hooks(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRE_COMMIT_HOME", str(team.parent / "pre-commit-home"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    entry = f"{sys.executable} -m forensics kb hook"
    # The hooks as shipped, but without an environment to build.
    local = [{**h, "language": "system", "entry": entry} for h in hooks if h["entry"] == "forensics kb hook"]
    write(team / ".pre-commit-config.yaml", yaml.safe_dump({"repos": [{"repo": "local", "hooks": local}]}))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def program() -> subprocess.CompletedProcess[str]:
        subprocess.run(["git", "add", "-A"], check=True)
        return subprocess.run([str(PRE_COMMIT), "run"], capture_output=True, text=True, check=False)

    subprocess.run(["git", "init", "-q", "."], check=True)
    done = program()
    assert done.returncode == 0 and done.stdout.count("Passed") == 2, done.stdout + done.stderr
    changed(PAGE, NEAR, "")
    changed(RULE_PATH, PATTERN, "Load weight (?P<n>begin)")
    done = program()
    assert done.returncode == 1 and "[F306]" in done.stdout and "[R107]" in done.stdout and "hint:" in done.stdout
