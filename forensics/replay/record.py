"""The outcome goes into the history: the analyses, every launch that was tried, and the verdicts."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

from forensics.frozen import frozen
from forensics.history import Attempt, History, Verdict, default_path
from forensics.replay.facts import HostFacts
from forensics.replay.folder import RunFolder
from forensics.replay.plan import Plan
from forensics.replay.verify import Judgement, focus
from forensics.schema.report import LaunchInfo, Report


@frozen
class Tried:
    """One plan (None: nothing could be tried) and what was found about it."""

    plan: Plan | None
    judgement: Judgement


def remember(
    db: Path | None, folder: RunFolder, tried: list[Tried], given: Report | None, facts: HostFacts, host: str
) -> Path:
    """Store the analyses of the given log and of each launch, the launches as attempts, and one verdict for each plan.
    Gives the history's path. Raises HistoryError where it cannot be used; the run folder is whole by then."""
    steps: dict[str, dict[str, Any]] = folder.read().get("steps", {})
    reports = {name: report for name in steps if (report := _report(folder, name)) is not None}
    failing = focus(given) or focus(reports.get("control"))
    at = time.time()
    path = db or default_path()
    history = History(path)
    try:
        for report in (given, *reports.values()):
            if report is not None:
                history.add_report(report, _fingerprint(report), at)
        for name, step in steps.items():
            history.add_attempt(_attempt(folder, name, step, reports.get(name), at))
        for one in tried:
            history.add_verdict(_verdict(folder, one, failing, facts, host, at))
    finally:
        history.close()
    return path


def _report(folder: RunFolder, step: str) -> Report | None:
    path = folder.path / f"{step}.report.json"
    return Report.model_validate_json(path.read_bytes()) if path.is_file() else None


def _fingerprint(report: Report) -> str:
    """Tells equal analyses: the same inputs by the same program."""
    return hashlib.sha256(report.model_dump_json().encode()).hexdigest()


def _attempt(folder: RunFolder, name: str, step: dict[str, Any], report: Report | None, at: float) -> Attempt:
    launch = focus(report)
    first = launch.first_failure if launch else None
    return Attempt(
        run=folder.name, step=name, command=str(step["command"]), ended=str(step["end"]), why=str(step["why"]),
        stage=str(step.get("reached") or ""), failure=first.text[:500] if first else "",
        seconds=float(step["seconds"]), at=at,
    )  # fmt: skip


def _verdict(
    folder: RunFolder, tried: Tried, failing: LaunchInfo | None, facts: HostFacts, host: str, at: float
) -> Verdict:
    first = failing.first_failure if failing else None
    model = failing.facts.get("model.name") if failing else None
    plan = tried.plan
    return Verdict(
        run=folder.name,
        finding=(plan.finding or "") if plan else "",
        outcome=tried.judgement.word,
        changes=tuple(str(c).removeprefix("set ") for c in plan.changes) if plan else (),
        failure=first.text[:500] if first else "",
        model=str(model.value) if model else "",
        gpu=str(facts.gpus[0]["name"]) if facts.gpus else "cpu",
        version=facts.sglang or "",
        host=host,
        folder=str(folder.path.absolute()),
        at=at,
    )
