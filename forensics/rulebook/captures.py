"""Typed captures: `3.5 GB` is bytes, `5 min` is seconds, `TP3` is a rank."""

from __future__ import annotations

import re
from math import isfinite

from forensics.schema.facts import Value
from forensics.schema.rank import Rank

SIZE_UNITS = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{f"{p}{end}": 1024**n for n, p in enumerate("kmgt", 1) for end in ("", "b", "ib")},
}
"""Sizes are binary: sglang and torch print GB for 2^30 bytes."""
TIME_UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    **dict.fromkeys(("milliseconds", "millisecond"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}
_QUANTITY = re.compile(r"\s*([-+]?\d[\d,_]*(?:\.\d*)?(?:[eE][-+]?\d+)?)\s*([A-Za-z]*)")
_CLOCK = re.compile(r"(?:(\d{1,9}):)?(\d{1,9}):(\d{1,9}(?:\.\d{1,20})?)")


def typed(text: str | None, kind: str) -> Value:
    """The value of a captured text, None where it does not fit the type."""
    if text is None or kind == "str":
        return text
    if kind == "rank":
        rank = Rank.parse(text.strip())
        return str(rank) if rank else text.strip()
    if kind == "duration" and (clock := _CLOCK.fullmatch(text.strip())):
        return int(clock[1] or 0) * 3600.0 + int(clock[2]) * 60.0 + float(clock[3])
    number, unit = split_quantity(text)
    if number is None:
        return None
    if kind == "int":
        return int(number)
    if kind == "size":
        return _scaled(number, unit, SIZE_UNITS)
    if kind == "duration":
        return _scaled(number, unit, TIME_UNITS)
    return number


def split_quantity(text: str) -> tuple[float | None, str]:
    """Number and unit of `3.5 GB`; no number where it is beyond what a double holds."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        return None, ""
    number = float(found.group(1).replace(",", "").replace("_", ""))
    return (number if isfinite(number) else None), found.group(2).lower()


def _scaled(number: float, unit: str, units: dict[str, int] | dict[str, float]) -> Value:
    if not unit:
        return number
    factor = units.get(unit)
    return None if factor is None else number * factor
