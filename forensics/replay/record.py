"""The outcome goes into the history, with what it was proved on."""

from __future__ import annotations

import time
from pathlib import Path

from forensics.history import History, Verdict, default_path
from forensics.replay.facts import HostFacts
from forensics.replay.folder import RunFolder
from forensics.replay.plan import Plan
from forensics.replay.verify import Judgement
from forensics.schema.report import LaunchInfo


def remember(
    db: Path | None, folder: RunFolder, plan: Plan | None, judgement: Judgement, launch: LaunchInfo | None,
    facts: HostFacts, host: str,
) -> None:  # fmt: skip
    """Store one verdict. Raises HistoryError where the database cannot be used; the run folder is whole by then."""
    first = launch.first_failure if launch else None
    model = launch.facts.get("model.name") if launch else None
    history = History(db or default_path())
    try:
        history.add_verdict(
            Verdict(
                run=folder.name,
                finding=(plan.finding or "") if plan else "",
                outcome=judgement.word,
                changes=tuple(_change(str(c)) for c in plan.changes) if plan else (),
                failure=first.text[:500] if first else "",
                model=str(model.value) if model else "",
                gpu=str(facts.gpus[0]["name"]) if facts.gpus else "cpu",
                version=facts.sglang or "",
                host=host,
                folder=str(folder.path),
                at=time.time(),
            )
        )
    finally:
        history.close()


def _change(text: str) -> str:
    return text.removeprefix("set ")
