"""A finding drafted from one log by the machinery of `forensics kb new`, as nobody touched it: the whole of what a
team has five minutes after it saw a failure for the first time."""

from __future__ import annotations

from pathlib import PurePath

from forensics.frozen import frozen
from forensics.knowledge.draft import NewFile
from forensics.knowledge.draft_report import from_report
from forensics.knowledge.finding import read_finding
from forensics.knowledge.front import Page, split_page
from forensics.knowledge.store import Knowledge
from forensics.rulebook.located import Reader
from forensics.rulebook.schema import read_rule
from forensics.schema.finding import Finding
from forensics.schema.report import Report
from forensics.schema.signal import Rule

NAME = "drafted-case"


@frozen
class Drafted:
    """The finding and the rules of a draft; nothing where the log shows no failure to draft from."""

    finding: Finding | None = None
    rules: tuple[Rule, ...] = ()


def drafted_from(report: Report, knowledge: Knowledge, number: int) -> Drafted:
    """The draft of a report. `number` tells the drafts of one cause apart."""
    try:
        files = from_report(report, knowledge.rules, identity=f"{NAME}-{number}")
    except ValueError:
        return Drafted()
    rules = [_rule(f) for f in files if f.kind == "rule"]
    written = next(f for f in files if f.kind == "finding")
    page = split_page(written.text, written.name)
    finding = read_finding(page)[0] if isinstance(page, Page) else None
    return Drafted(finding, tuple(r for r in rules if r is not None))


def _rule(file: NewFile) -> Rule | None:
    return read_rule(Reader(file.name, file.text), PurePath(file.name).parent.name)
