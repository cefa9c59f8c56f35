"""What is ruled out, and by what: a passed stage, a version interval, an excluding condition.

Exclusion by attempts is in `tried.py`. Only findings whose `applies` hold (they could have been it) are worth saying.
"""

from __future__ import annotations

from forensics.diagnose.candidates import DIRECT, NOTHING, Candidate
from forensics.diagnose.convert import stage_index
from forensics.diagnose.grounds import AGAINST, Ground
from forensics.rulebook.case import Case
from forensics.rulebook.versions import lifetime_range, overlap
from forensics.schema.launch import STAGES, StageMark
from forensics.schema.signal import Rule


def excluded(found: Candidate, case: Case) -> Ground | None:
    """The ground that rules a finding out on this launch, or None."""
    if found.must is not False and found.role != NOTHING:
        return None if found.applies is False else by_condition(found) or _by_version(found, case)
    if found.finding.shows and found.finding.applies and found.applies is True:
        return _by_stage(found, case)
    return None


def by_condition(found: Candidate) -> Ground | None:
    """An excluding condition that holds."""
    held = found.ledger.held("excludes")
    return held[0] if held else None


def _by_version(found: Candidate, case: Case) -> Ground | None:
    interval, text = case.launch.version, found.finding.versions
    if not text or overlap(interval, text) != "outside":
        return None
    low, high = interval.exact or interval.low or "?", interval.exact or interval.high or "newest"
    seen = low if low == high else f"{low} to {high}"
    places = tuple(at for _, at in interval.grounds if at is not None)
    why = f"sglang here is {seen}; releases that can have this fault: {text}"
    return Ground(AGAINST, "excludes", f"version.sglang {text}", False, why, where=places)


def _by_stage(found: Candidate, case: Case) -> Ground | None:
    for shows in found.finding.shows:
        rule = case.rules.get(shows.signal)
        if rule is None or shows.signal in case.signals or case.launch.truncated_head:
            continue
        if not _would_print(rule, case):
            continue
        mark = passed(case, shows.stage)
        if mark is not None:
            why = f"{shows.stage} was passed on every rank that the log covers, and no line shows {shows.signal}"
            return Ground(
                AGAINST, "excludes", f"not {shows.signal}", True, why, where=(case.table.span(mark.row),), observed=True
            )
    return None


def passed(case: Case, stage: str) -> StageMark | None:
    """The line that proves that every covered rank went beyond a stage, or None where one did not or may not have.

    The start-up request proves prefill and one decode step (it runs both). Graph capture counts only if it ran.
    """
    launch = case.launch
    reached = list(launch.stages.values()) or [launch.reached]
    if stage in STAGES:
        beyond = all(stage_index(s) > stage_index(stage) for s in reached)
        beyond = beyond or stage_index(launch.reached) == len(STAGES) - 1 > stage_index(stage)
    else:
        beyond = launch.reached == "serving" and stage in ("prefill", "decode")
    if not beyond:
        return None
    ends = [m for m in launch.marks if m.stage == stage and m.edge == "end"]
    if stage == "graph-capture" and not ends:
        return None
    later = [m for m in launch.marks if stage_index(m.stage) > stage_index(stage)]
    serving = [m for m in launch.marks if m.stage == "serving"]
    return next(iter(ends[-1:] or later[:1] or serving[:1]), None)


def _would_print(rule: Rule, case: Case) -> bool:
    """Whether every release that this launch can be prints the rule's message."""
    if rule.first is None and rule.last is None:
        return True
    return overlap(case.launch.version, lifetime_range(rule.first, rule.last)) == "inside"


def similarity(found: Candidate, leaders: list[Candidate]) -> tuple[int, int, int]:
    """How near an excluded finding is to the question: look-alike of a leading hypothesis, same category, grounds
    that hold all the same."""
    ids = {c.finding.id for c in leaders}
    alike = any(found.finding.id in c.finding.look_alikes for c in leaders) or bool(
        ids & set(found.finding.look_alikes)
    )
    same = any(found.finding.category == c.finding.category for c in leaders)
    held = sum(1 for g in found.ledger.all() if g.value is True)
    return int(alike) * 2 + int(found.role == DIRECT), int(same), held
