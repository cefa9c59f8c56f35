"""What holds for all tests."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPLAYS = ("test_replay", "test_history_replay", "test_trust_faults_more")


@pytest.fixture(autouse=True)
def _one_replay_at_a_time(request: pytest.FixtureRequest) -> Iterator[None]:
    """A replay refuses to start beside a server of another replay: tests that start some wait for each other."""
    if not request.path.name.startswith(REPLAYS):
        yield
        return
    with (Path(tempfile.gettempdir()) / "forensics-replay-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
