"""Small readings of a report that several formats share."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.schema.report import AttemptInfo, Change, GroundInfo, HypothesisInfo, LaunchInfo, Report, Where
from forensics.timeline.catalog import catalog


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


def value_text(value: object) -> str:
    """A fact's or an argument's value in words."""
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(value_text(item) for item in value) or "empty"
    return str(value)


def setting_name(name: str) -> str:
    """`--page-size` for `args.page_size` or `page_size`; other facts keep their names."""
    plain = name.removeprefix("args.")
    if plain.startswith("-") or (plain == name and "." in name):
        return name
    return "--" + plain.replace("_", "-")


def says_nothing(name: str, value: object, launch: LaunchInfo) -> bool:
    """Whether an argument is unset, off, or known to be the default of the launch's release."""
    if not name.startswith("args."):
        return False
    release = launch.version.exact or launch.version.high or launch.version.low or ""
    return value in (None, False, "", [], {}, "{}") or (
        bool(release) and str(catalog().default(setting_name(name), release)) == str(value)
    )


def change_text(change: Change) -> str:
    """What an attempt changed, as it would be typed."""
    name = setting_name(change.name) if change.kind == "flag" else change.name
    if change.after is None:
        return f"without {name}"
    if change.after is True:
        return name
    if change.after is False:
        return f"{name} off"
    return f"{name}={value_text(change.after)}" if change.kind == "env" else f"{name} {value_text(change.after)}"


def outcome_text(attempt: AttemptInfo) -> str:
    """How an attempt ended; a failure that an earlier one showed is not told twice."""
    told = attempt.outcome
    if attempt.same_failure_as:
        told = f"{told.partition(':')[0]}, as {attempt.same_failure_as}"
    return told


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
