"""Which findings could be the cause: the ledger of each on a launch, and which failures it would explain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import field

from forensics.diagnose.grounds import Ground, Ledger, signals_in
from forensics.diagnose.similar import Raised
from forensics.diagnose.touched import Touched
from forensics.diagnose.variables import Trials
from forensics.frozen import frozen
from forensics.grammar.condition_tree import Node
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import decided, trees
from forensics.schema.finding import Finding
from forensics.schema.options import SYMPTOMS

DIRECT, ASSUMED, OTHER, SYMPTOM, AFTERMATH, NOTHING = range(6)
"""What a finding explains, best first: the first failure by its signals; the first failure, as nothing in the finding
says otherwise; another failure that is no consequence; only the symptom that the user states; only consequences."""


@frozen
class Candidate:
    """A finding on a launch. `explains` holds failure ids (and `symptom:garbage`); `role` is one of the constants
    above; `row` is the earliest row of what it explains."""

    finding: Finding
    ledger: Ledger
    must: bool | None
    explains: tuple[str, ...]
    role: int
    row: int
    signals: tuple[str, ...] = field(default=())

    @property
    def applies(self) -> bool | None:
        """Whether the launch is of the kind that can have it."""
        return self.ledger.fits

    @property
    def positive(self) -> bool:
        """Whether anything that happened in the log speaks for it (settings alone do not)."""
        grounds = (*self.ledger.must, *self.ledger.decisive, *self.ledger.strong)
        return any(g.value is True and g.observed for g in grounds)

    @property
    def fits(self) -> bool:
        """Whether something besides the stated symptom speaks for it: a setting that it needs, or a sign in the log.
        That something else was not seen, or how far the launch got, fits every cause."""
        grounds = (*self.ledger.must, *self.ledger.decisive, *self.ledger.strong, *self.ledger.weak)
        return any(g.value is True and _tells(g.condition) for g in grounds)

    @property
    def possible(self) -> bool:
        """Whether nothing that it requires is known to be false."""
        return self.must is not False and self.applies is not False

    def count(self, strength: str) -> int:
        """Number of grounds of this strength that hold."""
        return len(self.ledger.held(strength))


_EVERYWHERE = re.compile(r"not \S+|absent\b.*|stage (?:reached|=) \S+|ended = \S+|(?:not )?symptom \S+")


def _tells(condition: str) -> bool:
    """Whether a condition that holds says something about this launch that does not fit every launch of its symptom."""
    if "symptom" in condition and " or " in condition:
        return False  # the symptom alone may be what holds
    parts = re.split(r"\b(?:and|or)\b", condition)
    return any(not _EVERYWHERE.fullmatch(p.strip(" ()")) for p in parts)


def beyond_failure(found: Candidate) -> bool:
    """Whether something that can be shown, besides the failure itself, which its rivals explain as well, speaks for a
    finding. What a log does not show speaks for none."""
    grounds = (*found.ledger.must, *found.ledger.decisive, *found.ledger.strong)
    return any(g.value is True and g.where and not _only(g.condition, found.signals) for g in grounds)


def _only(condition: str, signals: Iterable[str]) -> bool:
    """Whether a condition asks for nothing but these signals or the stated symptom."""
    plain = condition.replace("first failure has ", "").replace("(", " ").replace(")", " ")
    words = [w for w in plain.split() if w not in ("or", "and", "symptom")]
    return all(w in signals or w in SYMPTOMS for w in words)


class Weighed:
    """What one analysis computes once: candidates by finding and launch, and variations between launches."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Candidate] = {}
        self._named: dict[str, frozenset[str]] = {}
        self._asked: dict[str, tuple[tuple[Node, ...], tuple[str, ...]]] = {}
        """By finding: what it requires, and the signals whose failure it explains."""
        self.trials = Trials()
        self.near: dict[tuple[str, Raised | None], Sequence[tuple[str, float]]] = {}
        """Findings whose logs look like a failure, by its words and place; filled by those who ask."""
        self.weakened: dict[tuple[str, tuple[int, ...]], tuple[Ground, ...]] = {}
        """What attempts without effect say against a finding, by its id and the launches; filled by those who ask."""
        self._touched = Touched()

    def of(self, finding: Finding, case: Case) -> Candidate:
        """The finding on the launch."""
        key = finding.id, case.launch.id
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._candidate(finding, case)
        return found

    def _candidate(self, finding: Finding, case: Case) -> Candidate:
        asked = self._asked.get(finding.id)
        if asked is None:
            needs = trees(c for c in finding.grounds if c.strength == "must")
            # all launches of an analysis are read by the same rules
            asked = self._asked[finding.id] = needs, explaining_signals(finding, case)
        needs, signals = asked
        book = Ledger(finding, case, decided(needs, case))
        if signals and not finding.symptoms and self._touched.shown(case).isdisjoint(signals):
            return Candidate(finding, book, book.holds, (), NOTHING, 0, signals)
        explains, role, row = explained(finding, signals, book, case, self._touched)
        return Candidate(finding, book, book.holds, explains, role, row, signals)

    def named(self, findings: Iterable[Finding], case: Case) -> frozenset[str]:
        """Ids of the findings (always the same ones) that are hypotheses on the launch."""
        found = self._named.get(case.launch.id)
        if found is None:
            found = frozenset(f.id for f in findings if is_hypothesis(self.of(f, case)))
            self._named[case.launch.id] = found
        return found


def is_hypothesis(found: Candidate) -> bool:
    """Whether a candidate is worth naming at all: it may hold, explains something and has something for it."""
    if found.must is False or found.applies is False or found.role == NOTHING:
        return False
    if found.role == SYMPTOM:
        kind = any(g.value is True and _tells(g.condition) for g in found.ledger.applies)
        return (found.must is True and (found.fits or kind)) or (found.fits and found.applies is not None)
    return found.positive and (found.must is True or beyond_failure(found))


def is_pointer(found: Candidate, case: Case) -> bool:
    """Whether a suspected cause explains the launch by signals of role info alone, as drafts do beside their own
    wording: it points somewhere where nothing else does, and is no rival of a cause whose own sign is there."""
    shown = [case.rules[name].role for name in found.signals if name in case.signals]
    return found.finding.status == "suspected" and bool(shown) and all(role == "info" for role in shown)


def explaining_signals(finding: Finding, case: Case) -> tuple[str, ...]:
    """Signals whose failure the finding explains: as it says, else the root signals of its must and decisive grounds,
    else cascade signals there (a victim's phrase is then all there is to explain)."""
    if finding.explains:
        return finding.explains
    named = signals_in([c for c in finding.grounds if c.strength in ("must", "decisive")], case.rules)
    for role in ("root", "cascade"):
        chosen = tuple(s for s in named if case.rules[s].role == role)
        if chosen:
            return chosen
    return ()


def explained(
    finding: Finding, names: tuple[str, ...], book: Ledger, case: Case, touched: Touched
) -> tuple[tuple[str, ...], int, int]:
    """Failures (and the stated symptom) that the finding explains, with its causal role and the earliest row."""
    present = [n for n in names if n in touched.shown(case)]
    failures = [f for f in case.launch.failures if touched.by(f, present, case)] if present else []
    symptom = stated_symptom(case)
    extra = (f"symptom:{symptom}",) if symptom in finding.symptoms else ()
    ids = tuple(f.id for f in failures)
    first = case.launch.failure(case.launch.first_failure)
    if first and first.id in ids:
        return (*ids, *extra), DIRECT, first.row
    if first and not names and book.observed():
        return (first.id, *extra), ASSUMED, first.row
    if extra:
        return (*ids, *extra), SYMPTOM, 0
    roots = [f for f in failures if f.role == "root"]
    if roots:
        return ids, OTHER, roots[0].row
    if failures:
        return ids, AFTERMATH, failures[0].row
    return (), NOTHING, 0


def stated_symptom(case: Case) -> str | None:
    """What the user saw; a launch that hangs without an error line says so itself."""
    if case.symptom:
        return case.symptom
    first = case.launch.failure(case.launch.first_failure)
    stands = first is None or first.mechanism.startswith("divergence")  # stacks that somebody took, no error line
    return "hang" if case.launch.ended == "hung" and stands else None
