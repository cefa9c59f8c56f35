"""The local engine: worker processes of the standard library, started afresh (spawn) so that nothing is inherited."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from forensics.fleet.engine import AHEAD, RETRIES, Work
from forensics.fleet.job import Outcome, run_job
from forensics.fleet.plan import Job
from forensics.fleet.worker import begin_worker

GRACE = 2.0
"""Seconds that workers have to leave by themselves."""


class LocalEngine:
    """`workers` processes on this machine.

    Where a worker dies, the pool is broken and nobody can say whose job killed it: the jobs that were in flight are
    then run one by one, each with the pool to itself, so that only the guilty one is counted."""

    def __init__(self, workers: int) -> None:
        self.workers = max(1, workers)
        self.pool: ProcessPoolExecutor | None = None

    def run(self, jobs: Sequence[Job], work: Work = run_job) -> Iterator[Outcome]:
        """One outcome for each job."""
        waiting = iter(jobs)
        flying: dict[Future[Outcome], Job] = {}
        while True:
            broken = self._fill(waiting, flying, work)
            if not flying and not broken:
                return
            done = wait(flying, return_when=FIRST_COMPLETED).done if flying else set()
            for future in done:
                job = flying.pop(future)
                try:
                    yield future.result()
                except BrokenProcessPool:
                    broken.append(job)
            if broken:
                # the pool is gone, and everything that was in flight with it
                for future, job in list(flying.items()):
                    if future.exception() is None:
                        yield future.result()
                    else:
                        broken.append(job)
                flying.clear()
                for job in broken:
                    yield self._alone(job, work)

    def _fill(self, waiting: Iterator[Job], flying: dict[Future[Outcome], Job], work: Work) -> list[Job]:
        """Hand out jobs up to the bound; gives the job that met a broken pool."""
        while len(flying) < self.workers * AHEAD:
            job = next(waiting, None)
            if job is None:
                return []
            try:
                flying[self._opened(self.workers).submit(work, job)] = job
            except BrokenProcessPool:
                return [job]
        return []

    def _alone(self, job: Job, work: Work) -> Outcome:
        """Run a suspect with nobody beside it."""
        for _ in range(RETRIES):
            self.close()
            try:
                return self._opened(1).submit(work, job).result()
            except BrokenProcessPool:
                continue
            finally:
                self.close()
        return Outcome(job.incident.key, died=f"{job.incident.name}: the worker died {RETRIES} times")

    def _opened(self, workers: int) -> ProcessPoolExecutor:
        if self.pool is None:
            self.pool = ProcessPoolExecutor(
                workers, mp_context=get_context("spawn"), initializer=begin_worker, initargs=(os.getpid(),)
            )
        return self.pool

    def close(self) -> None:
        """End the workers; what they were doing is given up. Idle ones leave by themselves: a process that is ended
        while it holds a lock of the queues can leave the pool waiting for ever."""
        if self.pool is not None:
            pool, self.pool = self.pool, None
            workers = list((getattr(pool, "_processes", None) or {}).values())
            pool.shutdown(wait=False, cancel_futures=True)
            deadline = time.monotonic() + GRACE
            for process in workers:
                process.join(max(0.0, deadline - time.monotonic()))
                if process.is_alive():
                    process.terminate()
            pool.shutdown(wait=True)
