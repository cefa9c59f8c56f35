"""Large logs in a store, read by byte ranges: nobody fetches them whole, and the part is that of a single process."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from fleet_logs import log
from s3_store import serve
from test_fleet_ranges import Elsewhere

from forensics.fleet.job import run_job
from forensics.fleet.lazy import remote_source
from forensics.fleet.plan import Job, Settings
from forensics.fleet.remote import Limits
from forensics.fleet.run import plan

pytest.importorskip("s3fs")
pytest.importorskip("boto3")
pytest.importorskip("moto.server")
MIB = 1 << 20


@pytest.fixture
def store():
    with serve() as made:
        yield made


def jobs_of(store, split_above: int) -> list[Job]:
    chosen = Settings(storage=store.storage(), split_above=split_above)
    return [Job(incident, chosen, 2) for incident in plan(["s3://logs/day"], chosen).incidents]


def test_each_worker_fetches_its_own_range(store):
    text = log(3, "oom", steps=20_000)
    assert len(text) > 3 * MIB
    store.put("day/large.log", text)
    [job] = jobs_of(store, len(text))
    elsewhere = Elsewhere()
    store.asked.clear()
    spread = run_job(job, elsewhere).data
    longest = max(stop - start + 1 for _, start, stop in store.asked)
    assert len(elsewhere.pieces) == 16 and longest <= 2 * MIB < len(text)
    assert spread == run_job(replace(job, processes=1)).data


def test_a_compressed_log_is_fetched_whole(store):
    text = log(3, "oom", steps=3000)
    for node in range(2):
        packed = gzip.compress(
            log(3, "none", nodes=2, node=node, address="10.0.0.1:5000", steps=3000).encode(), mtime=0
        )
        store.put(f"day/node-{node}/server.log.gz", packed)
    [job] = jobs_of(store, len(text) // 100)
    elsewhere = Elsewhere()
    assert run_job(job, elsewhere).data == run_job(replace(job, processes=1)).data
    assert len(elsewhere.pieces) == 2


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_an_object_that_vanishes_is_told_as_a_single_process_tells_it(store, when):
    store.put("day/large.log", log(3, "oom", steps=3000))
    [job] = jobs_of(store, 100_000)
    gone = lambda: store.client().delete_object(Bucket="logs", Key="day/large.log")  # noqa: E731

    def other(pieces):
        gone()
        return Elsewhere()(pieces)

    if when == "before":
        gone()
    assert run_job(job, other).data == run_job(replace(job, processes=1)).data


def test_an_incident_larger_than_the_spool_is_the_same_problem_either_way(store):
    store.put("day/large.log", log(3, "oom", steps=3000))
    [job] = jobs_of(store, 100_000)
    job = replace(job, settings=replace(job.settings, limits=Limits(spool=1000)))
    assert run_job(job, Elsewhere()).data == run_job(replace(job, processes=1)).data


def test_a_source_in_a_store_reads_as_a_file_does(store, tmp_path):
    text = log(3, "oom", steps=20_000).encode()
    store.put("day/large.log", text)
    with remote_source("s3://logs/day/large.log", len(text), store.storage(), Limits(), str(tmp_path)) as source:
        assert source.size == len(text)
        for offset, length in (
            (0, 10),
            (MIB - 5, 10),
            (2 * MIB + 7, 70_000),
            (len(text) - 3, 100),
            (len(text), 5),
            (100, 3 * MIB),
        ):
            assert source.pread(offset, length) == text[offset : offset + length]
        read = len(store.asked)
        assert source.pread(MIB - 5, 10) == text[MIB - 5 : MIB + 5] and len(store.asked) == read
    assert list(tmp_path.iterdir()) == []
