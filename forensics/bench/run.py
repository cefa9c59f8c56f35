"""Runs one case under a neutral name, so that the case's own name tells the program nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from forensics.analysis import Reading, read, report
from forensics.bench.cases import BenchCase
from forensics.frozen import frozen
from forensics.knowledge.store import Knowledge
from forensics.schema.options import Options
from forensics.schema.report import HypothesisInfo, LaunchInfo, Report

STRONG = ("established", "likely")


@frozen
class Answer:
    """What the program said about one case: live hypotheses best first as (finding or title, verdict, kind), the
    risks, the place of the first failure, and whether a next step was given."""

    case: BenchCase
    hypotheses: tuple[tuple[str, str, str], ...]
    ruled_out: tuple[str, ...]
    risks: tuple[str, ...]
    line: int | None
    rank: str | None
    stage: str | None
    suspects: tuple[str, ...]
    has_next: bool

    @property
    def top(self) -> str | None:
        """Finding (or title) of the first hypothesis."""
        return self.hypotheses[0][0] if self.hypotheses else None

    @property
    def verdict(self) -> str | None:
        """Verdict of the first hypothesis."""
        return self.hypotheses[0][1] if self.hypotheses else None


@contextmanager
def neutral(case: BenchCase) -> Iterator[Path]:
    """A temporary copy of the log with a name that says nothing."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "server.log"
        shutil.copyfile(case.log, path)
        yield path


def run_case(case: BenchCase, knowledge: Knowledge, options: Options) -> Answer:
    """Analyze one case."""
    wanted = replace(options, symptom=case.symptom)
    with neutral(case) as path:
        reading = read([str(path)], wanted, knowledge)
        return answer(case, report(reading, wanted, knowledge))


def run_without(case: BenchCase, knowledge: Knowledge, options: Options) -> Answer:
    """Analyze one case with its own cause taken out of the knowledge: what an unknown cause gets."""
    wanted = replace(options, symptom=case.symptom)
    with neutral(case) as path:
        reading: Reading = read([str(path)], wanted, knowledge)
        rest = replace(knowledge, findings=tuple(f for f in knowledge.findings if f.id != case.cause))
        return answer(case, report(reading, wanted, rest))


def answer(case: BenchCase, found: Report) -> Answer:
    """The parts of a report that are scored: those of the launch in focus."""
    launch = next((x for x in found.launches if x.id == found.focus), None)
    if launch is None:
        return Answer(case, (), (), (), None, None, None, (), False)
    first = _compared(case, found, launch).first_failure
    return Answer(
        case=case,
        hypotheses=tuple(_named(h) for h in launch.hypotheses if h.verdict != "ruled-out"),
        ruled_out=tuple(h.finding or h.title for h in launch.hypotheses if h.verdict == "ruled-out"),
        risks=tuple(r.finding for r in launch.risks),
        line=first.where.line if first else None,
        rank=first.rank if first else None,
        stage=first.stage if first else None,
        suspects=tuple(first.suspect_ranks) if first else (),
        has_next=bool(launch.next),
    )


def _named(hypothesis: HypothesisInfo) -> tuple[str, str, str]:
    return hypothesis.finding or hypothesis.title, hypothesis.verdict, hypothesis.kind


def _compared(case: BenchCase, found: Report, focus: LaunchInfo) -> LaunchInfo:
    """The launch whose first failure the truth states: the one that holds the truth's line, else the focus."""
    if case.line is None:
        return focus
    return next((x for x in found.launches if x.lines[0] <= case.line <= x.lines[1]), focus)
