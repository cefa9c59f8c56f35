"""SARIF of real logs against the schema of the standard and the limits of code hosts."""

import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from report_example import HOSTILE, example

from forensics.analysis import analyze
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
