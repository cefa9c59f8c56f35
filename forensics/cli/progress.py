"""A progress bar on long inputs: bytes and time left, on standard error, only where that is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LONG = 32 << 20
"""Bytes from which a bar is shown: shorter inputs are read before one could be seen."""

Told = Callable[[str, int, int], None]


class Bar:
    """Sums what is told of several inputs; draws nothing before `LONG` bytes are known to come."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.done: dict[str, int] = {}
        self.sizes: dict[str, int] = {}
        self.drawn: Any = None

    def tell(self, name: str, done: int, size: int) -> None:
        """`done` of the `size` bytes of the input `name` are read."""
        self.done[name], self.sizes[name] = done, size
        total = sum(self.sizes.values())
        if total < LONG:
            return
        if self.drawn is None:
            self.drawn = _progress(self.stream)
            self.drawn.start()
            self.drawn.add_task("reading", total=total)
        task = self.drawn.task_ids[0]
        read = sum(self.done.values())
        label = "reading" if read < total else "judging"
        self.drawn.update(task, completed=read, total=total, description=label)

    def stop(self) -> None:
        """Take the bar away."""
        if self.drawn is not None:
            self.drawn.stop()


@contextmanager
def progress_bar(*, wanted: bool = True) -> Iterator[Told | None]:
    """What to hand to `Options.progress`; None where no bar is wanted or standard error is no terminal."""
    if not wanted or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    bar = Bar(sys.stderr)
    try:
        yield bar.tell
    finally:
        bar.stop()


def _progress(stream: Any) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(),
        TimeRemainingColumn(compact=True),
        console=Console(file=stream, no_color=bool(os.environ.get("NO_COLOR"))),
        transient=True,
    )
