"""Delta debugging over the changes of a launch."""

from __future__ import annotations

from collections.abc import Callable

from forensics.errors import ReplayError
from forensics.replay.edits import Change


def minimal(
    changes: list[Change],
    passes: Callable[[list[Change]], bool],
    out_of_time: Callable[[], bool] = lambda: False,
) -> tuple[list[Change], bool]:
    """A subset of `changes`, in order, from which no single change can be left out, and whether that is known (False:
    the time ended before). `passes` is asked about each subset at most once, and never about the empty set."""
    known: dict[tuple[Change, ...], bool] = {}

    def ask(subset: list[Change]) -> bool:
        key = tuple(subset)
        if key not in known:
            if known and out_of_time():
                raise TimeoutError
            known[key] = bool(subset) and passes(subset)
        return known[key]

    if not ask(changes):
        raise ReplayError(
            "all changes together do not pass, so there is nothing to minimise", hint="find a passing set first"
        )
    parts = 2
    try:
        while len(changes) > 1:
            smaller, parts = _smaller(changes, parts, ask)
            if smaller is not None:
                changes = smaller
            elif parts > len(changes):
                break
    except TimeoutError:
        return changes, False
    return changes, True


def _smaller(changes: list[Change], parts: int, ask: Callable[[list[Change]], bool]) -> tuple[list[Change] | None, int]:
    """(a smaller set that passes, or None; into how many parts to cut next)."""
    size = -(-len(changes) // parts)
    chunks = [changes[i : i + size] for i in range(0, len(changes), size)]
    one = next((c for c in chunks if ask(c)), None)
    if one is not None:
        return one, 2
    rests = [[x for x in changes if x not in c] for c in chunks]
    rest = next((r for r in rests if r and len(r) < len(changes) and ask(r)), None)
    if rest is not None:
        return rest, max(parts - 1, 2)
    return None, len(changes) + 1 if size == 1 else min(parts * 2, len(changes))
