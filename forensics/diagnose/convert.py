"""The timeline's frozen data as the models of the report."""

from __future__ import annotations

import re
from typing import Any

from forensics.diagnose.limits import limits
from forensics.diagnose.places import MAX_TEXT, Places
from forensics.diagnose.surroundings import AROUND, lines_around
from forensics.schema.facts import Fact, VersionInterval
from forensics.schema.finding import FixStep
from forensics.schema.launch import STAGES, Failure, Launch
from forensics.schema.report import (
    FactValue,
    FailureInfo,
    FirstFailure,
    FixInfo,
    LaunchInfo,
    NextStep,
    RanksInfo,
    VersionGround,
    VersionInfo,
    Where,
)

MAX_FAILURES = 60
"""Failures that one launch of a report lists, first ones first."""
FRAMES = 2
"""Innermost frames of the failure shown above the lines around it."""


def launch_info(launch: Launch, places: Places) -> LaunchInfo:
    """Everything that the timeline knows of a launch; hypotheses, risks and next steps are added by the diagnosis."""
    first = launch.failure(launch.first_failure)
    return LaunchInfo(
        id=launch.id,
        lines=launch.lines,
        path=places.table.sources[launch.sources[0]].name if launch.sources else "",
        reached=launch.reached,
        ended=launch.ended,
        ended_why=places.safe(launch.ended_why),
        ended_where=places.row(launch.ended_row) if launch.ended_row is not None else None,
        ranks=_ranks(launch),
        version=version_info(launch.version, places),
        facts={name: fact_value(fact, places) for name, fact in sorted(launch.facts.items())},
        progress=progress_text(launch),
        first_failure=_first(first, places) if first else None,
        failures=[failure_info(f, places) for f in launch.failures[:MAX_FAILURES]],
        notes=[places.safe(note) for note in (*launch.notes, *limits(launch), *_folded_note(launch))],
    )


def fact_value(fact: Fact, places: Places) -> FactValue:
    """One fact with its place; text is masked. What a command line can hold is kept whole: replay states it again."""
    where = Where.of(fact.where) if fact.where else None
    value = fact.value
    if isinstance(value, str) and len(value) > MAX_TEXT and _typed(fact.name, value):
        return FactValue(value=places.whole(value), where=where, how=fact.how)
    return FactValue(value=plain(value, places), where=where, how=fact.how)


def _typed(name: str, value: str) -> bool:
    """Whether a person may have typed a value: the launch command, or a setting that is no object of the program."""
    return name == "launch.command" or (name.startswith("args.") and _OBJECT.match(value) is None)


_OBJECT = re.compile(r"[A-Za-z_][\w.]*\(|<")


def plain(value: Any, places: Places) -> Any:
    """A fact's value for JSON: tuples become lists, text is masked."""
    if isinstance(value, str):
        return places.safe(value)
    if isinstance(value, tuple):
        return [plain(item, places) for item in value]
    return value


def version_info(version: VersionInterval, places: Places) -> VersionInfo:
    """The release interval with what narrowed it."""
    grounds = [VersionGround(reason=why, where=places.span(at) if at else None) for why, at in version.grounds]
    return VersionInfo(low=version.low, high=version.high, exact=version.exact, grounds=grounds)


def failure_info(failure: Failure, places: Places) -> FailureInfo:
    """One folded failure."""
    return FailureInfo.of_values(
        {
            "id": failure.id,
            "role": failure.role,
            "outcome": failure.outcome,
            "count": failure.count,
            "ranks": [str(r) for r in failure.ranks],
            "where": places.row(failure.row),
            "text": places.safe(failure.text),
            "stage": failure.stage,
            "mechanism": places.safe(failure.mechanism),
            "signals": list(failure.signals),
            "component": failure.component,
        }
    )


def fix_info(step: FixStep, places: Places) -> FixInfo:
    """A typed fix step; what the log put into it is masked."""
    names = ("kind", "op", "version", "versions", "safe", "runnable", "with_above")
    texts = {name: places.whole(getattr(step, name)) for name in ("name", "do", "note")}
    value = None if step.value is None else places.whole(step.value)
    return FixInfo.of_values({**{name: getattr(step, name) for name in names}, **texts, "value": value})


def masked_step(step: NextStep, places: Places) -> NextStep:
    """A next step without secrets: its command is the launch's own, and its words may be the log's."""
    return step.model_copy(update={name: places.whole(getattr(step, name)) for name in ("do", "command", "settles")})


def progress_text(launch: Launch) -> str:
    """`load 25 %` where the log ends inside a stage that prints its progress."""
    if launch.progress is None:
        return ""
    stage, share = launch.progress
    return f"{stage} {round(share * 100)} %"


def stage_index(stage: str) -> int:
    """Place of a stage in the order of start-up; phases of serving count as serving, unknown ones as -1."""
    if stage in STAGES:
        return STAGES.index(stage)
    return len(STAGES) if stage in ("prefill", "decode", "idle", "client", "shutdown") else -1


def _ranks(launch: Launch) -> RanksInfo:
    return RanksInfo(
        expected=[str(r) for r in launch.expected],
        seen=[str(r) for r in launch.seen],
        missing=[str(r) for r in launch.missing],
        stages={str(rank): stage for rank, stage in launch.stages.items()},
    )


def _first(failure: Failure, places: Places) -> FirstFailure:
    return FirstFailure(
        stage=failure.stage,
        rank=str(failure.rank) if failure.rank else None,
        reporters=[str(r) for r in failure.reporters],
        suspect_ranks=[str(r) for r in failure.suspect_ranks],
        suspect_why=places.safe(failure.suspect_why),
        where=places.row(failure.row),
        text=places.safe(failure.text),
        failure=failure.id,
        component=failure.component,
        context=_context(failure, places),
    )


def _context(failure: Failure, places: Places) -> list[Where]:
    """The raw lines around the one that states the failure, and its innermost frames where other ranks' lines stand
    between."""
    table = places.table
    source = table.sources[int(table.source[failure.row])]
    around = lines_around(source, places.row(failure.row), AROUND, places.safe)
    shown = {row.line for row in around}
    frames = [places.row(row) for row in failure.rows if row < failure.row][-FRAMES:]
    return [*(f for f in frames if f.line < min(shown, default=0)), *around]


def _folded_note(launch: Launch) -> list[str]:
    more = len(launch.failures) - MAX_FAILURES
    return [f"{more} further failures are not listed"] if more > 0 else []
