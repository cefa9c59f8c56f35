"""The state line of a live server: stage, ranks, progress and load, from the new lines alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forensics.output.clean import clean
from forensics.schema.rank import Rank
from forensics.schema.report import LaunchInfo
from forensics.timeline.stages import MARK_KINDS, ORDER, mark_of
from forensics.watch.intake import Batch, Piece, Seen

_PERCENT = re.compile(r"(\d{1,3})%")
MAX_RANKS = 4096


@dataclass(slots=True)
class State:
    """What is known of the running server. `expected`, `missing` and `stages` come from the last judgement."""

    stage: str = ""
    progress: str = ""
    ranks: set[Rank] = field(default_factory=set)
    expected: int = 0
    missing: list[str] = field(default_factory=list)
    stages: dict[str, str] = field(default_factory=dict)
    load: str = ""
    lines: int = 0
    ending: bool = False
    """A line stated the end: SIGQUIT, an exit code, a refusal of the arguments."""

    def take(self, piece: Piece) -> bool:
        """Read a piece; gives whether the stage changed."""
        before = self.stage
        self.lines += piece.lines
        for seen in piece.seen:
            self._line(seen)
        for batch in piece.batches:
            self._batch(batch)
        return self.stage != before

    def _line(self, seen: Seen) -> None:
        if seen.rank is not None and len(self.ranks) < MAX_RANKS:
            self.ranks.add(seen.rank)
        if seen.kind == "server-args":
            self.reset()
        self.ending = self.ending or seen.kind in ("sigquit", "exit", "argparse")
        if seen.kind in MARK_KINDS and (seen.new or seen.kind == "progress"):
            self._mark(seen.text, seen.kind == "progress")

    def glimpse(self, unfinished: str) -> None:
        """Read the progress off a line that is still being written."""
        if _PERCENT.search(unfinished):
            self._mark(unfinished, True)

    def _mark(self, text: str, bar: bool) -> None:
        mark = mark_of(text.strip())
        if mark is None or (self.stage in ORDER and ORDER[mark[0]] < ORDER[self.stage]):
            return
        self.stage = mark[0]
        percents = _PERCENT.findall(text)
        self.progress = f"{percents[-1]}%" if percents and bar else ""

    def reset(self) -> None:
        """A server prints its arguments: it begins."""
        self.stage, self.progress, self.load, self.ending = "config", "", "", False
        self.ranks.clear()

    def _batch(self, batch: Batch) -> None:
        if batch.rank is not None and len(self.ranks) < MAX_RANKS:
            self.ranks.add(batch.rank)
        if self.stage not in ORDER or (batch.kind == "decode" and ORDER[self.stage] >= ORDER["warmup"]):
            self.stage = "serving"
        parts = []
        for name, text in _LOAD:
            value = batch.metrics.get(name)
            if value is not None:
                parts.append(text.format(value))
        if parts:
            self.load = ", ".join(parts)

    def judged(self, launch: LaunchInfo) -> None:
        """Take over what a judgement knows better."""
        self.expected = len(launch.ranks.expected)
        self.missing = launch.ranks.missing
        self.stages = launch.ranks.stages
        if launch.reached in ORDER:
            self.stage = launch.reached
        stage, _, done = launch.progress.partition(" ")
        self.progress = done.replace(" ", "") if stage == launch.reached else ""

    def behind(self) -> str:
        """Who the others seem to wait for: ranks that never reported, else those in the earliest stage."""
        seen = {str(rank) for rank in self.ranks}
        missing = [name for name in self.missing if name not in seen]
        if missing:
            return f"{', '.join(missing[:4])}{' …' if len(missing) > 4 else ''} never reported"
        known = {name: stage for name, stage in self.stages.items() if stage in ORDER}
        least = min(known.values(), key=lambda s: ORDER[s], default="")
        late = sorted(name for name, stage in known.items() if stage == least)
        if not late or len(late) == len(known):
            return ""
        return f"{', '.join(late[:4])}{' …' if len(late) > 4 else ''} still in {least}"

    def line(self, silent: float) -> str:
        """The state in one line; `silent` is how long nothing came, in seconds."""
        ranks = f"{len(self.ranks)}/{self.expected}" if self.expected else str(len(self.ranks))
        parts = [f"{self.stage or 'nothing known yet'}{' ' + self.progress if self.progress else ''}"]
        if self.ranks or self.expected:
            parts.append(f"ranks {ranks}")
        if self.load:
            parts.append(self.load)
        parts.append(f"{self.lines:,} lines")
        if silent >= 10:
            parts.append(f"silent for {duration(silent)}")
        return clean(" · ".join(parts))


_LOAD = (
    ("running", "running {:.0f}"),
    ("queue", "queued {:.0f}"),
    ("token_usage", "tokens {:.0%}"),
    ("throughput", "{:.0f} tok/s"),
)


def duration(seconds: float) -> str:
    """`45s`, `12min`, `3h 05min`."""
    if seconds < 120:
        return f"{seconds:.0f}s"
    minutes = int(seconds // 60)
    return f"{minutes}min" if minutes < 120 else f"{minutes // 60}h {minutes % 60:02d}min"
