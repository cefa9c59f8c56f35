"""What the analysis proposed to try: a setting that the failing launch had and a relaunch is to leave out."""

from __future__ import annotations

import re
from typing import Any

from forensics.frozen import frozen
from forensics.schema.report import LaunchInfo
from forensics.timeline.catalog import catalog

_WITHOUT = re.compile(r"\bwithout (--[a-z][a-z0-9-]*)")
NOT_TRIED = "proposed by the analysis, not tried"


@frozen
class Proposal:
    """Conditions over what the launch had, and steps that nobody has tried."""

    weak: tuple[str, ...] = ()
    fix: tuple[dict[str, Any], ...] = ()


def proposal(launch: LaunchInfo) -> Proposal:
    """The first experiment of the report that leaves out one switch which this launch had."""
    for step in launch.next:
        found = _WITHOUT.search(step.do) if step.kind == "experiment" else None
        if found is None:
            continue
        name = found.group(1)
        fact = f"args.{catalog().dest(name)}"
        if fact in launch.facts and launch.facts[fact].value is True:
            done = {"kind": "flag", "op": "remove", "name": name, "note": NOT_TRIED, "runnable": True}
            return Proposal((fact,), (done,))
    return Proposal()
