"""One incident read by byte ranges elsewhere: whoever reads which bytes, the part is the same, byte for byte."""

from __future__ import annotations

import gzip
import pickle
import random
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from fleet_logs import log

from forensics.engine.worker import Scanned
from forensics.errors import InputError
from forensics.fleet.job import run_job
from forensics.fleet.plan import Job, Settings
from forensics.fleet.run import plan
from forensics.fleet.spread import Piece, scan_piece


class Elsewhere:
    """Scans pieces as other processes would: what it is given and what it gives goes through bytes, in any order."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    def __call__(self, pieces: list[Piece]) -> list[Scanned]:
        self.pieces += pieces
        found = {}
        for number in random.Random(5).sample(range(len(pieces)), len(pieces)):
            found[number] = pickle.loads(pickle.dumps(scan_piece(pickle.loads(pickle.dumps(pieces[number])))))
        return [found[n] for n in range(len(pieces))]


def jobs_of(folder: Path, least: int = 2000) -> list[Job]:
    """Jobs that split into pieces of `least` bytes."""
    chosen = Settings(split_above=16 * least)
    return [Job(i, chosen, 2) for i in plan([str(folder)], chosen).incidents]


def put(path: Path, text: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("failure", ["none", "oom", "odd", "weights"])
def test_ranges_give_the_part_of_a_single_process(tmp_path, failure):
    put(tmp_path / "server.log", log(3, failure, steps=300))
    [job] = jobs_of(tmp_path)
    elsewhere = Elsewhere()
    assert run_job(job, elsewhere).data == run_job(replace(job, processes=1)).data
    size = (tmp_path / "server.log").stat().st_size
    assert len(elsewhere.pieces) > 5 or failure == "weights"
    assert elsewhere.pieces[0].start == 0 and elsewhere.pieces[-1].stop == size
    assert all(a.stop == b.start for a, b in zip(elsewhere.pieces, elsewhere.pieces[1:], strict=False))


def test_all_nodes_of_a_job_are_handed_out_at_once(tmp_path):
    for node in range(3):
        text = log(1, "oom" if node == 1 else "none", nodes=3, node=node, address="10.0.0.1:5000", steps=200)
        data = {0: text.encode(), 1: gzip.compress(text.encode(), mtime=0), 2: zstandard.compress(text.encode())}[node]
        put(tmp_path / f"node-{node}" / f"server.log{('', '.gz', '.zst')[node]}", data)
    [job] = jobs_of(tmp_path)
    elsewhere = Elsewhere()
    assert run_job(job, elsewhere).data == run_job(replace(job, processes=1)).data
    each = [sum(f"node-{node}" in p.location for p in elsewhere.pieces) for node in range(3)]
    assert each[0] > 3 and each[1:] == [1, 1], "a compressed log is one piece"


def test_rotated_and_wrapped_logs_are_cut_as_well(tmp_path):
    lines = log(2, "oom", steps=400).splitlines()
    wrapped = [f"2026-03-02T08:00:{n % 60:02d}.000000000Z stdout F {line}" for n, line in enumerate(lines)]
    put(tmp_path / "a/server.log.1", "\n".join(lines[:200]) + "\n")
    put(tmp_path / "a/server.log", "\n".join(lines[200:]) + "\n")
    put(tmp_path / "b/0.log", "\n".join(wrapped) + "\n")
    for job in jobs_of(tmp_path, 5000):
        elsewhere = Elsewhere()
        assert run_job(job, elsewhere).data == run_job(replace(job, processes=1)).data
        assert len(elsewhere.pieces) > 3


def test_a_single_compressed_log_stays_with_its_worker(tmp_path):
    put(tmp_path / "server.log.gz", gzip.compress(log(3, "oom", steps=300).encode(), mtime=0))
    [job] = jobs_of(tmp_path, 100)
    elsewhere = Elsewhere()
    assert run_job(job, elsewhere).data == run_job(replace(job, processes=1)).data
    assert elsewhere.pieces == []


def test_where_others_cannot_help_the_worker_does_it_alone(tmp_path):
    put(tmp_path / "server.log", log(3, "oom", steps=300))
    [job] = jobs_of(tmp_path)

    def refuses(pieces):
        raise InputError("a byte range could not be scanned on another node")

    assert run_job(job, refuses).data == run_job(replace(job, processes=1)).data


def test_a_log_that_is_gone_is_told_as_a_single_process_tells_it(tmp_path):
    put(tmp_path / "server.log", log(3, "oom", steps=300))
    [job] = jobs_of(tmp_path)
    (tmp_path / "server.log").unlink()
    assert run_job(job, Elsewhere()).data == run_job(replace(job, processes=1)).data


def test_a_log_that_shrank_is_refused_by_the_other_worker(tmp_path):
    path = tmp_path / "server.log"
    put(path, log(3, "oom", steps=300))
    [job] = jobs_of(tmp_path)
    elsewhere = Elsewhere()
    run_job(job, elsewhere)
    put(path, path.read_bytes()[:5000])
    with pytest.raises(InputError, match="is shorter than it was"):
        scan_piece(elsewhere.pieces[-1])
