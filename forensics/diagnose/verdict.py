"""The verdict words: established, likely, possible, ruled out. Rules only; no number picks a word.

- established: must held, a decisive ground held, the first failure is explained, nothing against, no look-alike that
  could be it as well; or a single-variable comparison in the input shows it.
- likely: must held, a strong (or decisive) ground beside it, the first failure is explained, no stronger rival.
- possible: must held or unknown, without that support. Causes without log evidence, silent ones and those that are
  told by a symptom alone stay here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Final

from forensics.diagnose.candidates import ASSUMED, DIRECT, OTHER, SYMPTOM, Candidate
from forensics.diagnose.grounds import Ground
from forensics.frozen import frozen

ESTABLISHED: Final = "established"
LIKELY: Final = "likely"
POSSIBLE: Final = "possible"
RULED_OUT: Final = "ruled-out"
_OTHER_SIGN = re.compile(r"\b(?:silence|series|tried|before|on (?:every|one|some) rank|count)\b")
ORDER = {ESTABLISHED: 0, LIKELY: 1, POSSIBLE: 2, RULED_OUT: 3}


@frozen
class Evidence:
    """What the other stages add to a candidate's own ledger. `comparison`: a pair of launches that differ in its
    variable only. `excluded`: why it is ruled out. `extra`: further grounds (attempts, controls)."""

    comparison: Ground | None = None
    excluded: Ground | None = None
    extra: tuple[Ground, ...] = ()


@frozen
class Judged:
    """A candidate with its verdict, the reason for that word, and all its grounds."""

    candidate: Candidate
    verdict: str
    why: str
    evidence: Evidence = field(default_factory=Evidence)

    @property
    def grounds(self) -> tuple[Ground, ...]:
        """All grounds: the comparison first, then the ledger's, then those added by attempts and controls."""
        added = [g for g in (self.evidence.comparison, self.evidence.excluded) if g is not None]
        return (*added, *self.candidate.ledger.all(), *self.evidence.extra)


def judge(pairs: Sequence[tuple[Candidate, Evidence]]) -> tuple[Judged, ...]:
    """Verdicts for all candidates of one launch: each alone first, then held against its rivals."""
    covered = any(c.role in (DIRECT, ASSUMED) and c.must is True and e.excluded is None for c, e in pairs)
    named = any(says_so(c, e) for c, e in pairs)
    pairs = [(c, _yielding(e) if named and not says_so(c, e) else e) for c, e in pairs]
    alone = [Judged(c, *_alone(c, e, covered), evidence=e) for c, e in pairs]
    return tuple(_against_rivals(j, alone) for j in alone)


def says_so(found: Candidate, evidence: Evidence) -> bool:
    """Whether the program names this cause in the first failure and nothing speaks against it."""
    plain = Evidence(None, evidence.excluded, evidence.extra)
    return found.role == DIRECT and not _cap(found, True) and _alone(found, plain, True)[0] == ESTABLISHED


def _yielding(evidence: Evidence) -> Evidence:
    """A comparison of launches is a strong ground, no more, where the program itself names another cause."""
    if evidence.comparison is None:
        return evidence
    return Evidence(None, evidence.excluded, (*evidence.extra, replace(evidence.comparison, strength="strong")))


def support(found: Candidate) -> tuple[int, int, int, int]:
    """How much speaks for a candidate, best first in descending order: a decisive ground, strong grounds less those
    against, observed musts (how specific it is), weak grounds."""
    against = found.count("against")
    musts = sum(1 for g in found.ledger.held("must") if g.observed)
    return min(found.count("decisive"), 1), found.count("strong") - against, musts, found.count("weak")


def _alone(found: Candidate, evidence: Evidence, covered: bool) -> tuple[str, str]:
    if evidence.excluded is not None:
        return RULED_OUT, evidence.excluded.why
    if evidence.comparison is not None and found.must is not False:
        return ESTABLISHED, evidence.comparison.why
    capped = _cap(found, covered)
    if capped:
        return POSSIBLE, capped
    if found.count("decisive"):
        return _decided(found, evidence)
    added = any(g.side == "for" and g.strength == "strong" for g in evidence.extra)
    if not found.count("strong") and not added:
        return POSSIBLE, "no strong ground beside what it requires"
    if not added and not any(tells(g, found) for g in found.ledger.held("strong")):
        return POSSIBLE, "only settings speak for it beside the failure itself, which other causes share"
    if found.applies is None:
        return POSSIBLE, "the log does not state whether this launch is of the kind that can have it"
    return LIKELY, "all that it requires held, with a strong ground beside it"


def tells(ground: Ground, found: Candidate) -> bool:
    """Whether a strong ground rests on a sign in the log besides the failure's own signals: what every rival explains
    as well, joined with a setting, does not tell them apart."""
    captured = any(f"{name}." in ground.condition for name in ground.signals)
    others = any(name not in found.signals for name in ground.signals)
    return captured or others or bool(_OTHER_SIGN.search(ground.condition))


def _cap(found: Candidate, covered: bool) -> str:
    """Why a candidate cannot be more than possible, or nothing. `covered`: some finding explains the first failure;
    where none does, a root failure whose cause the program names may still be the answer."""
    if found.role == SYMPTOM:
        return "the stated symptom and what fits it cannot show more; no line of the log states the fault"
    named = found.role == OTHER and not covered and found.count("decisive") > 0
    if found.role not in (DIRECT, ASSUMED) and not named:
        return "it does not explain the first failure"
    if found.must is None:
        return "something that it requires is unknown"
    if found.finding.log_evidence == "none":
        return "no log of this cause has been seen that tells it from others"
    return ""


def _decided(found: Candidate, evidence: Evidence) -> tuple[str, str]:
    if found.finding.status == "suspected":
        return LIKELY, "the cause itself is suspected, not confirmed"
    if found.count("against") or any(g.side == "against" for g in evidence.extra):
        return LIKELY, "a decisive ground held, but something speaks against it"
    if found.role != DIRECT:
        return LIKELY, "a decisive ground held; that it caused the first failure is inferred"
    return ESTABLISHED, "the program names the cause"


def _against_rivals(judged: Judged, everyone: Sequence[Judged]) -> Judged:
    if judged.verdict not in (ESTABLISHED, LIKELY) or judged.evidence.comparison is not None:
        return judged
    rivals = [r for r in everyone if r is not judged and _rival(r)]
    proven = [r for r in rivals if r.evidence.comparison is not None]
    if proven:
        return _down(judged, POSSIBLE, proven[0], "a comparison of launches shows another cause")
    if judged.verdict == ESTABLISHED:
        equal = [r for r in rivals if r.verdict == ESTABLISHED or _alike(judged, r)]
        return _down(judged, LIKELY, equal[0], "not told apart from") if equal else judged
    stronger = [r for r in rivals if support(r.candidate)[:2] > support(judged.candidate)[:2]]
    return _down(judged, POSSIBLE, stronger[0], "more speaks for") if stronger else judged


def _rival(other: Judged) -> bool:
    """Whether this one would explain the first failure, too, so that only one of them can be its cause."""
    return other.verdict in (ESTABLISHED, LIKELY)


def _alike(one: Judged, other: Judged) -> bool:
    """Whether two findings name each other as look-alikes."""
    a, b = one.candidate.finding, other.candidate.finding
    return b.id in a.look_alikes or a.id in b.look_alikes


def _down(judged: Judged, verdict: str, rival: Judged, why: str) -> Judged:
    return replace(judged, verdict=verdict, why=f"{why} ({rival.candidate.finding.id})")
