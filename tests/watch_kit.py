"""What tests of `forensics watch` share: samples, a clock of their own, a loop over a file."""

import io
from pathlib import Path

from forensics.schema.options import Options
from forensics.watch.follow import FileFollower
from forensics.watch.loop import Plan, Watch
from forensics.watch.voice import Voice

ROOT = Path(__file__).parent.parent
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"
HEALTHY = ROOT / "samples/healthy/gpu2-tp2_healthy/log.txt"


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def watching(path, knowledge, clock, reports, **plan):
    """A loop over a file that takes its time from `clock`, and what it says."""
    out = io.StringIO()
    follower = FileFollower(path)
    loop = Watch(follower, Options(), knowledge, Voice(out, 1e9), Plan(tick=0.0, **plan), reports.append, clock=clock)
    return loop, out
