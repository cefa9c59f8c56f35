"""When to judge: late ranks are waited for, floods are not waited out, and judging costs a bounded share of time."""

from __future__ import annotations

from dataclasses import dataclass

SHARE = 40.0
"""After a judgement that took s seconds the next one waits SHARE × s: less than 3 % of a core, whatever it costs."""


@dataclass(frozen=True, slots=True)
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
    free_at: float = 0.0
    wanted: bool = False

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
        if now < self.free_at:
            return False
        return self.settled(now) if self.first is not None else self.wanted

    def settled(self, now: float) -> bool:
        """Whether the ranks had their time since the first sign of trouble."""
        if self.first is None or self.last is None:
            return False
        waited = now - self.first
        calm = waited >= self.waits.minimum and now - self.last >= self.waits.quiet
        return calm or waited >= self.waits.maximum

    def judged(self, now: float, cost: float) -> None:
        """A judgement ended at `now` and took `cost` seconds."""
        self.first = self.last = None
        self.wanted = False
        self.free_at = now + SHARE * cost
