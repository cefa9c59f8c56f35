"""What the batch lines of a slow server say by themselves: throughput that collapsed, a queue before a full cap, a rank
slower than its peers, prefixes that are never found again. Each is a place to look, never a cause."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from forensics.diagnose.general import General
from forensics.diagnose.grounds import FOR, Ground
from forensics.engine.table import Series
from forensics.rulebook.case import Case
from forensics.schema.rank import Rank
from forensics.schema.span import Span
from forensics.timeline.stages import hot_lines

Values = npt.NDArray[np.float64]
LEAST = 12
"""Batch lines on both sides of what is compared, together."""
COLLAPSED = 0.4
"""Throughput after the drop, as a share of that before it."""
AS_BUSY = 0.7
"""Running requests after the drop, as a share of those before it: fewer requests alone make less throughput."""
SLOW_RANK = 0.5
MANY_PREFILLS = 30
LONG_PROMPT = 64


def read(case: Case) -> General | None:
    """The reading of a launch without a failure of which the user says that it is slow."""
    if case.launch.first_failure is not None:
        return None
    decode, prefill = _columns(case, "decode"), _columns(case, "prefill")
    for found in (_odd_rank(case, decode), _collapse(case, decode), _queue(case, decode), _no_reuse(case, prefill)):
        if found is not None:
            return found
    return None


class _Batches:
    """The batch lines of one kind in a launch, in file order."""

    def __init__(self, series: Series, chosen: npt.NDArray[np.bool_]) -> None:
        self.series, self.at = series, np.flatnonzero(chosen)

    def __len__(self) -> int:
        return len(self.at)

    def column(self, name: str) -> Values:
        column = self.series.columns.get(name)
        return column[self.at] if column is not None else np.full(len(self.at), np.nan)

    def span(self, index: int, case: Case) -> Span:
        at = int(self.at[index])
        return Span(case.table.sources[int(self.series.source[at])].name, int(self.series.line[at]))

    def by_rank(self, case: Case) -> Mapping[Rank, npt.NDArray[np.int64]]:
        ranks = self.series.rank[self.at]
        return {case.table.ranks[i]: np.flatnonzero(ranks == i) for i in np.unique(ranks).tolist() if i >= 0}


def _columns(case: Case, kind: str) -> _Batches | None:
    series = case.table.series.get(kind)
    if series is None:
        return None
    chosen = np.zeros(len(series.row), dtype=bool)
    chosen[hot_lines(series, case.table, case.launch.rows)] = True
    return _Batches(series, chosen)


def _odd_rank(case: Case, decode: _Batches | None) -> General | None:
    """A rank (of several that print batches of their own) that is slower than the others under a like load."""
    if decode is None:
        return None
    speed, running = decode.column("throughput"), decode.column("running")
    told = {
        rank: (float(np.nanmedian(speed[mine])), float(np.nanmedian(running[mine])), int(mine[0]))
        for rank, mine in decode.by_rank(case).items()
        if len(mine) >= LEAST // 2 and not np.isnan(speed[mine]).all() and not np.isnan(running[mine]).all()
    }
    if len(told) < 2:
        return None
    low = min(told, key=lambda rank: told[rank][0])
    others = [told[rank] for rank in told if rank != low]
    slowest, load, row = told[low]
    usual = min(speed for speed, _, _ in others)
    if slowest >= SLOW_RANK * usual or load < AS_BUSY * min(busy for _, busy, _ in others):
        return None
    why = f"{low} makes {slowest:.4g} token/s, the slowest of the others {usual:.4g}, with as many running requests"
    return General(f"{low} is slower than the other ranks", why, (_ground(decode.span(row, case), why),), (
        (f"clocks, temperature and neighbours of the GPU of {low} beside the others'", "nvidia-smi dmon -s pucm -c 20"),
    ))  # fmt: skip


def _collapse(case: Case, decode: _Batches | None) -> General | None:
    """The point after which throughput is a fraction of what it was, with as many running requests."""
    if decode is None or len(decode) < LEAST:
        return None
    speed, running = decode.column("throughput"), decode.column("running")
    known = ~np.isnan(speed) & ~np.isnan(running)
    if int(known.sum()) < LEAST:
        return None
    at = np.flatnonzero(known)
    cut = _drop(speed[at])
    if cut is None:
        return None
    before, after = float(np.median(speed[at][:cut])), float(np.median(speed[at][cut:]))
    busy, still = float(np.median(running[at][:cut])), float(np.median(running[at][cut:]))
    if after >= COLLAPSED * before or still < AS_BUSY * busy:
        return None
    load = f"{still:.4g} running requests ({busy:.4g} before)"
    why = f"generation falls from {before:.4g} to {after:.4g} token/s with {load}"
    return General("Throughput collapsed while as many requests ran", why, (
        _ground(decode.span(int(at[cut]), case), why),
    ), (
        ("what changed then: clocks of the GPUs, other processes, lengths", "nvidia-smi -q -d PERFORMANCE,CLOCK"),
    ))  # fmt: skip


def _drop(speed: Values) -> int | None:
    """The index that parts the values best into a fast and a slow stretch; None where no stretch of a few is slower."""
    few, n = LEAST // 3, len(speed)
    total = np.cumsum(speed)
    cuts = np.arange(few, n - few + 1)
    if not len(cuts):
        return None
    left, right = total[cuts - 1] / cuts, (total[-1] - total[cuts - 1]) / (n - cuts)
    gain = np.where(left > right, (left - right) ** 2 * cuts * (n - cuts), 0.0)
    return int(cuts[gain.argmax()]) if gain.max() > 0 else None


def _queue(case: Case, decode: _Batches | None) -> General | None:
    """Requests that wait although the KV pool has room: the cap of running requests is what holds them."""
    if decode is None or len(decode) < LEAST:
        return None
    running, queue, usage = (decode.column(name) for name in ("running", "queue", "token_usage"))
    known = ~np.isnan(running) & ~np.isnan(queue)
    if int(known.sum()) < LEAST:
        return None
    top = float(running[known].max())
    full = known & (running >= top) & (queue > 0)
    if full.sum() < 0.5 * known.sum() or float(np.median(queue[full])) < top:
        return None
    used = float(np.nanmedian(usage[full])) if not np.isnan(usage[full]).all() else float("nan")
    cap = case.launch.facts.get("args.max_running_requests")
    tight = used >= 0.9
    what = "the KV pool is full" if tight else f"{top:.0f} run at once"
    if not tight and cap is not None and cap.value == int(top):
        what = f"--max-running-requests {cap.value} is reached"
    why = f"{what}, and {float(np.median(queue[full])):.0f} requests wait in the queue (token usage {used:.2f})"
    index = int(np.flatnonzero(full)[0])
    advice = (("more KV cache (--mem-fraction-static, a smaller KV type, more GPUs), or fewer requests at once", ""),)
    if not tight:
        advice = (("raise --max-running-requests, or send fewer requests at once", ""),)
    return General("Requests wait in the queue", why, (_ground(decode.span(index, case), why),), (), advice)


def _no_reuse(case: Case, prefill: _Batches | None) -> General | None:
    """Many long prompts, and not one cached token."""
    if prefill is None or len(prefill) < MANY_PREFILLS:
        return None
    cached, fresh = prefill.column("cached_tokens"), prefill.column("new_tokens")
    known = ~np.isnan(cached)
    if known.sum() < MANY_PREFILLS or cached[known].any() or not float(np.nanmedian(fresh)) >= LONG_PROMPT:
        return None
    off = case.launch.facts.get("args.disable_radix_cache")
    switched = off is not None and off.value is True
    why = f"none of {int(known.sum())} prefill batches reuses a cached token"
    why += "; --disable-radix-cache is set" if switched else "; prompts that share a prefix would"
    return General("No prompt reuses a cached prefix", why, (_ground(prefill.span(0, case), why),), (
        ("two requests with the same long prompt, one after the other: the second must show #cached-token above 0", ""),
    ))  # fmt: skip


def _ground(where: Span, why: str) -> Ground:
    return Ground(FOR, "weak", "its batch lines", True, why, where=(where,), observed=True)
