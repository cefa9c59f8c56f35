"""Drafts of findings for the unexplained clusters of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from forensics.errors import UsageError
from forensics.fleet.clusters import Cluster
from forensics.fleet.dataset import Dataset
from forensics.knowledge.draft import NewFile
from forensics.knowledge.draft_report import from_report
from forensics.knowledge.store import load
from forensics.schema.report import LaunchInfo, Report, Tool
from forensics.schema.signal import Rule
from forensics.version import VERSION

MOST = 25
"""Drafts written at once: nobody reviews more."""


def write_drafts(dataset: Path, found: Sequence[Cluster], folder: Path) -> list[Path]:
    """One draft for each of the largest clusters, as `findings/…` and `rules/…` below `folder`. What exists stays."""
    opened = Dataset(dataset, create=False)
    rules = load().rules
    written: list[Path] = []
    for cluster in found[:MOST]:
        launch = _launch(opened, cluster)
        if launch is None:
            continue
        for file in draft(launch, rules):
            path = folder / ("findings" if file.kind == "finding" else "rules") / file.name
            if path.exists():
                continue
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(file.text, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}", hint="name another --drafts") from None
            written.append(path)
    return written


def _launch(dataset: Dataset, cluster: Cluster) -> dict[str, Any] | None:
    """The launch kept in the part of the cluster's first incident."""
    part = dataset.part_of(cluster.incidents[0])
    found: dict[str, Any] | None = part["launch"] if part is not None else None
    return found


def draft(launch: dict[str, Any], rules: Mapping[str, Rule]) -> list[NewFile]:
    """A finding (and a rule, where none names the failure) drafted from the launch that a part keeps.

    The log itself is not opened: it may be large, far away or gone. What the part holds is enough for a draft."""
    kept = LaunchInfo.model_validate({**launch, "path": ""})
    if kept.first_failure is None:
        return []
    where = kept.first_failure.where.model_copy(update={"path": ""})
    kept = kept.model_copy(update={"first_failure": kept.first_failure.model_copy(update={"where": where})})
    tool = Tool(version=VERSION, rules=0, findings=0)
    return from_report(Report(schema="1", tool=tool, launches=[kept], focus=kept.id), rules)
