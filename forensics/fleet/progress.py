"""How far a fleet is: counts and time left, on standard error, as a bar on a terminal and as few lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

_EVERY = 30.0
"""Seconds between two lines where standard error is no terminal."""


class Meter:
    """Told of each incident that ends; `size` are its bytes, which is what the time left is reckoned by."""

    def __init__(self, total: int, size: int, quiet: bool = False) -> None:
        self.total, self.size = total, size
        self.done = self.bytes = self.bad = 0
        self.began = self.spoke = time.monotonic()
        self.quiet = quiet
        self.bar: Any = None

    def __enter__(self) -> Self:
        if not self.quiet and sys.stderr.isatty() and self.total:
            self.bar = _bar()
            self.bar.start()
            self.bar.add_task(self._words(), total=max(self.size, 1))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tell(self, size: int, bad: bool) -> None:
        """One more incident has ended."""
        self.done += 1
        self.bytes += size
        self.bad += bad
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=self.bytes, description=self._words())
        elif not self.quiet and time.monotonic() - self.spoke >= _EVERY:
            self.spoke = time.monotonic()
            print(f"forensics: {self._words()}, about {self._left():.0f} s left", file=sys.stderr, flush=True)

    def _words(self) -> str:
        bad = f", {self.bad} not analyzed" if self.bad else ""
        return f"{self.done} of {self.total} incidents{bad}"

    def _left(self) -> float:
        passed = time.monotonic() - self.began
        share = self.bytes / self.size if self.size else self.done / max(self.total, 1)
        return passed * (1 - share) / share if share else 0.0


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(file=sys.stderr),
        transient=True,
    )
