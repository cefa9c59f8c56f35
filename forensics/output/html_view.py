"""Readings of a report that the HTML page shows: lines of context, stage strips, words for values."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.frozen import frozen
from forensics.output.fixes import fix_lines
from forensics.output.terminal_words import reporters
from forensics.schema.launch import STAGES
from forensics.schema.report import FailureInfo, FixInfo, LaunchInfo, NextStep, Report, Where

BAD_ENDS = ("crashed", "killed", "hung")
_BUDGET = 4000
"""Lines of context on one page."""
_PHASES = ("prefill", "decode", "idle", "client", "shutdown")


@frozen
class Line:
    """One line of an excerpt; `here` marks the one that is meant, `gap` that lines were left out above."""

    number: int
    text: str
    here: bool
    gap: bool


class Lines:
    """Lines of context of the focus launch, by place."""

    def __init__(self, launch: LaunchInfo | None) -> None:
        rows = launch.excerpts if launch else []
        self.known = {(row.path, row.line): row.text for row in rows}
        self.left = _BUDGET

    def around(self, where: Where, count: int = 2) -> list[Line]:
        """The line of `where` with its neighbours, as far as the report holds them and the page has room."""
        if self.left <= 0:
            return []
        found = []
        for number in range(where.line - count, where.line + count + 1):
            text = self.known.get((where.path, number))
            if number == where.line and text is None:
                text = where.text
            if text is not None:
                found.append(Line(number, text, number == where.line, False))
        self.left -= len(found)
        return found

    def first(self, launch: LaunchInfo) -> list[Line]:
        """The excerpt of the first failure."""
        first = launch.first_failure
        if first is None:
            return []
        rows = first.context or [first.where.model_copy(update={"text": first.text})]
        lines = []
        before = rows[0].line - 1
        for row in rows:
            here = (row.path, row.line) == (first.where.path, first.where.line)
            lines.append(Line(row.line, row.text or "", here, row.line > before + 1))
            before = row.line
        return lines


@frozen
class Step:
    """One stage of a launch strip. `state`: passed, failed or open."""

    stage: str
    state: str


def strip(launch: LaunchInfo) -> list[Step]:
    """Every stage with how it went."""
    at = STAGES.index(launch.reached) if launch.reached in STAGES else -1
    bad = launch.ended in BAD_ENDS or launch.first_failure is not None
    return [
        Step(stage, "failed" if n == at and bad else ("passed" if n <= at else "open"))
        for n, stage in enumerate(STAGES)
    ]


def badge(launch: LaunchInfo) -> str:
    """How the launch ended, in a few words."""
    first = launch.first_failure
    ended = {"log-ends": "log ends here", "running": "running"}.get(launch.ended, launch.ended)
    if first is not None and launch.ended in BAD_ENDS:
        return f"{ended} in {first.stage}"
    return f"{ended} at {launch.progress}" if launch.progress and launch.reached != "serving" else ended


def place(where: Where) -> str:
    """`path:line:column`, as editors and terminals open it."""
    return f"{'stdin' if where.path == '-' else where.path}:{where.line}:{where.column}"


def short_place(where: Where, launch: LaunchInfo) -> str:
    """`line:column` in the launch's own file, which a table need not repeat in every row."""
    return f"{where.line}:{where.column}" if where.path == launch.path else place(where)


def line_place(where: Where, launch: LaunchInfo) -> str:
    """The place in words where little room is: the file's name stands at the top of the page."""
    return f"line {where.line}, column {where.column}" if where.path == launch.path else place(where)


def fix_rows(steps: list[FixInfo]) -> Iterator[tuple[str, str, str]]:
    """(sign, text, note) of each step; sign is +, - or · (for people)."""
    for line, note in fix_lines(steps):
        yield line[0], line[2:], note


def interval(launch: LaunchInfo) -> str:
    """The release of sglang as far as it is known."""
    version = launch.version
    if version.exact:
        return version.exact
    if version.low is None and version.high is None:
        return "unknown"
    return f"{version.low or '?'} to {version.high or '?'} (inferred)"


def size(count: int) -> str:
    """Bytes as people say them."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"


def numbers(count: int) -> str:
    """A count with separators."""
    return f"{count:,}"


def first_words(launch: LaunchInfo) -> str:
    """Where and on whom the first failure shows."""
    first = launch.first_failure
    if first is None:
        return ""
    return f"{first.stage}, {reporters(first)}"


def followers(launch: LaunchInfo) -> list[FailureInfo]:
    """Failures besides the first one, in the order of the log."""
    first = launch.first_failure.failure if launch.first_failure else None
    return sorted((f for f in launch.failures if f.id != first), key=lambda f: f.where.line)


def unknown(report: Report, launch: LaunchInfo | None) -> list[str]:
    """What the log cannot tell, each once."""
    notes = list(launch.notes) if launch else []
    for source in report.sources:
        notes += source.notes
        if source.unparsed_lines:
            notes.append(
                f"{source.path}: {source.unparsed_lines:,} of {source.lines:,} lines are of no known kind; "
                "`forensics coverage` lists them"
            )
    return list(dict.fromkeys([*notes, *report.omitted]))


def aside(step: NextStep) -> str:
    """What a step is good for."""
    parts = []
    if step.separates:
        parts.append(f"tells apart {', '.join(step.separates)}")
    if step.settles:
        parts.append(f"settles {step.settles}")
    return "; ".join(parts)
