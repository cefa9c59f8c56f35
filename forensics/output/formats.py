"""Names of the output formats and the one place that picks a renderer."""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING

from forensics.errors import UsageError

if TYPE_CHECKING:
    from forensics.schema.report import Report

# name → module with `render(report) -> str`
_PLAIN = {
    "html": "forensics.output.html",
    "md": "forensics.output.markdown",
    "issue": "forensics.output.issue",
    "sarif": "forensics.output.sarif",
    "gcc": "forensics.output.gcc",
    "github": "forensics.output.github",
    "junit": "forensics.output.junit",
}


def names() -> list[str]:
    """The formats that this installation can write."""
    return ["text", "json", *(n for n, m in _PLAIN.items() if importlib.util.find_spec(m) is not None)]


def check_format(name: str) -> None:
    """Raise UsageError for an unknown format or a missing extra, before any log is read."""
    if name not in names():
        raise UsageError(f"unknown format {name!r}", hint=f"one of {', '.join(names())}")
    if name == "html":
        from forensics.output.html import require

        require()


def render(
    report: Report, name: str, *, width: int, color: bool, detail: int, brief: bool, quiet: bool, max_bytes: int
) -> str:
    """The report in format `name` as text with a final newline."""
    if quiet and name == "text":
        from forensics.output.terminal import quiet as one_line

        return one_line(report)
    if name == "json":
        from forensics.output.json import render as as_json

        return as_json(report, max_bytes)
    if name == "text":
        from forensics.output.terminal import render as as_text

        return as_text(report, width=width, color=color, detail=detail, brief=brief)
    module = importlib.import_module(_PLAIN[name])
    return str(module.render(report))
