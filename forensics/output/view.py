"""Small readings of a report that several formats share."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.schema.report import GroundInfo, HypothesisInfo, LaunchInfo, Report, Where


def focus_of(report: Report) -> LaunchInfo | None:
    """The launch that the headline is about."""
    return next((x for x in report.launches if x.id == report.focus), None)


def live(launch: LaunchInfo) -> list[HypothesisInfo]:
    """Hypotheses that are not ruled out, best first."""
    return [h for h in launch.hypotheses if h.verdict != "ruled-out"]


def ruled_out(launch: LaunchInfo) -> list[HypothesisInfo]:
    """Hypotheses that are ruled out."""
    return [h for h in launch.hypotheses if h.verdict == "ruled-out"]


def main_place(hypothesis: HypothesisInfo, launch: LaunchInfo) -> Where | None:
    """The line to open for a hypothesis: its best ground, else the first failure."""
    order = {"decisive": 0, "must": 1, "strong": 2}
    grounds = [g for g in hypothesis.grounds if g.side == "for" and g.where]
    grounds.sort(key=lambda g: order.get(g.strength, 3))
    if grounds:
        return grounds[0].where[0]
    return launch.first_failure.where if launch.first_failure else None


def ground_text(ground: GroundInfo) -> str:
    """What a ground says, in the reader's words where there are any."""
    return ground.why or ground.condition


def places(report: Report) -> Iterator[tuple[LaunchInfo, str, Where, str]]:
    """(launch, severity, place, message) of everything that an editor should list, in the order of the report:
    first failures, then each live hypothesis' grounds, then risks."""
    for launch in report.launches:
        first = launch.first_failure
        if first is not None:
            who = f" on {first.rank}" if first.rank else ""
            yield launch, "error", first.where, f"{launch.id}: first failure ({first.stage}{who}): {first.text}"
        for hypothesis in live(launch):
            for ground in hypothesis.grounds:
                if ground.side == "for" and ground.where:
                    text = f"{hypothesis.id}: {hypothesis.verdict}: {hypothesis.title}: {ground_text(ground)}"
                    yield launch, "warning", ground.where[0], text
        for risk in launch.risks:
            if risk.where:
                yield launch, "note", risk.where[0], f"{launch.id}: risk: {risk.title or risk.finding}"
