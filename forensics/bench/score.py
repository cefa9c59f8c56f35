"""Scores over answers. What counts as right is written down here and printed in docs/accuracy.md.

- Enough in the log: the cause must be first (top-1) or among the first three (top-3). Where the log shows no failure
  and no symptom is stated, the launch has risks only, and the cause must be the first (or among the first three) of
  them.
- Not enough in the log: right when the cause is among the first three at `possible`, or when nothing is named and a
  next step is given; a `likely` or `established` there is overconfident.
- Healthy logs: no hypothesis. Undetermined ones: no `likely` or `established`.
- First failure: the line within two of the truth's (or inside its span), the rank as on that line; none where the
  truth has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from forensics.bench.cases import HEALTHY, UNDETERMINED
from forensics.bench.run import STRONG, Answer
from forensics.frozen import frozen

TOLERANCE = 2


@frozen
class Share:
    """`right` of `n`."""

    right: int
    n: int

    @property
    def percent(self) -> float | None:
        """Percentage with one decimal; None of nothing."""
        return round(100 * self.right / self.n, 1) if self.n else None


@frozen
class Scores:
    """All figures over one group of cases."""

    top1: Share
    top3: Share
    modest: Share
    healthy: Share
    line: Share
    rank: Share
    stage: Share
    guilty: Share
    precision: dict[str, Share]
    confident: Share
    established: Share


def score(answers: Sequence[Answer]) -> Scores:
    """Figures over answers."""
    enough = [a for a in answers if a.case.enough and a.case.cause not in (*HEALTHY, UNDETERMINED)]
    modest = [a for a in answers if not a.case.enough or a.case.cause == UNDETERMINED]
    healthy = [a for a in answers if a.case.cause in HEALTHY]
    stated = [a for a in answers if a.case.states_failure]
    guilty = [a for a in answers if a.case.guilty]
    return Scores(
        top1=_share(place(a) == 1 for a in enough),
        top3=_share((place(a) or 9) <= 3 for a in enough),
        modest=_share(modest_enough(a) for a in modest),
        healthy=_share(not a.hypotheses for a in healthy),
        line=_share(line_right(a) for a in stated),
        rank=_share(a.rank == a.case.rank for a in stated),
        stage=_share(a.stage in a.case.stages for a in stated if a.case.stages and a.case.line is not None),
        guilty=_share(a.case.guilty in (*a.suspects, a.rank) for a in guilty),
        precision={
            word: _share(a.top == a.case.cause for a in answers if a.verdict == word)
            for word in ("established", "likely", "possible")
        },
        confident=_share(a.verdict in STRONG for a in enough),
        established=_share(a.verdict == "established" for a in enough),
    )


def place(found: Answer) -> int | None:
    """1-based place of the true cause among the hypotheses (or the risks, where nothing is asked); None if absent."""
    names = [name for name, _, _ in found.hypotheses]
    if not names and found.case.line is None and found.case.symptom is None:
        names = list(found.risks)
    return names.index(found.case.cause) + 1 if found.case.cause in names else None


def modest_enough(found: Answer) -> bool:
    """Whether the answer to a log that does not hold enough is a modest and useful one."""
    if any(verdict in STRONG for _, verdict, _ in found.hypotheses):
        return False
    if found.case.cause == UNDETERMINED:
        return True
    findings = [name for name, _, kind in found.hypotheses if kind == "finding"]
    return (place(found) or 9) <= 3 or (not findings and found.has_next)


def line_right(found: Answer) -> bool:
    """Whether the first failure is on the right line."""
    if found.case.line is None or found.line is None:
        return found.case.line is found.line
    low, high = found.case.span or (found.case.line, found.case.line)
    return abs(found.line - found.case.line) <= TOLERANCE or low <= found.line <= high


def confusions(answers: Iterable[Answer]) -> list[tuple[str, str, int]]:
    """(true cause, what was put first, how often), most frequent first."""
    counted = Counter(
        (a.case.cause, a.top or "(none)")
        for a in answers
        if a.case.enough and a.case.cause not in (*HEALTHY, UNDETERMINED) and place(a) != 1
    )
    return [(true, said, n) for (true, said), n in sorted(counted.items(), key=lambda p: (-p[1], p[0]))]


def misses(answers: Iterable[Answer]) -> list[str]:
    """One sentence for everything that was wrong, by case."""
    found = []
    for a in answers:
        parts = _faults(a)
        if parts:
            found.append(f"{a.case.id}: {'; '.join(parts)}")
    return found


def _faults(a: Answer) -> list[str]:
    cause, parts = a.case.cause, []
    said = f"{a.top or 'nothing'} ({a.verdict or '-'})"
    if cause in HEALTHY:
        parts += [f"healthy, but {said}"] if a.hypotheses else []
    elif cause == UNDETERMINED or not a.case.enough:
        parts += [] if modest_enough(a) else [f"not enough in the log for {cause}, but {said}"]
    elif place(a) != 1:
        parts.append(f"{cause} is {'place ' + str(place(a)) if place(a) else 'not named'}, first is {said}")
    elif cause in a.ruled_out:
        parts.append(f"{cause} is ruled out")
    if a.case.states_failure and not line_right(a):
        parts.append(f"first failure on line {a.line}, truth {a.case.line}")
    if a.case.states_failure and a.rank != a.case.rank:
        parts.append(f"rank {a.rank}, truth {a.case.rank}")
    return parts


def _share(held: Iterable[bool]) -> Share:
    values = list(held)
    return Share(sum(values), len(values))
