"""`kb test`: every executable log block through the whole analyzer, and all findings over all samples."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from forensics.analysis import read
from forensics.analysis import report as make_report
from forensics.errors import ForensicsError
from forensics.frozen import frozen
from forensics.knowledge.library import Library
from forensics.knowledge.lint_finding import block_text
from forensics.knowledge.trial import cases_of
from forensics.rulebook.evaluate import evaluate
from forensics.rulebook.problem import Problem
from forensics.schema.finding import Finding, LogBlock
from forensics.schema.options import Options
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report
from forensics.schema.span import Span

VERDICTS = ("established", "likely", "possible")


@frozen
class Shot:
    """One finding on one sample. `expected`: the sample's truth names it."""

    sample: str
    finding: str
    verdict: str
    expected: bool
    healthy: bool


def test_findings(findings: Iterable[Finding], lib: Library) -> Iterator[Problem]:
    """Problems of the executable log blocks of these findings."""
    for finding in findings:
        for block in finding.logs:
            problem = test_block(finding, block, lib)
            if problem is not None:
                yield problem


def test_block(finding: Finding, block: LogBlock, lib: Library) -> Problem | None:
    """None where the block behaves as it says."""
    text = block_text(block, lib)
    if text is None:
        return None if lib.samples is None else _problem(block, "L404", f"there is no sample `{block.sample}`")
    report = analyze_text(text, lib, block.symptom)
    if report is None:
        return _problem(block, "L405", "the analyzer reads nothing from this block", "add a line with a log header")
    held = [
        h
        for launch in report.launches
        for h in launch.hypotheses
        if h.finding == finding.id and h.verdict != "ruled-out"
    ]
    if block.expect == "near-miss":
        if held:
            hint = (
                "demand under `must` what tells them apart, or name under `excludes` what this log shows and the cause "
                f"cannot; it holds here: {_grounds(held[0])}"
            )
            return _problem(block, "L407", f"the near miss is taken for this cause ({held[0].verdict})", hint)
        return None
    if not held:
        return _problem(
            block,
            "L406",
            "the finding is no hypothesis for this log",
            _instead(report, finding, _unseen(text, block.symptom, finding, lib)),
        )
    return _named(block, report, held)


def _named(block: LogBlock, report: Report, held: list[HypothesisInfo]) -> Problem | None:
    if block.named_line is None:
        return None
    lines = {w.line for h in held for g in h.grounds if g.side == "for" for w in g.where}
    first = {launch.first_failure.where.line for launch in report.launches if launch.first_failure is not None}
    if block.named_line in lines | first:
        return None
    shown = ", ".join(map(str, sorted(lines | first))) or "none"
    return _problem(block, "L408", f"line {block.named_line} is not named", f"lines that are named: {shown}")


def _instead(report: Report, finding: Finding, unseen: Iterable[str]) -> str:
    """What the analyzer said instead, and why it refused the finding."""
    others = [f"{h.finding or h.kind} ({h.verdict})" for x in report.launches for h in x.hypotheses[:3]]
    refused = [_grounds(h) for x in report.launches for h in x.hypotheses if h.finding == finding.id]
    said = f"it says {', '.join(others)}" if others else "it has no hypothesis"
    told = [r for r in refused if r] or list(unseen)
    return "; ".join([said, *told]) + "; `forensics explain --finding` tells more"


def _unseen(text: str, symptom: str | None, finding: Finding, lib: Library) -> Iterator[str]:
    """What a finding demands and no launch of this log shows."""
    with cases_of(text, lib.rules, symptom) as cases:
        for ground in finding.grounds:
            if ground.strength == "must" and not any(evaluate(ground, case).value for case in cases):
                yield f"`must` {ground.text} was not seen"


def _grounds(hypothesis: HypothesisInfo) -> str:
    return "; ".join(f"{g.condition}: {g.why}" for g in hypothesis.grounds[:4])


def _problem(block: LogBlock, code: str, message: str, hint: str = "") -> Problem:
    return Problem(code, message, Span(block.span.path, max(1, block.span.line - 1)), hint, f"```log {block.expect}")


def analyze_text(text: str, lib: Library, symptom: str | None) -> Report | None:
    """The whole analyzer over a log text; None where it reads nothing. One text is analyzed once for a library."""
    if (text, symptom) not in lib.trials:
        lib.trials[text, symptom] = _analyzed(text, lib, symptom)
    return lib.trials[text, symptom]


def _analyzed(text: str, lib: Library, symptom: str | None) -> Report | None:
    with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        path = Path(folder) / "server.log"
        path.write_text(text, encoding="utf-8")
        return analyze_path(path, lib, symptom)


def analyze_path(path: Path, lib: Library, symptom: str | None = None) -> Report | None:
    """The whole analyzer over a log file with this library's knowledge."""
    options = Options(launch="all", symptom=symptom, processes=1)
    try:
        return make_report(read([str(path)], options, lib.knowledge), options, lib.knowledge)
    except ForensicsError:
        return None


def cross_fire(lib: Library, only: frozenset[str] | None = None) -> Iterator[Shot]:
    """Every finding that any sample makes a hypothesis, healthy samples first."""
    for path, healthy in sample_logs(lib):
        truth = truth_of(path)
        report = analyze_path(path, lib)
        name = path.parent.name if path.name == "log.txt" else f"{path.parent.name}/{path.name}"
        launches = report.launches if report is not None else []
        # The truth of a case is about its last launch; those before it may have failed for another reason.
        for launch in launches if healthy else launches[-1:]:
            yield from _shots(name, launch, truth, healthy, only)


def _shots(name: str, launch: LaunchInfo, truth: str, healthy: bool, only: frozenset[str] | None) -> Iterator[Shot]:
    for hypothesis in launch.hypotheses:
        finding = hypothesis.finding
        if finding is None or hypothesis.verdict not in VERDICTS or (only is not None and finding not in only):
            continue
        yield Shot(name, finding, hypothesis.verdict, finding == truth, healthy)


def sample_logs(lib: Library) -> list[tuple[Path, bool]]:
    """All samples; True marks healthy ones."""
    if lib.samples is None:
        return []
    healthy = sorted(lib.samples.glob("healthy/*/log.txt"))
    return [*((p, True) for p in healthy), *((p, False) for p in sorted(lib.samples.glob("cases/*/log.txt")))]


def truth_of(path: Path) -> str:
    """The cause that a sample's truth names, empty where it names none."""
    try:
        found = json.loads((path.parent / "truth.json").read_text(encoding="utf-8"))
        return str(found.get("cause_key") or "")
    except (OSError, ValueError):
        return ""


def faults(shots: Iterable[Shot]) -> list[Shot]:
    """Shots that must not be: any on a healthy log; an established one on a case whose own cause is another finding."""
    shots = list(shots)
    right = {s.sample for s in shots if s.expected}
    return [s for s in shots if s.healthy or (s.verdict == "established" and not s.expected and s.sample in right)]
