"""What an engine is, and how one is chosen. Engines move jobs to processes; they never look into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from forensics.engine.forked import cores
from forensics.errors import UsageError
from forensics.fleet.job import Outcome, run_job
from forensics.fleet.plan import Job
from forensics.fleet.spread import Spread

RETRIES = 3
"""How often an incident is tried again after its worker died."""
AHEAD = 2
"""Jobs in flight for each worker: one that runs and one that waits. More would only fill memory."""


class Work(Protocol):
    """What is done with a job; `spread` hands parts of it to other workers, where the engine has a way to."""

    def __call__(self, job: Job, spread: Spread | None = None) -> Outcome: ...


class Engine(Protocol):
    """Runs every job at least once and gives one outcome for each, in the order in which they end. Few are in flight at
    any time. Where the worker of a job dies RETRIES times more, its outcome says so."""

    def run(self, jobs: Sequence[Job], work: Work = run_job) -> Iterator[Outcome]: ...

    def close(self) -> None: ...


def choose(name: str, workers: int, address: str = "") -> Engine:
    """`local` or `ray`. UsageError where the name is unknown or Ray is not installed."""
    if name == "local":
        from forensics.fleet.local import LocalEngine

        return LocalEngine(workers or cores())
    if name == "ray":
        from forensics.fleet.on_ray import RayEngine

        return RayEngine(workers, address)
    raise UsageError(f"--engine {name}: there is no such engine", hint="local or ray")
