"""JUnit XML: one test case per launch, failed where the launch shows a failure."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from forensics.output.clean import clean
from forensics.output.view import ground_text, live
from forensics.schema.report import LaunchInfo, Report


def render(report: Report) -> str:
    """The report as one test suite."""
    failed = sum(launch.first_failure is not None for launch in report.launches)
    suite = ET.Element(
        "testsuite",
        name="forensics",
        tests=str(len(report.launches)),
        failures=str(failed),
        errors=str(len(report.problems)),
    )
    for launch in report.launches:
        case = ET.SubElement(suite, "testcase", classname="forensics.launch", name=clean(f"{launch.id} {launch.path}"))
        if launch.first_failure is not None:
            first = launch.first_failure
            failure = ET.SubElement(case, "failure", message=clean(first.text, 500), type=first.stage)
            failure.text = _details(launch)
    for problem in report.problems:
        case = ET.SubElement(suite, "testcase", classname="forensics.input", name=clean(problem.path or "input"))
        ET.SubElement(case, "error", message=clean(problem.message, 500))
    ET.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _details(launch: LaunchInfo) -> str:
    first = launch.first_failure
    lines = [f"{first.where.path}:{first.where.line}:{first.where.column}: {first.text}"] if first else []
    for hypothesis in live(launch):
        lines.append(f"{hypothesis.verdict}: {hypothesis.title} [{hypothesis.finding or hypothesis.kind}]")
        for ground in hypothesis.grounds:
            place = f" {ground.where[0].path}:{ground.where[0].line}" if ground.where else ""
            lines.append(f"  {ground.side}: {ground_text(ground)}{place}")
    return "\n".join(clean(line, 500) for line in lines)
