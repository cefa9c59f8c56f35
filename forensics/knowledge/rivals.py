"""`kb test` of look-alikes: the logs of a named look-alike are near misses of the finding that names it.

A finding may stay *possible* in such a log, below the look-alike: some causes cannot be told apart by the log alone,
and then the page says what else does. It must not come first there, nor be called likely or established.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from forensics.knowledge.library import Library
from forensics.knowledge.lint_finding import block_text
from forensics.knowledge.proof import analyze_text
from forensics.rulebook.problem import Problem
from forensics.schema.finding import Finding
from forensics.schema.report import HypothesisInfo
from forensics.schema.span import Span

HINT = "demand under `must`, or name under `excludes`, what tells them apart"


def test_look_alikes(findings: Iterable[Finding], lib: Library) -> Iterator[Problem]:
    """Findings that win, or are more than possible, in the log of a look-alike that they name."""
    for finding in findings:
        for name in finding.look_alikes:
            other = lib.findings.get(name)
            if other is not None and other.id != finding.id:
                yield from _against(finding, other, lib)


def rival_logs(findings: Iterable[Finding], lib: Library) -> int:
    """How many logs of look-alikes `test_look_alikes` tries, each for one finding."""
    pairs = {(f.id, name) for f in findings for name in f.look_alikes if name != f.id and name in lib.findings}
    return sum(b.expect == "match" and block_text(b, lib) is not None for _, n in pairs for b in lib.findings[n].logs)


def _against(finding: Finding, other: Finding, lib: Library) -> Iterator[Problem]:
    for block in other.logs:
        text = block_text(block, lib) if block.expect == "match" else None
        report = analyze_text(text, lib, block.symptom) if text is not None else None
        for launch in report.launches if report is not None else ():
            verdict = _wrongly(finding.id, other.id, launch.hypotheses)
            if verdict is not None:
                message = f"the log of its look-alike `{other.id}` ({block.span.path}:{block.span.line}) {verdict}"
                yield Problem("L409", message, Span(finding.span.path, _line(finding, lib)), HINT, "look_alikes")


def _wrongly(mine: str, theirs: str, hypotheses: Iterable[HypothesisInfo]) -> str | None:
    """What is wrong with a finding's place among the hypotheses for a look-alike's log; None where nothing is."""
    standing = [(h.finding, h.verdict) for h in hypotheses if h.verdict != "ruled-out"]
    order = [name for name, _ in standing]
    if mine not in order:
        return None
    verdict = dict(reversed(standing))[mine]
    if verdict != "possible":
        return f"is taken for this cause ({verdict})"
    if theirs in order and order.index(mine) < order.index(theirs):
        return "puts this cause first"
    return None


def _line(finding: Finding, lib: Library) -> int:
    """The line of `look_alikes` in the finding's file."""
    path = lib.path_of(finding.span.path)
    lines = path.read_text(encoding="utf-8").split("\n") if path is not None else []
    return next((n for n, line in enumerate(lines, 1) if line.startswith("look_alikes:")), 1)
