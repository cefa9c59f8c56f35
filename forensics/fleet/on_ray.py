"""The Ray engine: one task per incident on a cluster that exists (`--ray-address`) or on a local one; a large incident
is one task that hands its byte ranges out as further ones (ray_ranges.py).

Ray does what a scheduler has to do: placement, retries when a worker or node dies, resources. Here is only the bound on
tasks in flight. Part of the extra `fleet`; nothing is imported before this engine was asked for.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from forensics.errors import UsageError
from forensics.fleet.engine import AHEAD, RETRIES, Work
from forensics.fleet.job import Outcome, run_job
from forensics.fleet.plan import Job
from forensics.version import VERSION

_LONGEST_WAIT = 5.0
"""Seconds after which the cluster's size is looked at again: it may grow and shrink."""
_NO_CORES = 120.0
"""Seconds for which a cluster may have no core at all: an autoscaler needs some time."""


def _checked(version: str, work: Work, job: Job) -> Outcome:
    """What a worker runs: another version there would make other parts."""
    from forensics.version import VERSION as here

    if here != version:
        return Outcome(job.incident.key, died=f"version: a worker has forensics {here}, this is {version}")
    if job.processes == 1:
        return work(job)
    from forensics.fleet.ray_ranges import OverNodes

    ranges = OverNodes(version)
    return replace(work(job, ranges), nodes=max(1, len(ranges.nodes)))


class RayEngine:
    """Tasks on a Ray cluster. `workers` bounds how many run at once (0: as many as the cluster has cores)."""

    def __init__(self, workers: int, address: str = "") -> None:
        self.workers = workers
        self.ray = _connect(address)
        self.seen = time.monotonic()
        self.task = self.ray.remote(_checked).options(num_cpus=1, max_retries=RETRIES, name="forensics-incident")

    def run(self, jobs: Sequence[Job], work: Work = run_job) -> Iterator[Outcome]:
        """One outcome for each job."""
        flying: dict[Any, Job] = {}
        waiting = iter(jobs)
        more = True
        while more or flying:
            while more and len(flying) < self._bound():
                job = next(waiting, None)
                if job is None:
                    more = False
                    break
                flying[self.task.remote(VERSION, work, job)] = job
            if flying:
                self._check_cores()
                ready, _ = self.ray.wait(list(flying), num_returns=1, timeout=_LONGEST_WAIT)
                for reference in ready:
                    yield self._result(reference, flying.pop(reference))

    def _check_cores(self) -> None:
        """UsageError where the cluster has nothing to run on for too long: its tasks would wait for ever."""
        if self.ray.cluster_resources().get("CPU", 0) > 0:
            self.seen = time.monotonic()
        elif time.monotonic() - self.seen > _NO_CORES:
            hint = "start workers (ray start --address=…), then run the same command again: it goes on where it was"
            raise UsageError(f"the Ray cluster has had no cores for {_NO_CORES:g} s", hint=hint)

    def _bound(self) -> int:
        cluster = int(self.ray.cluster_resources().get("CPU", 1))
        return self.workers or max(1, cluster) * AHEAD

    def _result(self, reference: Any, job: Job) -> Outcome:
        errors = self.ray.exceptions
        try:
            outcome: Outcome = self.ray.get(reference)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError, errors.ObjectLostError):
            return Outcome(job.incident.key, died=f"{job.incident.name}: the worker died {RETRIES} times")
        except errors.RayTaskError as error:
            if isinstance(error.cause, ImportError) or "ModuleNotFoundError" in str(error):
                hint = "install sglang-forensics in the Python of every Ray node"
                raise UsageError("the Ray workers cannot import forensics", hint=hint) from None
            raise
        if outcome.died.startswith("version: "):
            raise UsageError(outcome.died.removeprefix("version: "), hint="install the same version on every Ray node")
        return outcome

    def close(self) -> None:
        """Leave the cluster; its tasks of this run end with that."""
        self.ray.shutdown()


def _connect(address: str) -> Any:
    try:
        import ray as library
    except ImportError:
        raise UsageError("--engine ray needs ray", hint="pip install 'sglang-forensics[fleet]'") from None
    ray: Any = library
    _reachable(address)
    wanted = address or os.environ.get("RAY_ADDRESS") or None
    try:
        ray.init(
            address=wanted, log_to_driver=False, logging_level="ERROR", include_dashboard=None if wanted else False
        )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        if "Authentication" in type(error).__name__ or "AuthToken" in str(error):
            hint = "give this process the cluster's token (RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH)"
            raise UsageError(f"the Ray cluster at {wanted or 'this machine'} refuses the token", hint=hint) from None
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise UsageError(f"no Ray cluster at {wanted or 'this machine'}: {first}", hint="ray start --head") from None
    return ray


def _reachable(address: str) -> None:
    """UsageError at once where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or "/" in address or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"no Ray cluster at {address}: {reason}", hint="ray start --head") from None
