"""Judged hypotheses, differences and comparisons as the models of the report, with their stable ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from forensics.diagnose.controls import Comparison
from forensics.diagnose.convert import fix_info, plain
from forensics.diagnose.general import General
from forensics.diagnose.grounds import UNKNOWN, Ground
from forensics.diagnose.hypotheses import Diagnosis
from forensics.diagnose.objections import told_apart
from forensics.diagnose.places import Places
from forensics.diagnose.steps_here import steps_for
from forensics.diagnose.tried import Pair, first_failure
from forensics.diagnose.verdict import ESTABLISHED, LIKELY, POSSIBLE, RULED_OUT, Judged
from forensics.diagnose.wording import readable
from forensics.rulebook.case import Case
from forensics.schema.finding import Finding, FixStep
from forensics.schema.report import ComparisonInfo, DifferenceInfo, GroundInfo, HypothesisInfo, RiskInfo, Where
from forensics.schema.signal import Rule
from forensics.schema.span import Span
from forensics.timeline.catalog import check_changes

MAX_DIFFERENCES = 3
WEIGHT = {"excludes": 0, "decisive": 1, "must": 2, "strong": 3, "against": 4, "weak": 5}


def hypothesis_infos(case: Case, found: Diagnosis, places: Places) -> list[HypothesisInfo]:
    """All hypotheses of one launch, best first, ruled-out ones last."""
    live = [j for j in found.judged if j.verdict != RULED_OUT]
    dead = [j for j in found.judged if j.verdict == RULED_OUT]
    infos: list[HypothesisInfo] = []
    if found.unclaimed is not None:
        infos.append(_shown_by(found.unclaimed, case, places))
    if found.engine is not None and found.blind:  # nothing but guesses: who waited, and for whom, comes first
        infos.append(_engine(found.engine, case, places))
    infos += [_finding(j, case, places) for j in live]
    if found.engine is not None and not found.blind:
        infos.append(_engine(found.engine, case, places))
    if found.engine is not None and found.comparison is not None:
        infos += _differences(found.comparison, found.unnamed, case, places)
    infos += [_finding(j, case, places) for j in dead]
    return [_numbered(info, f"{case.launch.id}.H{n}") for n, info in enumerate(infos, 1)]


def ground_info(ground: Ground, places: Places, name: str = "", rules: Mapping[str, Rule] | None = None) -> GroundInfo:
    """One ground, in words where `rules` are given. Spans outside the input (a deployment's file) keep their place
    without text."""
    return GroundInfo.of_values(
        {
            "id": name,
            "side": ground.side,
            "strength": ground.strength,
            "condition": ground.condition,
            "why": places.safe(readable(ground.why, rules or {}, ground.condition)),
            "settle": ground.settle,
            "where": places.spans(ground.where),
        }
    )


def comparison_info(found: Comparison | None, places: Places) -> ComparisonInfo | None:
    """The comparison with the nearest control."""
    if found is None:
        return None
    return ComparisonInfo(
        deployment=found.deployment.id,
        title=found.deployment.title,
        strength=found.deployment.strength,
        why=found.why,
        differences=[
            DifferenceInfo(
                name=d.name,
                here=plain(d.here, places),
                control=plain(d.control, places),
                tested=d.tested,
                where=_where(d.where, places),
            )
            for d in found.differences
        ],
    )


def _finding(judged: Judged, case: Case, places: Places) -> HypothesisInfo:
    finding = judged.candidate.finding
    return HypothesisInfo.of_values(
        {
            "id": "",
            "kind": "finding",
            "finding": finding.id,
            "title": finding.title,
            "verdict": judged.verdict,
            "explains": list(judged.candidate.explains),
            "grounds": told_apart([ground_info(g, places, rules=case.rules) for g in _worth_showing(judged)]),
            "fix": [fix_info(step, places) for step in fix_for(finding, case)],
            "why": places.safe(readable(judged.why, case.rules)),
            "category": finding.category,
            "status": finding.status,
            "look_alikes": list(finding.look_alikes),
            "verify": list(finding.verify),
            "sources": list(finding.sources),
        }
    )


def fix_for(finding: Finding, case: Case) -> list[FixStep]:
    """The steps of a finding's fix as the releases that this launch can be understand them, those that none of them
    takes last. An upgrade that every one of them has already is left out where another step remains."""
    changes = list(dict.fromkeys(check_changes(steps_for(finding, case), case.launch.version)))
    useful = [c for c in changes if not c[0].do.startswith("not applicable here: at-least ")] or changes
    ordered = sorted(useful, key=lambda c: c[0].do.startswith("not applicable here"))
    return [step for change in ordered for step in change]


def with_fixes(risks: Sequence[RiskInfo], findings: Sequence[Finding], case: Case, places: Places) -> list[RiskInfo]:
    """Risks with what to do about each on this launch."""
    by_id = {f.id: f for f in findings}
    steps = {r.finding: [fix_info(s, places) for s in fix_for(by_id[r.finding], case)] for r in risks}
    return [r.model_copy(update={"fix": steps[r.finding]}) for r in risks]


def _worth_showing(judged: Judged) -> list[Ground]:
    """Grounds that say something: a weak, strong or decisive condition that merely did not hold, and an objection that
    did not arise, are left to `explain`."""
    shown: list[Ground] = []
    for ground in _once(judged.grounds):
        absent_support = ground.value is False and ground.strength in ("decisive", "strong", "weak")
        no_objection = ground.value is False and ground.strength in ("against", "excludes") and ground.side == "for"
        unknown_aside = ground.side == UNKNOWN and ground.strength in ("weak", "against", "excludes")
        if not (absent_support or no_objection or unknown_aside):
            shown.append(ground)
    return shown


def _once(grounds: Sequence[Ground]) -> list[Ground]:
    """Each observation once, under the weightiest strength that it has: findings may ask one thing for two reasons."""
    kept: dict[tuple[object, ...], Ground] = {}
    for ground in grounds:
        key = (ground.side, ground.why, ground.where)
        if key not in kept or WEIGHT.get(ground.strength, 9) < WEIGHT.get(kept[key].strength, 9):
            kept[key] = ground
    return list(kept.values())


def _engine(reading: General, case: Case, places: Places) -> HypothesisInfo:
    first = first_failure(case)
    return HypothesisInfo(
        id="",
        kind="engine",
        title=places.safe(reading.title),
        verdict=POSSIBLE,
        explains=[first.id] if first else [],
        grounds=[ground_info(g, places) for g in reading.grounds],
        why=places.safe(reading.why),
    )


def _shown_by(pair: Pair, case: Case, places: Places) -> HypothesisInfo:
    """A single-variable comparison that no finding claims still shows the variable. Where the good launch came first,
    other things than the setting may have changed with time: then it is no more than likely."""
    together = set(pair.good.launch.sources) & set(pair.bad.launch.sources)  # separate files state no order
    earlier = bool(together) and any(c is pair.good for c in pair.bad.earlier)
    tested = pair.variable
    change = replace(tested, before=tested.after, after=tested.before) if earlier else tested
    first = first_failure(case)
    rows = [pair.bad.table.span(f.row) for f in (first_failure(pair.bad),) if f]
    where = (*([pair.variable.where] if pair.variable.where else []), *rows)
    why = f"{pair.bad.launch.id} fails, {pair.good.launch.id} works, and only {pair.variable.text()} differs"
    ground = Ground("for", "decisive", f"only {pair.variable.fact} differs", True, why, where=where)
    return HypothesisInfo(
        id="",
        kind="difference",
        title=places.safe(f"Changing {change.text()} made it {'fail' if earlier else 'work'}"),
        verdict=LIKELY if earlier else ESTABLISHED,
        explains=[first.id] if first else [],
        grounds=[ground_info(ground, places)],
        why=places.safe(why),
    )


def _differences(comparison: Comparison, unnamed: Sequence[str], case: Case, places: Places) -> list[HypothesisInfo]:
    """Untested differences to the control that no finding names: suspects, no more."""
    first = first_failure(case)
    infos = []
    for difference in [d for d in comparison.differences if d.name in unnamed][:MAX_DIFFERENCES]:
        shown, control = plain(difference.here, places), plain(difference.control, places)
        why = f"{comparison.deployment.id} works with {difference.name} = {control}; here it is {shown}"
        where = (difference.where,) if difference.where else ()
        ground = Ground("for", "weak", f"{difference.name} differs from the control", True, why, where=where)
        infos.append(
            HypothesisInfo(
                id="",
                kind="difference",
                title=f"{difference.name} = {shown} where the nearest known-good launch has {control}",
                verdict=POSSIBLE,
                explains=[first.id] if first else [],
                grounds=[ground_info(ground, places)],
                why=why,
            )
        )
    return infos


def _numbered(info: HypothesisInfo, name: str) -> HypothesisInfo:
    grounds = [g.model_copy(update={"id": f"{name}.G{n}"}) for n, g in enumerate(info.grounds, 1)]
    return info.model_copy(update={"id": name, "grounds": grounds})


def _where(span: Span | None, places: Places) -> Where | None:
    return places.span(span) if span else None
