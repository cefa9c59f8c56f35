"""Small exact tests: how likely is so many by chance alone? No statistics package is needed for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Pmf = npt.NDArray[np.float64]


def binomial_tail(successes: int, trials: int, chance: float) -> float:
    """P(X >= successes) of a binomial distribution. Summed from the far end, so that tiny tails keep their digits."""
    if successes <= 0 or chance >= 1.0:
        return 1.0
    if successes > trials or chance <= 0.0:
        return 0.0
    low, high = math.log(chance), math.log1p(-chance)
    terms = (_choose(trials, k) + k * low + (trials - k) * high for k in range(trials, successes - 1, -1))
    return min(1.0, math.fsum(math.exp(t) for t in terms))


def hypergeometric(drawn: int, marked: int, total: int) -> Pmf:
    """P(X = 0 … drawn): `drawn` of `total` things are taken, of which `marked` are marked."""
    found = np.zeros(drawn + 1)
    whole = _choose(total, drawn)
    for k in range(max(0, drawn - (total - marked)), min(drawn, marked) + 1):
        found[k] = math.exp(_choose(marked, k) + _choose(total - marked, drawn - k) - whole)
    return found


def stratified_tail(seen: int, strata: Iterable[tuple[int, int, int]]) -> float:
    """P(X >= seen) where X sums one hypergeometric number per stratum (drawn, marked, total), all independent.

    With one stratum this is Fisher's exact test, one-sided; with several the exact test of Mantel and Haenszel."""
    whole: Pmf = np.ones(1)
    for drawn, marked, total in strata:
        whole = np.convolve(whole, hypergeometric(drawn, marked, total))
    return min(1.0, float(math.fsum(whole[max(0, seen) :].tolist()))) if seen < len(whole) else 0.0


def fisher_tail(after: int, after_of: int, before: int, before_of: int) -> float:
    """P of at least `after` of `after_of`, were the share the same as in `before` of `before_of`."""
    return stratified_tail(after, [(after_of, after + before, after_of + before_of)])


def adjusted(values: Sequence[float]) -> list[float]:
    """Benjamini's and Hochberg's correction for many tests, in the order of `values`: below 0.05 at most one in twenty
    of the findings is expected to be chance."""
    count = len(values)
    order = sorted(range(count), key=lambda i: values[i])
    out = [0.0] * count
    lowest = 1.0
    for place in range(count, 0, -1):
        index = order[place - 1]
        lowest = min(lowest, values[index] * count / place)
        out[index] = lowest
    return out


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
