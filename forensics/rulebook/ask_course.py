"""Conditions about the course of a launch: stage, ending, silence, symptom, earlier attempts."""

from __future__ import annotations

import numpy as np

from forensics.grammar.condition_tree import Reached, Silence, State, Symptom, Tried
from forensics.rulebook.arithmetic import compare_values, equal, spelled, truth
from forensics.rulebook.ask_signal import failing_rank, matches_of, not_seen
from forensics.rulebook.case import Case
from forensics.rulebook.coverage import same_rank
from forensics.rulebook.facts import look_up
from forensics.rulebook.outcome import Outcome, some_of
from forensics.schema.launch import STAGES, Failure
from forensics.schema.rank import Rank
from forensics.schema.span import Span
from forensics.timeline.catalog import catalog

SLACK = 1.0
"""Log times have a resolution of one second."""


def symptom(node: Symptom, case: Case) -> Outcome:
    """Whether the user stated the symptom."""
    if case.symptom == node.name:
        return Outcome(True, (), f"the user reports {node.name}")
    said = f"the user reports {case.symptom}" if case.symptom else "no symptom was stated"
    return Outcome(
        False, (), said, "" if case.symptom else f"run again with --symptom {node.name} if that is what you saw"
    )


def reached(node: Reached, case: Case) -> Outcome:
    """Whether start-up got at least to the stage."""
    launch = case.launch
    held = launch.reached in STAGES and STAGES.index(launch.reached) >= STAGES.index(node.stage)
    marks = [m for m in launch.marks if m.stage == (node.stage if held else launch.reached)]
    spans = some_of(case.table.span(m.row) for m in marks[:1])
    if not held and launch.truncated_head:
        return Outcome(None, spans, "the head of the log is cut", "give the log from the launch on")
    return Outcome(held, spans, f"the launch reached {launch.reached}")


def state(node: State, case: Case) -> Outcome:
    """Where the first failure was, or how the launch ended."""
    if node.subject == "ended":
        row = case.launch.ended_row
        spans = (case.table.span(row),) if row is not None else ()
        held = (case.launch.ended in node.values) is not node.negated
        return Outcome(held, spans, f"the launch ended: {case.launch.ended}")
    failure = case.launch.failure(case.launch.first_failure)
    if failure is None:
        return Outcome(False, (), "the launch shows no failure")
    place = (case.table.span(failure.row),)
    if failure.stage == "unknown" and "unknown" not in node.values:
        return Outcome(None, place, "the log does not tell in which stage it failed", "give the log from the launch on")
    held = (failure.stage in node.values) is not node.negated
    return Outcome(held, place, f"the first failure was in {failure.stage}")


def silence(node: Silence, case: Case) -> Outcome:
    """Whether a silence of that length was there (on those ranks, before that signal)."""
    launch = case.launch
    if node.before and not matches_of(case, node.before):
        return not_seen(case, node.before)
    if bool(np.isnan(case.table.time[launch.rows]).all()):
        return Outcome(None, (), "the log carries no times", "start the server with log timestamps")
    limit = _first_time(case, node.before) if node.before else None
    since = _served_since(case, limit)
    found = [
        (rank, start, end)
        for rank, start, end in launch.silences
        if compare_values(node.op, end - start, node.length.value)
        and (limit is None or start <= limit + SLACK)
        and start >= since - SLACK
        and _rank_fits(node, rank, case)
    ]
    if found:
        rank, start, end = max(found, key=lambda s: s[2] - s[1])
        on = f" on {rank}" if rank else ""
        return Outcome(True, _around(case, start), f"silence of {end - start:.0f} s{on}")
    longest = max((e - s for _, s, e in launch.silences), default=0.0)
    return Outcome(False, (), f"the longest silence is {longest:.0f} s" if longest else "there is no long silence")


def _first_time(case: Case, signal: str) -> float | None:
    times = [t for m in matches_of(case, signal) if (t := case.table.time_of(m.row)) is not None]
    return min(times, default=None)


def _served_since(case: Case, limit: float | None) -> float:
    """From when on a silence counts: the quiet minutes of a start-up say nothing about a signal in serving."""
    times = [m.time for m in case.launch.marks if m.stage == "serving" and m.time is not None]
    return min(times) if times and limit is not None and min(times) <= limit else float("-inf")


def _rank_fits(node: Silence, rank: Rank | None, case: Case) -> bool:
    """A silence of the whole launch is one of every rank."""
    if node.on is None or rank is None:
        return True
    if node.on.kind == "every":
        return False
    if node.on.kind in ("some", "one"):
        return True
    wanted = failing_rank(case) if node.on.kind == "failing" else Rank.parse(node.on.rank)
    return wanted is not None and same_rank(wanted, rank)


def _around(case: Case, time: float) -> tuple[Span, ...]:
    """The last line before a silence."""
    rows = case.launch.rows
    at = rows[case.table.time[rows] <= time + 1e-6]
    return (case.table.span(int(at[-1])),) if len(at) else ()


def tried(node: Tried, case: Case) -> Outcome:
    """Whether an earlier launch had the setting (and failed the same way, or did not fail)."""
    if not case.earlier:
        why = "the input holds no earlier launch"
        return Outcome(
            None, (), why, f"relaunch with {node.name}{'=' + node.value if node.value else ''} and give both logs"
        )
    here = case.launch.failure(case.launch.first_failure)
    had = [c for c in case.earlier if _had(node, c)]
    if not had:
        return Outcome(False, (), f"no earlier launch had {node.name}")
    for other in had:
        there = other.launch.failure(other.launch.first_failure)
        spans = some_of(other.table.span(int(r)) for r in other.launch.rows[:1])
        if there is not None:
            spans += (other.table.span(there.row),)
        if node.outcome == "":
            return Outcome(True, spans, f"launch {other.launch.id} had it")
        if node.outcome == "same" and same_failure(here, there):
            return Outcome(True, spans, f"launch {other.launch.id} had it and failed the same way")
        if node.outcome == "none" and there is None:
            return Outcome(True, spans, f"launch {other.launch.id} had it and shows no failure")
    ended = "failed in another way or not at all" if node.outcome == "same" else "failed"
    return Outcome(False, (), f"launch {had[-1].launch.id} had {node.name} and {ended}")


def _had(node: Tried, case: Case) -> bool:
    """Whether a launch had the flag or variable."""
    for name in _facts_of(node.name):
        found = look_up(case, name)
        if not found.known or found.value is None:
            continue
        if node.value is None:
            return truth(found.value) is not False and spelled(found.value) not in ("", "none")
        return equal(found.value, node.value, name.startswith("env."))
    return False


def _facts_of(setting: str) -> tuple[str, ...]:
    """Facts that hold a setting's value: server_args fields change their names with the releases."""
    if not setting.startswith("--"):
        return (f"env.{setting}",)
    found = catalog().flag(setting)
    older = [change["value"] for change in found[1].get("dest_history", ())] if found else []
    own = setting.lstrip("-").replace("-", "_")
    return tuple(dict.fromkeys(f"args.{dest}" for dest in (catalog().dest(setting), *older, own)))


def same_failure(one: Failure | None, other: Failure | None) -> bool:
    """Whether two first failures are of one kind: the same mechanism, or a signal that both show."""
    if one is None or other is None:
        return False
    return one.mechanism == other.mechanism or bool(set(one.signals) & set(other.signals))
