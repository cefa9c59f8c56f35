"""SARIF 2.1.0: one result for each first failure and each hypothesis, never one per line.

Limits of code hosts are kept: 25,000 results a run, 1,000 locations a result, 20 tags a rule, columns from 1.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from forensics.output.clean import clean
from forensics.output.fixes import bare_lines, fix_line
from forensics.output.markdown import code_block, escape
from forensics.output.sarif_fixes import Commands, message_text
from forensics.output.view import ground_text, main_place
from forensics.schema.report import GroundInfo, HypothesisInfo, LaunchInfo, Report, Where

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"established": "error", "likely": "warning", "possible": "note", "ruled-out": "none"}
_FIRST = "first-failure"
_MAX_LOCATIONS = 100
_MAX_RESULTS = 5000


def render(report: Report) -> str:
    """The report as SARIF text."""
    rules: dict[str, dict[str, Any]] = {_FIRST: _first_rule()}
    results: list[dict[str, Any]] = []
    commands = Commands()
    for launch in report.launches:
        if launch.first_failure is not None:
            results.append(_first_result(launch))
        for hypothesis in launch.hypotheses:
            rules.setdefault(_rule_id(hypothesis), _rule(hypothesis))
            results.append(_result(hypothesis, launch))
            if hypothesis.verdict != "ruled-out" and (fixes := commands.fixes(hypothesis, launch)):
                results[-1]["fixes"] = fixes
    ids = list(rules)
    for result in results:
        result["ruleIndex"] = ids.index(result["ruleId"])
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": report.tool.name,
                "version": report.tool.version,
                "semanticVersion": report.tool.version,
                "informationUri": "https://github.com/sgl-project/sglang",
                "rules": list(rules.values()),
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": results[:_MAX_RESULTS],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {"level": "warning", "message": {"text": clean(p.message)}} for p in report.problems
                ],
            }
        ],
    }
    if commands.artifacts:
        run["artifacts"] = commands.artifacts
    data = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _first_rule() -> dict[str, Any]:
    return {
        "id": _FIRST,
        "name": "FirstFailure",
        "shortDescription": {"text": "The line that states the first failure of a launch"},
        "fullDescription": {"text": "The first line of a launch that states a failure which nothing earlier explains."},
        "help": {"text": "Later errors of the launch are consequences unless the report says otherwise."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["sglang", "first-failure"]},
    }


def _rule(hypothesis: HypothesisInfo) -> dict[str, Any]:
    fix = "\n".join(bare_lines(hypothesis.fix)) or "No typed fix is known."
    sources = ", ".join(hypothesis.sources)
    text = f"{clean(hypothesis.title)}\n\nFix:\n{fix}" + (f"\n\nSources: {clean(sources)}" if sources else "")
    tags = [tag for tag in ("sglang", hypothesis.kind, hypothesis.category, hypothesis.status) if tag]
    return {
        "id": _rule_id(hypothesis),
        "name": "".join(part.capitalize() for part in re.split(r"[^A-Za-z0-9]+", _rule_id(hypothesis))),
        "shortDescription": {"text": clean(hypothesis.title, 400)},
        "fullDescription": {"text": clean(hypothesis.title, 1000)},
        "help": {"text": text, "markdown": _markdown(hypothesis)},
        "defaultConfiguration": {"level": "warning"},
        "properties": {"tags": tags[:20]},
    }


def _markdown(hypothesis: HypothesisInfo) -> str:
    """The rule's help as code hosts show it."""
    lines = [f"**{escape(hypothesis.title)}**", ""]
    if hypothesis.fix:
        lines += ["Fix:", "", *code_block(bare_lines(hypothesis.fix), "diff")]
    lines += [f"- fixed when: {escape(text)}" for text in hypothesis.verify]
    lines += [f"- source: {escape(source)}" for source in hypothesis.sources]
    return "\n".join(lines)


def _rule_id(hypothesis: HypothesisInfo) -> str:
    return hypothesis.finding or f"{hypothesis.kind}-hypothesis"


def _first_result(launch: LaunchInfo) -> dict[str, Any]:
    first = launch.first_failure
    assert first is not None
    result = {
        "ruleId": _FIRST,
        "level": "error",
        "message": {"text": message_text(f"{launch.id}: {first.text}")},
        "locations": [_location(first.where)],
        "partialFingerprints": _fingerprint(_FIRST, first.text),
        "properties": {"launch": launch.id, "stage": first.stage, "rank": first.rank},
    }
    flow = [_step(first.where, f"first failure: {first.text}")]
    flow += [
        _step(f.where, f"{f.role} on {', '.join(f.ranks[:8]) or 'no rank'}: {f.text}")
        for f in launch.failures
        if f.id != first.failure
    ]
    if len(flow) > 1:
        result["codeFlows"] = [_flow(flow)]
    return result


def _result(hypothesis: HypothesisInfo, launch: LaunchInfo) -> dict[str, Any]:
    place = main_place(hypothesis, launch)
    grounds = [g for g in hypothesis.grounds if g.where]
    related = [_location(w, ground_text(g)) for g in grounds for w in g.where[:5]][:_MAX_LOCATIONS]
    for number, location in enumerate(related):
        location["id"] = number
    result: dict[str, Any] = {
        "ruleId": _rule_id(hypothesis),
        "level": _LEVELS[hypothesis.verdict],
        "kind": "fail" if hypothesis.verdict != "ruled-out" else "notApplicable",
        "message": {
            "text": message_text(
                f"{launch.id}: {hypothesis.verdict}: {hypothesis.title}. {hypothesis.why}".rstrip(". ") + "."
            )
        },
        "locations": [_location(place)] if place else [],
        "relatedLocations": related,
        "partialFingerprints": _fingerprint(
            _rule_id(hypothesis), launch.first_failure.text if launch.first_failure else ""
        ),
        "properties": {
            "launch": launch.id,
            "verdict": hypothesis.verdict,
            "fix": [fix_line(step) for step in hypothesis.fix],
        },
    }
    held: list[GroundInfo] = [g for g in grounds if g.side == "for"]
    if len(held) > 1:
        held.sort(key=lambda g: (g.where[0].path, g.where[0].line))
        result["codeFlows"] = [_flow([_step(g.where[0], ground_text(g)) for g in held])]
    return result


def _location(where: Where, text: str = "") -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": where.line, "startColumn": where.column}
    if where.text:
        region["snippet"] = {"text": clean(where.text, 400)}
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": _uri(where.path)}, "region": region},
    }
    if text:
        location["message"] = {"text": message_text(text)}
    return location


def _uri(path: str) -> str:
    from urllib.parse import quote

    if path == "-":
        return "stdin"
    # an absolute path is a URI of its own; a relative one is a reference that the reader resolves
    return ("file://" if path.startswith("/") else "") + quote(path, safe="/")


def _step(where: Where, text: str) -> dict[str, Any]:
    return {"location": _location(where, text)}


def _flow(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {"threadFlows": [{"locations": steps[:_MAX_LOCATIONS]}]}


def _fingerprint(rule: str, text: str) -> dict[str, str]:
    shape = re.sub(r"\d+", "0", text)[:500]
    digest = hashlib.sha256(f"{rule}\0{shape}".encode()).hexdigest()[:32]
    return {"forensicsShape/v1": digest}
