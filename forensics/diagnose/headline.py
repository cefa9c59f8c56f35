"""The one sentence of a report."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.diagnose.general import SAYS
from forensics.schema.report import HypothesisInfo, LaunchInfo

SUSPECTS = 4
"""Ranks that a headline names."""


def headline(launches: Sequence[LaunchInfo], focus: str | None, symptom: str | None) -> str:
    """What happened and most likely why, in one sentence."""
    launch = next((x for x in launches if x.id == focus), None)
    if launch is None:
        return "No launch of a server was found in the input"
    name = f"{launch.id}: " if len(launches) > 1 else ""
    return f"{name}{_what(launch, symptom)}{_why(launch)}"


def shows_server(launch: LaunchInfo) -> bool:
    """Whether anything in a launch's lines is a server's own."""
    return launch.reached != "config" or bool(
        launch.facts or launch.failures or launch.ranks.seen or launch.progress or launch.hypotheses
    )


def _suspects(ranks: Sequence[str]) -> str:
    if not ranks:
        return ""
    more = f" and {len(ranks) - SUSPECTS} more" if len(ranks) > SUSPECTS else ""
    return f"suspect {', '.join(ranks[:SUSPECTS])}{more}"


def _what(launch: LaunchInfo, symptom: str | None) -> str:
    first = launch.first_failure
    if first is not None:
        if first.stage == "client":
            return f"a request failed at line {first.where.line}; the server goes on"
        who = first.rank or _suspects(first.suspect_ranks)
        place = f" on {who}" if who else ""
        stage = "" if first.stage == "unknown" else f" during {first.stage}"
        return f"failed{stage}{place} at line {first.where.line}"
    if symptom:
        return f"no failure in the log; stated symptom: {symptom}"
    if launch.ended == "stopped" and launch.reached == "serving":
        return "no failure; the server came up, served and was stopped"
    if launch.ended in ("running", "log-ends") and launch.reached == "serving":
        return "no failure; the server came up and serves"
    if not shows_server(launch):
        return "no failure, and no sign of an sglang server in the input"
    last_bar = launch.progress or ""  # of an earlier stage once the launch went past it
    at = last_bar if last_bar.startswith(launch.reached) else launch.reached
    if launch.ended in ("running", "log-ends"):
        return f"no failure; the log ends at {at}"
    return f"{launch.ended} at {at}"


def _why(launch: LaunchInfo) -> str:
    live = [h for h in launch.hypotheses if h.verdict != "ruled-out"]
    if live:
        return f"; {_cause(live[0])}"
    if launch.first_failure is not None:
        return "; none of the known causes fits"
    if launch.risks:
        count = len(launch.risks)
        return f"; {count} known risk{'s' if count > 1 else ''}"
    return ""


def _cause(hypothesis: HypothesisInfo) -> str:
    """A reading of the failure's own words is what happened, and no cause."""
    if hypothesis.kind == "engine":
        said = hypothesis.title.startswith(SAYS)
        return "no known cause; " + (SAYS.lower() + hypothesis.title.removeprefix(SAYS) if said else hypothesis.title)
    name = hypothesis.finding or hypothesis.title
    return f"{hypothesis.verdict} cause: {name}"
