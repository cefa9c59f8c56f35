"""Order of hypotheses: causal role, then verdict, then time, then specificity. Never severity or count."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.diagnose.candidates import ASSUMED, DIRECT, OTHER, SYMPTOM, Candidate
from forensics.diagnose.verdict import ORDER, RULED_OUT, Judged, support

_CLASS = {DIRECT: 0, ASSUMED: 0, OTHER: 2, SYMPTOM: 1}
"""What explains the first failure comes first, then what explains the stated symptom, then other root failures; what
explains consequences only comes last."""


def ranked(judged: Iterable[Judged]) -> tuple[Judged, ...]:
    """Best first; ruled-out ones last. Ties are broken by the finding's id, so that the order is stable."""
    return tuple(sorted(judged, key=_key))


def _key(judged: Judged) -> tuple[object, ...]:
    found = judged.candidate
    decisive, strong, musts, weak = support(found)
    extra_against = min(1, sum(1 for g in judged.evidence.extra if g.side == "against"))
    return (
        judged.verdict == RULED_OUT,
        _CLASS.get(found.role, 3),
        ORDER[judged.verdict],
        found.role == ASSUMED,
        found.must is None,
        found.finding.log_evidence == "none",
        found.row,
        -decisive,
        -(strong - extra_against),
        -_explained(found),
        -musts,
        -weak,
        -_specific(found),
        found.finding.status != "confirmed",
        found.finding.id,
    )


def _explained(found: Candidate) -> int:
    """Symptom and failure together beat one of them; more explained failures do not count."""
    return min(2, len(found.explains))


def _specific(found: Candidate) -> int:
    """Settings that had to fit: applies and must conditions that hold."""
    return found.count("applies") + found.count("must")
