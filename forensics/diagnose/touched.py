"""Which signals were seen inside which failures: asked once for all findings that name the same signal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from forensics.engine.table import HEADED, STAMPED
from forensics.rulebook.case import Case
from forensics.schema.launch import Failure

_OTHER_RECORD = frozenset({"traceback-head", "chain", "frame", "blank", "capture-advice", "sigquit"})
MAX_MESSAGE = 40


class Touched:
    """The answers of one analysis, by launch, failure and signal."""

    def __init__(self) -> None:
        self._shown: dict[str, frozenset[str]] = {}
        self._known: dict[tuple[str, str, str], bool] = {}
        self._spots: dict[tuple[str, str], tuple[frozenset[int], frozenset[int]]] = {}

    def shown(self, case: Case) -> frozenset[str]:
        """The signals that a launch shows, by themselves or as those of its failures."""
        found = self._shown.get(case.launch.id)
        if found is None:
            of_failures = (s for f in case.launch.failures for s in f.signals)
            found = self._shown[case.launch.id] = frozenset((*case.signals, *of_failures))
        return found

    def by(self, failure: Failure, names: Iterable[str], case: Case) -> bool:
        """Whether one of these signals was seen inside a failure of the launch."""
        return any(self._one(failure, name, case) for name in names)

    def _one(self, failure: Failure, name: str, case: Case) -> bool:
        key = case.launch.id, failure.id, name
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = name in failure.signals or self._inside(failure, name, case)
        return found

    def _inside(self, failure: Failure, name: str, case: Case) -> bool:
        rows, blocks = self._spots_of(name, case)
        if not rows:
            return False
        inside = not rows.isdisjoint(failure.rows) or not blocks.isdisjoint(failure.blocks)
        return inside or not rows.isdisjoint(_message(failure, case))

    def _spots_of(self, name: str, case: Case) -> tuple[frozenset[int], frozenset[int]]:
        """Rows and blocks in which a signal was seen."""
        key = case.launch.id, name
        found = self._spots.get(key)
        if found is None:
            signal = case.signals.get(name)
            matches = signal.matches if signal else ()
            blocks = frozenset(m.block for m in matches if m.block is not None)
            found = self._spots[key] = (frozenset(m.row for m in matches), blocks)
        return found


def _message(failure: Failure, case: Case) -> Iterator[int]:
    """Further lines of the message that states a failure: a compiler's own words stand below the exception."""
    if not failure.blocks:
        return
    for row in range(failure.row + 1, min(failure.row + MAX_MESSAGE, len(case.table))):
        if case.table.flags[row] & (STAMPED | HEADED) or case.table.kind(row) in _OTHER_RECORD:
            return
        yield row
