"""Drafts that their author has not filled in: lint refuses them, and no diagnosis counts them."""

from __future__ import annotations

from pathlib import Path

from forensics.errors import FindingError
from forensics.knowledge.draft import UNFILLED
from forensics.schema.finding import Finding
from forensics.schema.span import Span


def placeholder(line: str) -> str | None:
    """The draft's text that still stands on a line of a finding, None where the author wrote it."""
    said = line.strip()
    return next((t for t in UNFILLED if said == t or said.endswith((f"do: {t}", f"- {t}"))), None)


def unfilled(finding: Finding, path: Path) -> FindingError | None:
    """Why a finding takes no part yet, at the first place that nobody filled in; None for a finished one. `path`: its
    file."""
    steps = (text for step in finding.fix for text in (step.do, *step.do.splitlines()))
    texts = (*steps, *finding.verify, *finding.body.splitlines())
    told = next((found for text in texts if (found := placeholder(text)) is not None), None)
    if told is None:
        return None
    return FindingError(
        f"{finding.id} is an unfinished draft and takes no part: “{told}” still stands there",
        span=_place(finding.span, path, told),
        hint=f"write it, or take it out; `forensics kb lint {finding.span.path}` names all places",
        code="F316",
    )


def _place(span: Span, path: Path, told: str) -> Span:
    """The line of the file that holds a text; the finding's own place where the file cannot be read any more."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if placeholder(line) == told:
                    return Span(span.path, number, line.index(told) + 1)
    except (OSError, UnicodeDecodeError):
        pass
    return span
