"""Order of release names (PEP 440 in the part that sglang, torch and friends use) and ranges over them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache

from forensics.frozen import frozen
from forensics.late import Late
from forensics.schema.facts import VersionInterval

_VERSION = Late(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[._-]?(?P<pre>a|b|c|rc|alpha|beta|preview|pre)[._-]?(?P<pre_n>\d*))?"
    r"(?:[._-]?(?P<post>post|rev|r)[._-]?(?P<post_n>\d*))?"
    r"(?:[._-]?dev[._-]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[\w.-]+))?"
    r"(?:-cu\d+|-rocm\S*|-[a-z]\S*)?",
    re.IGNORECASE,
)
_HAS_DEV = Late(r"[._-]?dev[._-]?\d*", re.IGNORECASE)
_RANGE_PART = Late(r"\s*(<=|>=|==|!=|<|>|=)?\s*([^\s<>=!,]+)\s*")
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_BEFORE = (-1, "", -1)
_FINAL = (1, "", 0)

Key = tuple[tuple[int, ...], tuple[int, str, int], int, int]


@lru_cache(maxsize=4096)
def version_key(text: str) -> Key | None:
    """Sort key of a release name, None where the text is none. Local parts (`+cu128`, `+g12ab`) and image suffixes
    (`-cu124`) do not count; a dev build sorts before the release that it leads to."""
    found = _VERSION.fullmatch(text.strip())
    if found is None:
        return None
    release = tuple(int(x) for x in found["release"].split("."))
    while len(release) > 1 and release[-1] == 0:
        release = release[:-1]
    dev = int(found["dev"] or 0) if _HAS_DEV.search(text.split("+")[0]) else None
    if found["pre"]:
        name = found["pre"].lower()
        pre = (0, _PRE.get(name, name), int(found["pre_n"] or 0))
    else:
        pre = _BEFORE if dev is not None and not found["post"] else _FINAL
    post = int(found["post_n"] or 0) if found["post"] else -1
    return release, pre, post, 1 << 60 if dev is None else dev


def compare(left: str, right: str) -> int | None:
    """-1, 0 or 1 for two release names, None where one of them is not a release name."""
    a, b = version_key(left), version_key(right)
    if a is None or b is None:
        return None
    return (a > b) - (a < b)


def older(a: str, b: str) -> bool:
    """Whether release `a` sorts before release `b`. False where one of them is no release name."""
    return compare(a, b) == -1


def is_dev(name: str) -> bool:
    """Whether the name is a build between releases, which may hold changes that no release before it has."""
    return re.search(r"dev\d|\+g[0-9a-f]{6,}", name) is not None


@frozen
class Bound:
    """One comparison of a range text: `op` is <, <=, >, >=, == or !=."""

    op: str
    version: str


@lru_cache(maxsize=4096)
def parse_range(text: str) -> tuple[Bound, ...] | None:
    """The bounds of `>=0.5.7,<0.5.10` or of one exact version; () is any; None where the text is no range."""
    bounds: list[Bound] = []
    for part in text.split(",") if text.strip() else ():
        found = _RANGE_PART.fullmatch(part)
        if found is None or version_key(found.group(2)) is None:
            return None
        op = found.group(1) or "=="
        bounds.append(Bound("==" if op == "=" else op, found.group(2)))
    return tuple(bounds)


def contradictory(bounds: tuple[Bound, ...]) -> bool:
    """Whether no release can satisfy all bounds: each release named, and every gap between two, is tried."""
    keys = sorted({k for b in bounds if (k := version_key(b.version)) is not None})
    probes = [(key, side) for key in keys for side in (-1, 0, 1)]
    return bool(probes) and not any(all(_probe(b, key, side) for b in bounds) for key, side in probes)


def _probe(bound: Bound, key: Key, side: int) -> bool:
    """Whether a release just below, at or just above `key` satisfies the bound."""
    other = version_key(bound.version)
    sign = side if key == other else (1 if other is not None and key > other else -1)
    return _OPS[bound.op](sign, 0)


def version_satisfies(version: str, bound: Bound) -> bool | None:
    """Whether one release satisfies the bound, None where it is not a release name."""
    sign = compare(version, bound.version)
    return None if sign is None else _OPS[bound.op](sign, 0)


def in_range(version: str, text: str) -> bool | None:
    """Whether one release lies in the range text; None where either cannot be read."""
    bounds = parse_range(text)
    if bounds is None:
        return None
    held = [version_satisfies(version, b) for b in bounds]
    return False if False in held else None if None in held else True


def interval_satisfies(interval: VersionInterval, op: str, version: str) -> bool | None:
    """`interval op version`: True if every release of the interval satisfies it, False if none does, else None."""
    if version_key(version) is None:
        return None
    if interval.exact is not None and compare(interval.exact, version) is not None:
        return version_satisfies(interval.exact, Bound(op, version))
    low = None if interval.low is None else compare(interval.low, version)
    high = None if interval.high is None else compare(interval.high, version)
    above, below = low is not None and low > 0, high is not None and high < 0
    at_least, at_most = low is not None and low >= 0, high is not None and high <= 0
    decided = {
        "<": (below, at_least),
        "<=": (at_most, above),
        ">": (above, at_most),
        ">=": (at_least, below),
        "==": (at_least and at_most, above or below),
        "!=": (above or below, at_least and at_most),
    }[op]
    return True if decided[0] else False if decided[1] else None


def overlap(interval: VersionInterval, text: str) -> str:
    """`inside`, `outside` or `partly`: where the whole interval lies with regard to a range text (bad text: partly)."""
    bounds = parse_range(text)
    if bounds is None:
        return "partly"
    held = [interval_satisfies(interval, b.op, b.version) for b in bounds]
    return "outside" if False in held else "inside" if all(h is True for h in held) else "partly"


def lifetime_range(first: str | None, last: str | None) -> str:
    """Range text of a lifetime with both ends included."""
    return ",".join([f">={first}"] * (first is not None) + [f"<={last}"] * (last is not None))


_OPS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
