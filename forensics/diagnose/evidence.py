"""What speaks for and against a candidate beside its own conditions: other launches, controls, the history."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from forensics.diagnose import exclusion, past
from forensics.diagnose.candidates import DIRECT, Candidate, Weighed
from forensics.diagnose.controls import Comparison
from forensics.diagnose.grounds import AGAINST, Ground, signals_in
from forensics.diagnose.past import Past
from forensics.diagnose.tried import Pair, comparison_ground, refuted_by, still_there, weakened_by
from forensics.diagnose.verdict import Evidence, support
from forensics.frozen import frozen
from forensics.rulebook.case import Case
from forensics.timeline.remarks import without_settings


@frozen
class Around:
    """One launch with all that is known around it. `alike`: other launches that failed in the same way; `pairs`:
    single-variable comparisons that concern its failure."""

    case: Case
    everyone: tuple[Case, ...]
    alike: tuple[Case, ...]
    pairs: tuple[Pair, ...]
    comparison: Comparison | None
    weighed: Weighed
    past: Past


def evidence(found: Candidate, around: Around) -> Evidence:
    """The evidence beside the ledger. Where the program itself names the cause, a fix that did not help and a release
    outside the known range speak against it, but do not rule it out: fixes can be too small, ranges too narrow."""
    finding, case = found.finding, around.case
    excluded = exclusion.by_condition(found)
    shown = comparison_ground(found, around.pairs) if excluded is None else None
    if shown is not None:
        return Evidence(comparison=shown)
    soft = exclusion.excluded(found, case) or refuted_by(finding, case, around.alike, around.weighed)
    soft = soft or past.failed(finding, case, around.past)
    extra = list(weakened_by(finding, case, around.alike, around.weighed))
    if excluded is None and soft is not None:
        if found.must is True and found.count("decisive"):
            extra.append(replace(soft, strength="against"))
        else:
            excluded = soft
    further = (
        still_there(found, around.pairs, around.weighed),
        _good_prints_it_too(found, around),
        past.proved(finding, case, around.past),
        _untold(found, case),
    )
    return Evidence(excluded=excluded, extra=(*extra, *(g for g in further if g is not None)))


def _untold(found: Candidate, case: Case) -> Ground | None:
    """What would rule a finding out, where the log lost the lines that tell it: its head with the settings."""
    if not without_settings(case.launch):
        return None
    open_ = next((g for g in found.ledger.excludes if g.value is None), None)
    if open_ is None:
        return None
    why = f"the log shows no server_args, so that what would rule it out is not known: {open_.condition}"
    return Ground(AGAINST, "against", open_.condition, None, why, settle=open_.settle, observed=True)


def excluded_aside(found: Candidate, around: Around, elsewhere: Container[str]) -> Ground | None:
    """Why a finding that is no hypothesis here is worth ruling out aloud, or None. `elsewhere`: ids of the findings
    that are hypotheses where the launch's failure happened as well."""
    ground = exclusion.excluded(found, around.case)
    if ground is None and found.finding.id in elsewhere:
        ground = refuted_by(found.finding, around.case, around.alike, around.weighed)
    return ground


def one_claim(live: Sequence[tuple[Candidate, Evidence]]) -> list[tuple[Candidate, Evidence]]:
    """One comparison shows one cause: the best supported of those that its variable belongs to. For the others it is
    a strong ground, no more."""
    claims = [c for c, e in live if e.comparison is not None]
    if len(claims) < 2:
        return list(live)
    best = max(claims, key=lambda c: (c.must is True, c.role == DIRECT, support(c), c.finding.id))
    shared: list[tuple[Candidate, Evidence]] = []
    for found, known in live:
        if known.comparison is not None and found is not best:
            known = Evidence(extra=(replace(known.comparison, strength="strong"),))
        shared.append((found, known))
    return shared


def _good_prints_it_too(found: Candidate, around: Around) -> Ground | None:
    """A warning that a launch known to work prints as well proves nothing by itself."""
    if found.count("decisive"):
        return None
    named = _warnings(found, around.case)
    for other in around.everyone:
        good = other.launch.first_failure is None and other.launch.reached == "serving"
        both = [n for n in named if n in other.signals]
        if good and both and other.launch.id != around.case.launch.id:
            place = other.table.span(other.signals[both[0]].matches[0].row)
            why = f"{other.launch.id} works and prints it too ({both[0]})"
            return Ground(AGAINST, "against", f"{both[0]} in a good launch", True, why, where=(place,), observed=True)
    if around.comparison is None:
        return None
    deployment = around.comparison.deployment
    both = [n for n in named if n in deployment.warnings]
    if not both:
        return None
    why = f"{deployment.id} works and prints it too ({both[0]})"
    return Ground(AGAINST, "against", f"{both[0]} in a good launch", True, why, where=(deployment.span,))


def _warnings(found: Candidate, case: Case) -> list[str]:
    conditions = [c for c in found.finding.grounds if c.strength in ("must", "strong")]
    return [n for n in signals_in(conditions, case.rules) if n in case.signals and case.rules[n].role == "warning"]
