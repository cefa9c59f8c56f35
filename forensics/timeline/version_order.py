"""Order of sglang's release names (`0.5.8.post1`, `0.5.10rc0`, `0.5.8.post2.dev418+g1a2b3c4`) and ranges over them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

Key: TypeAlias = tuple[tuple[int, ...], tuple[int, int], tuple[int, int], tuple[int, int]]

_NAME = re.compile(
    r"v?(\d+(?:\.\d+){0,4})(?:[._-]?(a|b|rc|alpha|beta|c)[._-]?(\d*))?(?:[._-]?post[._-]?(\d*))?"
    r"(?:[._-]?dev[._-]?(\d*))?(?:\+[\w.]*)?(?:-cu\d+|-rocm\S*|-[a-z]\S*)?$"
)
_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "rc": 2, "c": 2}
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|=|<|>)?\s*([\w.+-]+)\s*$")


@lru_cache(maxsize=4096)
def version_key(name: str) -> Key | None:
    """Sorting key of a release name, None where it is none. A local part (`+g1a2b3c4`) and an image suffix (`-cu124`)
    do not count; a dev build sorts before the release that it leads to."""
    found = _NAME.match(name.strip())
    if not found:
        return None
    numbers = tuple(int(n) for n in found.group(1).split("."))
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    dev = (0, int(found.group(5) or 0)) if found.group(5) is not None else (1, 0)
    post = (1, int(found.group(4) or 0)) if found.group(4) is not None else (0, 0)
    if found.group(2):
        pre = (_PRE[found.group(2)], int(found.group(3) or 0))
    else:
        pre = (-1, 0) if dev[0] == 0 and not post[0] else (9, 0)
    return numbers, pre, post, dev


def is_dev(name: str) -> bool:
    """Whether the name is a build between releases, which may hold changes that no release before it has."""
    return re.search(r"dev\d|\+g[0-9a-f]{6,}", name) is not None


def older(a: str, b: str) -> bool:
    """Whether release `a` sorts before release `b`. False where one of them is no release name."""
    left, right = version_key(a), version_key(b)
    return left is not None and right is not None and left < right


def in_range(version: str, text: str) -> bool:
    """Whether one version lies in a range such as `>=0.5.7,<0.5.10` (empty: any). Raises ValueError for other text."""
    return all(_holds(version, *clause) for clause in clauses(text))


def clauses(text: str) -> tuple[tuple[str, str], ...]:
    """The `(operator, version)` pairs of a range text. Raises ValueError where it is none."""
    pairs = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        found = _CLAUSE.match(part)
        if not found or version_key(found.group(2)) is None:
            raise ValueError(f"not a version range: {part!r}")
        pairs.append((found.group(1) or "==", found.group(2)))
    return tuple(pairs)


def _holds(version: str, operator: str, bound: str) -> bool:
    left, right = version_key(version), version_key(bound)
    if left is None or right is None:
        return False
    return {
        ">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right,
        "==": left == right, "=": left == right, "!=": left != right,
    }[operator]  # fmt: skip
