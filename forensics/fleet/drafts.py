"""Drafts of findings for the unexplained clusters of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forensics.errors import UsageError
from forensics.fleet.clusters import Cluster, draft
from forensics.fleet.dataset import Dataset

MOST = 25
"""Drafts written at once: nobody reviews more."""


def write_drafts(dataset: Path, found: Sequence[Cluster], folder: Path) -> list[Path]:
    """One draft for each of the largest clusters, as `findings/…` and `rules/…` below `folder`. What exists stays."""
    opened = Dataset(dataset, create=False)
    written: list[Path] = []
    for cluster in found[:MOST]:
        launch = _launch(opened, cluster)
        if launch is None:
            continue
        for file in draft(launch):
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


def _launch(dataset: Dataset, cluster: Cluster) -> dict[str, object] | None:
    """The launch kept in the part of the cluster's first incident."""
    part = dataset.part_of(cluster.incidents[0])
    return part["launch"] if part is not None else None
