"""Drafts of findings: what goes in from a report, a named line or a replay, and what lint says until they are filled in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from kb_files import write

from forensics.cli.main import run
from forensics.knowledge.draft import UNFILLED, open_pattern, slug, title_of
from forensics.knowledge.finding import check_finding
from forensics.rulebook.lint import DRAFT_DOCS
from forensics.rulebook.patterns import compiled
from forensics.schema.finding import Finding

ROOT = Path(__file__).parent.parent
RUNS = ROOT / "samples" / "replay"

PLUGIN_LOG = """\
[2026-11-30 09:57:03 TP0] Load weight begin. avail mem=133.51 GB
[2026-11-30 09:57:04 TP0] Load weight end. elapsed=0.12 s, type=Qwen2ForCausalLM, avail mem=133.48 GB, mem usage=0.03 GB.
[2026-11-30 09:57:12] The server is fired up and ready to roll!
[2026-11-30 09:58:05 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/site/sglang/srt/managers/scheduler.py", line 3012, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/srv/acme/steer/plugin.py", line 88, in _hook
    hidden = output[0] + self.vector
acme_steer.errors.SteeringError: steering vector has width 4096 but hidden states of layer 14 have width 5120

[2026-11-30 09:58:05] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
"""
GATEWAY_LOG = """\
[2026-11-30 09:57:12] The server is fired up and ready to roll!
[2026-11-30 09:59:02 TP0] Decode batch, #running-req: 1, #token: 4500, token usage: 0.06, cuda graph: True, gen throughput (token/s): 60.00, #queue-req: 0,
[2026-11-30 09:59:02] acme-gateway: stream timeout after 60s, closing upstream
[2026-11-30 09:59:02] INFO:     10.0.0.7:50110 - "POST /v1/chat/completions HTTP/1.1" 200 OK
"""


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team's repository with a namespace, as the current folder."""
    write(tmp_path / "forensics.toml", '[kb]\npaths = ["kb"]\nrules = ["rules"]\nnamespace = "acme"\n')
    (tmp_path / "kb" / "findings").mkdir(parents=True)
    (tmp_path / "rules").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def report(log: str) -> str:
    """The path of the report about a log."""
    write(Path("server.log"), log)
    run(["analyze", "server.log", "--format", "json", "-o", "report.json"])
    return "report.json"


def finding(name: str) -> Finding:
    found, problems = check_finding(Path("kb") / "findings" / f"{name}.md", "acme")
    assert found is not None, [p.render() for p in problems]
    return found


def grounds(found: Finding, strength: str) -> list[str]:
    return [c.text for c in found.grounds if c.strength == strength]


def filled(name: str) -> None:
    """The draft and its rule as the author leaves them."""
    for path in (Path("kb") / "findings" / f"{name}.md", *Path("rules").glob(f"*/{name}.yaml")):
        text = path.read_text()
        for number, told in enumerate(sorted({*UNFILLED, DRAFT_DOCS})):
            text = text.replace(told, f"written by the author, number {number}")
        path.write_text(text)


# -- from a report ------------------------------------------------------------------------------------------------


def test_a_wrapper_is_no_ground_and_the_rule_is_drafted_in_the_namespace(
    team: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kb", "new", "--from", report(PLUGIN_LOG), "--id", "steering-width"]) == 0
    assert "shorten the pattern of rules/runtime/steering-width.yaml" in capsys.readouterr().err
    found = finding("steering-width")
    assert grounds(found, "must") == ["acme/steering-width"] and found.versions == ""
    assert found.title == "SteeringError: steering vector has width … but hidden states of layer … have width"
    (pattern,) = yaml.safe_load(Path("rules/runtime/steering-width.yaml").read_text())["match"]["any"]
    assert compiled(pattern).search(
        "acme_steer.errors.SteeringError: steering vector has width 7 but hidden states of layer 3 have width 9"
    )
    assert "4096" not in pattern and pattern.endswith("have width")
    # Nothing is left to do but to write the words.
    assert run(["kb", "lint"]) == 1
    assert {
        line.split("[")[1][:4] for line in capsys.readouterr().out.split("\n") if "[" in line and ": [" in line
    } == {"F316", "R112"}
    filled("steering-width")
    assert run(["kb", "lint"]) == 0, capsys.readouterr().out
    assert run(["kb", "test"]) == 0, capsys.readouterr().out
    assert run(["kb", "hook", "kb/findings/steering-width.md", "rules/runtime/steering-width.yaml"]) == 0, (
        capsys.readouterr().out
    )


def test_a_draft_holds_no_names_and_no_addresses(team: Path) -> None:
    log = PLUGIN_LOG.replace("/opt/site", "/home/jdoe/site").replace("/srv/acme", "/Users/jdoe/acme from 8.8.4.4")
    assert run(["kb", "new", "--from", report(log), "--id", "steering-width"]) == 0
    text = Path("kb/findings/steering-width.md").read_text()
    assert "jdoe" not in text and "8.8.4.4" not in text
    assert "/home/user/site" in text and "/Users/user/acme" in text


def test_a_line_may_be_named_where_the_report_shows_no_failure(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(GATEWAY_LOG)
    assert run(["kb", "new", "--from", made]) == 2
    assert "--line N" in capsys.readouterr().err
    assert run(["kb", "new", "--from", made, "--line", "40"]) == 2
    assert "line 40 is not in server.log" in capsys.readouterr().err
    assert run(["kb", "new", "The gateway cuts streams", "--from", made, "--line", "3", "--category", "network"]) == 0
    found = finding("the-gateway-cuts-streams")
    assert found.logs[0].named_line == 3 and found.category == "network"
    filled("the-gateway-cuts-streams")
    assert run(["kb", "lint"]) == 0, capsys.readouterr().out
    assert run(["kb", "test"]) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [(["--id", "Bad Id"], "`bad-id`"), (["--category", "netwrok"], "there is no category"), ([], "give a title")],
)
def test_bad_usage(team: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str) -> None:
    assert run(["kb", "new", *(["T", *more] if more else [])]) == 2
    assert said in capsys.readouterr().err


def test_titles_ids_and_patterns_hold_nothing_of_one_log() -> None:
    said = "OSError: [Errno 116] Stale file handle: '/mnt/models/tiny/model-00009-of-00032.safetensors'"
    assert title_of(said) == "OSError: [Errno …] Stale file handle"
    assert open_pattern(said) == r"OSError: \[Errno -?[\d.]+\] Stale file handle"
    assert open_pattern("timeout after 60s, closing") == r"timeout after -?[\d.]+s, closing"
    assert title_of("a.b.C: x") == "C: x" and title_of("'x'")
    assert len(slug("word " * 40)) <= 60 and not slug("word " * 40).endswith(("-", "wor"))


# -- from a replay --------------------------------------------------------------------------------------------------


def test_a_proved_replay_is_confirmed(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "new", "--from-run", str(RUNS / "h200-fp8-kv"), "--id", "kv"]) == 0, capsys.readouterr().err
    found = finding("kv")
    assert found.status == "confirmed" and found.category == "numerics" and found.log_evidence == "real"
    assert grounds(found, "must") == ["nan-probabilities"]
    assert "args.kv_cache_dtype = fp8_e4m3" in grounds(found, "strong")
    (step,) = found.fix
    assert (step.kind, step.op, step.name, step.value, step.runnable) == (
        "flag",
        "set",
        "--kv-cache-dtype",
        "fp8_e5m2",
        True,
    )
    assert "every request is answered" in found.verify and found.sources == ("run: h200-fp8-kv",)
    assert "NVIDIA H200, sglang 0.5.17" in found.body and "The unchanged command: the server ended" in found.body
    match, near = found.logs
    assert "kv_cache_dtype='fp8_e4m3'" in match.text and "kv_cache_dtype='fp8_e5m2'" in near.text
    filled("kv")
    assert run(["kb", "lint"]) == 0, capsys.readouterr().out
    assert run(["kb", "test"]) == 0, capsys.readouterr().out


def test_a_run_without_control_is_suspected_and_needs_the_log(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(RUNS / "h200-fp8-kv-by-diagnosis")
    assert run(["kb", "new", "--from-run", folder]) == 2
    assert "no control was run" in capsys.readouterr().err
    made = report((RUNS / "h200-fp8-kv" / "control.log").read_text())
    assert run(["kb", "new", "--from-run", folder, "--from", made, "--id", "kv"]) == 0
    found = finding("kv")
    assert found.status == "suspected" and [s.op for s in found.fix] == ["remove"]
    assert "not proved to be why" in found.body


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"verdict": "passes"}, "suspected"),
        ({"control": {"end": "timeout"}}, "suspected"),
        ({"control": {"end": "answered", "checks": []}}, "suspected"),  # the control passed, whatever the journal says
        ({"verdict": "still-failing"}, None),
        ({"fixed": {"end": "died"}}, None),
        ({"verdict": None, "why": None}, None),
    ],
)
def test_confirmed_only_where_the_control_failed_and_the_change_passed(
    team: Path, change: dict, status: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RUNS / "h200-fp8-kv", team / "run")
    journal = json.loads((team / "run" / "run.json").read_text())
    for key, value in change.items():
        if isinstance(value, dict):
            journal["steps"][key].update(value)
        elif value is None:
            del journal[key]
        else:
            journal[key] = value
    write(team / "run" / "run.json", json.dumps(journal))
    code = run(["kb", "new", "--from-run", "run", "--id", "kv"])
    if status is None:
        assert code == 2 and "only a run whose changed command passed" in capsys.readouterr().err
        assert not list((team / "kb" / "findings").iterdir())
    else:
        assert code == 0 and finding("kv").status == status


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"verdict": "fixed", "steps": {"fixed": {"end": 3, "checks": [7]}}}',
        '{"verdict": "fixed", "steps": 4}',
    ],
)
def test_broken_run_folders_are_told(team: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kb", "new", "--from-run", "nowhere"]) == 2
    assert "is no run folder" in capsys.readouterr().err
    write(team / "run" / "run.json", text)
    assert run(["kb", "new", "--from-run", "run"]) == 2
    assert "run" in capsys.readouterr().err
