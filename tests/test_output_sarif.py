"""SARIF of real logs against the schema of the standard and the limits of code hosts."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from report_example import HOSTILE, example

from forensics.analysis import analyze
from forensics.output.command_diff import command_diffs
from forensics.output.sarif import render

SAMPLES = Path(__file__).parents[1] / "samples"
SCHEMA = Path(__file__).parent / "data" / "sarif-2.1.0.json"
LOGS = (
    "cases/saga/session.log",
    "cases/run-gpu2-tp2_nan/log.txt",
    "cases/b-paged-decode-oom-2048-free/log.txt",
    "cases/run-gpu2-nn2_node1_missing/log.txt",
    "healthy/gpu2-tp2_healthy/log.txt",
)


@cache
def validator():
    schema = json.loads(SCHEMA.read_text("utf-8-sig"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@cache
def of(name: str) -> str:
    return render(example(HOSTILE) if name == "hostile" else analyze([str(SAMPLES / name)]))


@pytest.mark.parametrize("name", [*LOGS, "hostile"])
def test_it_is_valid(name):
    errors = [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator().iter_errors(json.loads(of(name)))]
    assert errors == []


@pytest.mark.parametrize("name", [*LOGS, "hostile"])
def test_limits_of_code_hosts_hold(name):
    text = of(name)
    assert len(text.encode()) < 10_000_000
    run = json.loads(text)["runs"][0]
    assert len(run["results"]) <= 25_000 and len(run["tool"]["driver"]["rules"]) <= 25_000
    for rule in run["tool"]["driver"]["rules"]:
        assert len(rule["properties"]["tags"]) <= 20 and rule["help"]["text"]
    for result in run["results"]:
        assert len(result["locations"]) <= 10 and len(result.get("relatedLocations", [])) <= 1000
        for flow in result.get("codeFlows", []):
            assert all(len(thread["locations"]) <= 10_000 for thread in flow["threadFlows"])
        assert result["message"]["text"] and set(result["partialFingerprints"]) == {"forensicsShape/v1"}


def test_fingerprints_do_not_depend_on_numbers_or_names_of_files():
    def prints(text: str) -> list[str]:
        results = json.loads(text)["runs"][0]["results"]
        return [r["partialFingerprints"]["forensicsShape/v1"] for r in results]

    one = example("CUDA out of memory. Tried to allocate 20 MiB on GPU 3")
    other = example("CUDA out of memory. Tried to allocate 512 MiB on GPU 7")
    assert prints(render(one)) == prints(render(other))


def test_the_first_failures_flow_goes_over_the_ranks():
    run = json.loads(of("cases/saga/session.log"))["runs"][0]
    first = next(r for r in run["results"] if r["ruleId"] == "first-failure" and r["properties"]["launch"] == "L5")
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert len(steps) > 2 and "cascade on" in steps[1]["location"]["message"]["text"]


def test_regions_quote_the_line_without_control_characters():
    run = json.loads(of("hostile"))["runs"][0]
    snippet = run["results"][0]["locations"][0]["physicalLocation"]["region"]["snippet"]["text"]
    assert snippet and snippet.isprintable()


def edited(fix: dict, artifacts: list) -> str:
    """What a tool makes of the artifact that a fix changes."""
    [change] = fix["artifactChanges"]
    text = artifacts[change["artifactLocation"]["index"]]["contents"]["text"]
    for one in reversed(change["replacements"]):
        region = one["deletedRegion"]
        start, end = region["startColumn"] - 1, region["endColumn"] - 1
        text = text[:start] + one.get("insertedContent", {"text": ""})["text"] + text[end:]
    return text


def test_typed_fixes_are_edits_of_the_launch_command():
    report = analyze([str(SAMPLES / "cases/saga/session.log")])
    run = json.loads(of("cases/saga/session.log"))["runs"][0]
    launches = {launch.id: launch for launch in report.launches}
    found = 0
    for result in run["results"]:
        if result["ruleId"] == "first-failure":
            continue
        launch = launches[result["properties"]["launch"]]
        hypothesis = next(h for h in launch.hypotheses if (h.finding or "") == result["ruleId"])
        wanted = [diff.after for diff in command_diffs(hypothesis, launch)][:8]
        fixes = result.get("fixes", [])
        assert [edited(fix, run["artifacts"]) for fix in fixes] == (wanted if hypothesis.verdict != "ruled-out" else [])
        found += len(fixes)
    assert found > 5
    best = next(r for r in run["results"] if r.get("fixes") and r["properties"]["launch"] == "L5")
    assert edited(best["fixes"][0], run["artifacts"]).startswith("env SGLANG_ENABLE_JIT_DEEPGEMM=0 python3 -m sglang")
    assert best["fixes"][0]["description"]["text"] == "Relaunch with: set SGLANG_ENABLE_JIT_DEEPGEMM=0"


def test_no_fix_edits_the_log_itself():
    run = json.loads(of("cases/saga/session.log"))["runs"][0]
    uris = {a["location"]["uri"] for a in run["artifacts"]}
    assert uris and all(u.startswith("launch-command/L") for u in uris)


def test_without_a_stated_command_there_are_no_fixes():
    run = json.loads(of("cases/b-paged-decode-oom-2048-free/log.txt"))["runs"][0]
    assert "artifacts" not in run and not any("fixes" in r for r in run["results"])


MULTITOOL = shutil.which("sarif-multitool")


@pytest.mark.skipif(MULTITOOL is None, reason="no sarif-multitool (npm install -g @microsoft/sarif-multitool)")
@pytest.mark.parametrize("name", [*LOGS, "hostile"])
def test_a_sarif_validator_has_no_complaint(name, tmp_path):
    path = tmp_path / "report.sarif"
    path.write_text(of(name), encoding="utf-8")
    for kind in ("Sarif", "Ghas"):
        command = [MULTITOOL, "validate", str(path), "--rule-kind", kind]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0 and not [
            x for x in done.stdout.splitlines() if ": error " in x or ": warning " in x
        ]
