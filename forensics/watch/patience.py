"""When to judge: late ranks are waited for, floods are not waited out, and judging costs a bounded share of time."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.frozen import frozen

SHARE = 0.025
"""Processor time for judging that is earned in each second: the long-run share of a core."""
CREDIT = 6.0
"""Most processor seconds that may be saved up. Half of them are kept for signs of trouble."""
REST = 10.0
"""Without a sign of trouble a judgement that took s seconds is followed by a rest of at least REST × s."""


@frozen
class Waits:
    """Seconds: at least `minimum` after the first sign of trouble, until `quiet` without a further sign, at most
    `maximum` in all."""

    minimum: float = 2.0
    quiet: float = 2.0
    maximum: float = 20.0


@dataclass(slots=True)
class Patience:
    """Remembers signs of trouble and judgements; all times are seconds of one monotonic clock."""

    waits: Waits
    first: float | None = None
    last: float | None = None
    wanted: bool = False
    credit: float = CREDIT
    rested_at: float = 0.0
    _counted: float | None = None

    def trouble(self, now: float) -> None:
        """A line that may be the beginning or the consequence of a failure was read."""
        if self.first is None:
            self.first = now
        self.last = now

    def news(self) -> None:
        """Something that may change what is known (a new kind of message), without being a sign of trouble."""
        self.wanted = True

    def due(self, now: float) -> bool:
        """Whether to judge now."""
        self._earn(now)
        if self.first is not None:
            return self.credit > 0 and self.settled(now)
        return self.wanted and self.credit > CREDIT / 2 and now >= self.rested_at

    def settled(self, now: float) -> bool:
        """Whether the ranks had their time since the first sign of trouble."""
        if self.first is None or self.last is None:
            return False
        waited = now - self.first
        calm = waited >= self.waits.minimum and now - self.last >= self.waits.quiet
        return calm or waited >= self.waits.maximum

    def judged(self, now: float, cost: float) -> None:
        """A judgement ended at `now` and took `cost` seconds of processor time."""
        self._earn(now)
        self.first = self.last = None
        self.wanted = False
        self.credit -= cost
        self.rested_at = now + REST * cost

    def _earn(self, now: float) -> None:
        if self._counted is not None:
            self.credit = min(CREDIT, self.credit + SHARE * max(0.0, now - self._counted))
        self._counted = now
