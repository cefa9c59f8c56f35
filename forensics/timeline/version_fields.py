"""What the field set of a `server_args=` dump says about the release: fields come and go, and all are printed."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from forensics.frozen import frozen
from forensics.rulebook.versions import older
from forensics.timeline.catalog import catalog, first_build_after

NOT_PRINTED = frozenset({"config", "help"})
"""Flags that are no field of the dump."""


MIN_FIELDS = 40
"""A list with fewer known names is cut off: what it lacks proves nothing."""
OPTION_ONLY = "_parallel_size"
"""Options such as `--tensor-parallel-size` had a name of their own; the field was called `tp_size` all along."""


@frozen
class FieldLife:
    """Read releases (indexes, first and last) in whose dump a field stands; `sure`: its absence proves something."""

    name: str
    spans: tuple[tuple[int, int], ...]
    sure: bool


@frozen
class FieldBound:
    """A bound that a field set gives: the release, and the field that decides it."""

    release: str
    field: str
    present: bool


@cache
def field_lives() -> dict[str, FieldLife]:
    """Life of every known field, by its name in the dump."""
    known = catalog()
    at = {release: i for i, release in enumerate(known.read)}
    spans: dict[str, list[tuple[int, int]]] = {}
    unsure: set[str] = set()
    for entry in known.flags.values():
        if "alias_of" in entry or not entry.get("dest") or entry["first"] is None:
            continue
        last = at[entry["last"]] if entry["last"] else len(known.read) - 1
        for name, since, until in _names(entry, at, last):
            spans.setdefault(name, []).append((since, until))
            if _unsure(name, entry):
                unsure.add(name)
    return {
        name: FieldLife(name, _merged(found), name not in unsure and len(_merged(found)) == 1)
        for name, found in spans.items()
    }


def _names(entry: dict[str, Any], at: dict[str, int], last: int) -> list[tuple[str, int, int]]:
    history = entry.get("dest_history") or [{"since": entry["first"], "value": entry["dest"]}]
    assert isinstance(history, list)
    if any(str(item["value"]).endswith(OPTION_ONLY) for item in history):
        history = [{"since": entry["first"], "value": entry["dest"]}]
    result = []
    for i, item in enumerate(history):
        until = at[history[i + 1]["since"]] - 1 if i + 1 < len(history) else last
        if at[item["since"]] <= until:
            result.append((str(item["value"]), at[item["since"]], until))
    return result


def _unsure(name: str, entry: dict[str, Any]) -> bool:
    """Deprecated flags keep their option after the field is gone; some options never were fields."""
    if name in NOT_PRINTED:
        return True
    return "deprecated_since" in entry or entry.get("type") in (None, "NoneType") or "gaps" in entry


def _merged(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    result: list[tuple[int, int]] = []
    for first, last in sorted(spans):
        if result and first <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(last, result[-1][1]))
        else:
            result.append((first, last))
    return tuple(result)


def field_bounds(names: Iterable[str]) -> tuple[FieldBound | None, FieldBound | None]:
    """Oldest and newest release that can print exactly this set of fields: bounds between which the release lies.

    Only the bracket between read releases is claimed: a field first read in release B and not in the read release A
    before it gives a lower bound at the first build after A. A present field gives no upper
    bound: fields outlive their options.
    """
    return _field_bounds(frozenset(names))


@lru_cache(maxsize=64)
def _field_bounds(seen: frozenset[str]) -> tuple[FieldBound | None, FieldBound | None]:
    """Launches of one server print the same fields."""
    known, lives = catalog(), field_lives()
    low: FieldBound | None = None
    high: FieldBound | None = None
    for life in lives.values():
        if life.name in seen:
            first = life.spans[0][0]
            if first > 0:
                low = _newer(low, FieldBound(first_build_after(known.read[first - 1]), life.name, True))
    for life in lives.values():
        if life.name in seen or not life.sure:
            continue
        first, last = life.spans[0]
        gone = last + 1 < len(known.read)
        after_end = gone and low is not None and not older(low.release, known.read[last])
        if first > 0 and not after_end:
            high = _older(high, FieldBound(known.before(known.read[first]) or known.read[first - 1], life.name, False))
    return low, high


def _newer(old: FieldBound | None, new: FieldBound) -> FieldBound:
    return new if old is None or older(old.release, new.release) else old


def _older(old: FieldBound | None, new: FieldBound) -> FieldBound:
    return new if old is None or older(new.release, old.release) else old


def option_bounds(options: Iterable[str]) -> tuple[FieldBound | None, FieldBound | None]:
    """The same for the complete list of command-line options that argparse prints: here a present option gives an upper
    bound as well."""
    known, seen = catalog(), set(options)
    low: FieldBound | None = None
    high: FieldBound | None = None
    for name, entry in known.flags.items():
        if "gaps" in entry or entry["first"] is None:
            continue
        life = known.lifetime(entry["first"], entry["last"])
        if name in seen:
            low = _newer(low, FieldBound(life.low, name, True)) if life.low else low
            high = _older(high, FieldBound(life.high, name, True)) if life.high else high
        elif life.low and not life.high and not _abbreviated(name, seen):
            high = _older(high, FieldBound(known.before(entry["first"]) or entry["first"], name, False))
    return low, high


def _abbreviated(name: str, seen: set[str]) -> bool:
    """Second spellings are not always in the option list: argparse shows the first one only."""
    entry = catalog().flags[name]
    return "alias_of" in entry or ("aliases" in entry and not seen.isdisjoint(entry["aliases"]))
