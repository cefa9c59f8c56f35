"""From replay to history to a later analysis: a fix that was refuted or proved here before is said so."""

import json
import shutil
import subprocess
from pathlib import Path

from replay_kit import FORENSICS, command, replay, verdict

from forensics.history import History, Verdict


def finding(folder: Path, name: str, flag: str, value: str) -> None:
    path = folder / "kb" / "findings" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'---\nid: {name}\ntitle: {name}\ncategory: runtime\nstatus: suspected\nversions: ""\nsources: []\n'
        f"grounds:\n  must: [nan-probabilities]\nexplains: [nan-probabilities]\n"
        f"fix:\n  - {{kind: flag, op: set, name: {flag}, value: '{value}', runnable: true}}\nlog_evidence: real\n---\n# {name}\n"
    )


def analyzed(folder: Path, *more: str) -> dict[str, dict]:
    """Hypotheses of server.log by finding."""
    words = [*FORENSICS, "analyze", "server.log", "--kb", "kb", "--format", "json", *more]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    return {h["finding"]: h for h in report["launches"][-1]["hypotheses"]}


def grounds(hypothesis: dict, side: str) -> str:
    return " ".join(g["why"] for g in hypothesis["grounds"] if g["side"] == side)


def test_verdicts_of_replays_count_in_later_analyses_that_name_the_history(tmp_path):
    finding(tmp_path, "fewer-requests", "--max-running-requests", "4")
    finding(tmp_path, "other-dtype", "--dtype", "bfloat16")
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16")
    wrong = replay(tmp_path, "--launch", launch, "--fix", "--max-running-requests=4", "--control", "--yes")
    assert verdict(wrong) == "still-failing"
    (run,) = (tmp_path / "runs").iterdir()
    shutil.copyfile(run / "control.log", tmp_path / "server.log")

    before = analyzed(tmp_path)
    assert before["fewer-requests"]["verdict"] == "possible", "no history is read unless it is named"
    refuted = analyzed(tmp_path, "--history", "history.db")["fewer-requests"]
    assert refuted["verdict"] == "ruled-out"
    assert f"run {run.name}: --max-running-requests=4 did not end the same failure" in grounds(refuted, "against")
    text = subprocess.run(
        [*FORENSICS, "analyze", "server.log", "--kb", "kb", "--history", "history.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "--max-running-requests=4 did not end the same failure" in " ".join(text.stdout.split())

    right = replay(
        tmp_path, "server.log", "--kb", "kb", "--launch", launch, "--hypothesis", "other-dtype", "--control", "--yes"
    )
    assert verdict(right) == "fixed", right.stdout + right.stderr
    proved = analyzed(tmp_path, "--history", "history.db")["other-dtype"]
    assert proved["verdict"] == "likely"
    assert "--dtype=bfloat16 ended the same failure" in grounds(proved, "for")
    ladder = ("server.log", "--kb", "kb", "--launch", launch, "--ladder")
    assert "[fewer-requests]" in replay(tmp_path, *ladder).stdout
    assert "[fewer-requests]" not in replay(tmp_path, *ladder, "--history", "history.db").stdout
    assert analyzed(tmp_path)["fewer-requests"]["verdict"] == "possible"

    listed = subprocess.run(
        [*FORENSICS, "history", "--db", "history.db"], cwd=tmp_path, capture_output=True, text=True
    ).stdout
    assert "still-failing" in listed and "fixed" in listed and "launch died" in listed and "launch answered" in listed
    searched = subprocess.run(
        [*FORENSICS, "history", "bfloat16", "--verdicts", "--db", "history.db"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "other-dtype" in searched.stdout and "fewer-requests" not in searched.stdout


def test_the_latest_verdict_counts(tmp_path):
    store = History(tmp_path / "h.db")
    for run, outcome in (("r1", "still-failing"), ("r2", "fixed"), ("r2", "fixed")):
        store.add_verdict(Verdict(run, "f", outcome, ("--a=b",)))
    assert [v.outcome for v in store.verdicts("f")] == ["still-failing", "fixed"]


def test_a_history_that_cannot_be_written_costs_no_verdict(tmp_path):
    (tmp_path / "history.db").write_bytes(b"not a database at all" * 100)
    launch = command(tmp_path, "--dtype float16", needs="dtype=bfloat16")
    done = replay(tmp_path, "--launch", launch, "--fix", "--dtype=bfloat16", "--yes")
    assert verdict(done) == "passes" and done.returncode == 2
    assert "name another file with --db" in done.stderr
