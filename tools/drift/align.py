"""The same check in several releases: sites of one release that became sites of the next."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rapidfuzz import fuzz

from drift.sites import Site
from drift.texts import literal

SAME_PLACE = 55.0
"""Percent of likeness that two texts of one function need."""
SAME_CONDITION = 30.0
ELSEWHERE = 78.0
LEAST_LETTERS = 14
LEAST_CONDITION = 12
_COMMON = frozenset(
    ("must", "should", "with", "only", "that", "this", "from", "have", "does", "been", "your", "please")
)
_OWNER = re.compile(
    r"\b(?:self|cls|server_args|args|sa|cfg|config|hf_config|ctx|model_config|view|model_runner|runner)\."
)

Group = dict[Site, list[str]]
"""The sites of one check and the releases that have each."""


def groups(releases: Mapping[str, Sequence[Site]]) -> list[Group]:
    """Checks over releases, which are given from old to new. Each site stands in one group."""
    leader: dict[Site, Site] = {}

    def root(site: Site) -> Site:
        while leader.setdefault(site, site) is not site:
            site = leader[site]
        return site

    before: list[Site] = []
    for sites in releases.values():
        now = list(dict.fromkeys(sites))
        held = set(now)
        gone = [s for s in before if s not in held]
        new = [s for s in now if s not in leader]
        for old, young in _pairs(gone, new):
            leader[root(young)] = root(old)
        for site in now:
            root(site)
        before = now
    found: defaultdict[Site, Group] = defaultdict(dict)
    for release, sites in releases.items():
        for site in dict.fromkeys(sites):
            found[root(site)].setdefault(site, []).append(release)
    return list(found.values())


def plain(condition: str) -> str:
    """A condition without the owners of its values."""
    return _OWNER.sub("", condition)


def _pairs(gone: Sequence[Site], new: Sequence[Site]) -> Iterator[tuple[Site, Site]]:
    """Sites of the release before and what each became, the most alike first; each is used once."""
    close = _Close(gone)
    scored = [(_score(gone[i], site), i, j) for j, site in enumerate(new) for i in close.to(site)]
    used_old: set[int] = set()
    used_new: set[int] = set()
    for score, i, j in sorted(scored, key=lambda x: (-x[0], x[1], x[2])):
        if score > 0 and i not in used_old and j not in used_new:
            used_old.add(i)
            used_new.add(j)
            yield gone[i], new[j]


class _Close:
    """Which sites could be the same check as another: they share a function, a condition, or a few words."""

    def __init__(self, sites: Sequence[Site]) -> None:
        self._by: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        for i, site in enumerate(sites):
            for key in _keys(site):
                self._by[key].append(i)

    def to(self, site: Site) -> Iterator[int]:
        """Indexes of the sites that are close to this one."""
        held = {i for key in _keys(site) for i in self._by.get(key, ())}
        yield from sorted(held)


def _keys(site: Site) -> Iterator[tuple[str, ...]]:
    fatal = site.kind in ("raise", "assert", "refuse")
    of = "fatal" if fatal else "log"
    yield of, "place", site.file, site.function
    asked = plain(site.condition)
    if len(asked) > LEAST_CONDITION:
        yield of, "asked", asked
    words = [w for w in re.findall(r"[a-z_-]{4,}", literal(site.text).lower()) if w not in _COMMON]
    for pair in pairwise(words):
        yield of, "said", *pair


def _score(other: Site, site: Site) -> float:
    """How sure two sites are one check; 0 where they are not."""
    said, asked = literal(site.text).lower(), plain(site.condition)
    same_file, same_function = site.file == other.file, site.function == other.function
    same_condition = len(asked) > LEAST_CONDITION and asked == plain(other.condition)
    if not site.letters or not other.letters:
        return 150.0 + 20 * same_file + 20 * same_function if same_condition and (same_file or same_function) else 0.0
    if not (same_file or same_function or same_condition or site.letters >= LEAST_LETTERS):
        return 0.0
    least = SAME_CONDITION if same_condition else SAME_PLACE if same_file and same_function else ELSEWHERE
    likeness = fuzz.ratio(said, literal(other.text).lower(), score_cutoff=least)
    if not likeness:
        return 0.0
    return likeness + 30 * same_condition + 20 * same_function + 10 * same_file
