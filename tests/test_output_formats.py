"""Every text format over a hand-made report: shape, and hostile log text that must stay inert."""

import json
import re
import subprocess
import unicodedata
from xml.etree import ElementTree as ET

import pytest
from report_example import HOSTILE, example

from forensics.errors import UsageError
from forensics.output.formats import check_format, names, render

FORMATS = names()


def show(name: str, text: str = "CUDA error: device-side assert triggered", **over: object) -> str:
    options = {"width": 80, "color": False, "detail": 0, "brief": False, "quiet": False, "max_bytes": 0, **over}
    return render(example(text), name, **options)


@pytest.mark.parametrize("name", FORMATS)
def test_no_control_character_of_a_log_gets_out(name):
    text = show(name, HOSTILE, detail=1)
    bad = [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
    assert not bad


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_report_gives_the_same_bytes(name):
    assert show(name, HOSTILE) == show(name, HOSTILE)


def test_terminal_lines_fit_80_columns_except_what_is_to_be_copied():
    text = show("text", detail=1)
    command = "python -m sglang.launch_server --dtype bfloat16"
    assert all(len(line) <= 80 for line in text.splitlines() if command not in line)
    assert "\x1b" not in text
    for part in ("First failure", "likely", "Ruled out", "+ --dtype bfloat16", "+ env A_B='x y'", "Next", command):
        assert part in text


def test_terminal_colours_only_when_asked():
    assert "\x1b[" in show("text", color=True)


def test_brief_is_one_screen_and_quiet_is_one_line():
    assert len(show("text", brief=True).splitlines()) <= 24
    assert show("text", quiet=True).count("\n") == 1


@pytest.mark.parametrize("text", ["plain", HOSTILE, "only \x7f is hidden", "\u202e“ö” \U0001f600"])
def test_json_holds_what_the_report_holds(text):
    written, report = show("json", text), example(text)
    assert json.loads(written) == json.loads(json.dumps(report.model_dump()))
    numbers = re.compile(r"\[\s*([-\d.]+(?:,\s*[-\d.]+)*)\s*\]")
    indented = json.dumps(report.model_dump(), indent=1, ensure_ascii=False) + "\n"
    plain = numbers.sub(lambda m: "[" + re.sub(r",\s*", ", ", m[1]) + "]", indented)
    shown = re.sub(r"\\u[0-9a-f]{4}(?:\\ud[0-9a-f]{3})?", lambda m: json.loads(f'"{m[0]}"'), written)
    assert shown == re.sub(r"\\u[0-9a-f]{4}", lambda m: json.loads(f'"{m[0]}"'), plain)


def test_json_drops_least_important_grounds_first_and_says_so():
    whole = show("json")
    small = show("json", max_bytes=int(len(whole) * 0.9))
    data = json.loads(small)
    assert len(small.encode()) <= int(len(whole) * 0.9)
    assert any("unknown grounds" in line for line in data["omitted"])
    assert data["launches"][0]["first_failure"]["where"]["line"] == 47
    assert data["launches"][0]["hypotheses"][0]["finding"] == "fp16-overflow"


def test_gcc_lines_are_what_editors_parse():
    for line in show("gcc", HOSTILE).splitlines():
        assert re.fullmatch(r"[^:]+:\d+:\d+: (error|warning|note): .*", line), line


def test_github_annotations_cannot_be_injected():
    lines = show("github", HOSTILE).splitlines()
    assert lines
    for line in lines:
        assert re.match(r"::(error|warning|notice) file=[^,:]+,line=\d+,col=\d+,title=\w+::", line), line
        assert "%0A" not in line.replace("%250A", "")


def test_junit_is_well_formed_and_failed():
    suite = ET.fromstring(show("junit", HOSTILE))
    assert suite.get("failures") == "1"
    assert suite.find("testcase/failure").get("type") == "decode"


def test_sarif_has_a_result_for_the_first_failure_and_each_hypothesis():
    run = json.loads(show("sarif"))["runs"][0]
    assert [r["ruleId"] for r in run["results"]] == [
        "first-failure",
        "fp16-overflow",
        "kernel-tile-exceeds-shared-memory",
    ]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"]
        for location in result["locations"]:
            assert location["physicalLocation"]["region"]["startColumn"] >= 1
    assert run["results"][0]["codeFlows"][0]["threadFlows"][0]["locations"]


def test_markdown_holds_no_live_markup_of_the_log():
    from markdown_it import MarkdownIt

    for name in ("md", "issue"):
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(show(name, HOSTILE))
        assert "<script" not in html and "<img" not in html and "<a " not in html


def test_an_unknown_format_is_refused_with_the_list():
    with pytest.raises(UsageError) as caught:
        check_format("pdf")
    assert "sarif" in caught.value.render()


def test_a_fix_can_be_pasted_into_a_shell():
    line = next(x for x in show("text").splitlines() if "A_B" in x).strip().removeprefix("+ ")
    out = subprocess.run(["sh", "-c", f"{line} sh -c 'echo $A_B'"], capture_output=True, text=True, check=True)
    assert out.stdout == "x y\n"
