"""Fleets on Google's storage protocol: gcsfs against an emulator of the service on loopback."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import urllib.request
from dataclasses import replace

import pytest
from fleet_logs import Here, log
from test_fleet_ranges import Elsewhere

from forensics.errors import InputError
from forensics.fleet.job import run_job
from forensics.fleet.objects import list_objects
from forensics.fleet.plan import Job, Settings
from forensics.fleet.run import plan, run

# newer gcsfs asks Google itself what kind of bucket it is, even of one that an emulator holds
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
pytest.importorskip("gcsfs")
emulator = pytest.importorskip("gcp_storage_emulator.server")


class Bucket:
    """The bucket `logs` of an emulated service."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.storage = {
            "gs": {"endpoint_url": url, "token": "anon", "use_listings_cache": False, "skip_instance_cache": True}
        }

    def ask(self, path: str, data: bytes | None = None, method: str = "POST", kind: str = "text/plain") -> None:
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=method, headers={"Content-Type": kind})
        urllib.request.urlopen(request, timeout=20).read()

    def put(self, name: str, text: str) -> None:
        self.ask(f"/upload/storage/v1/b/logs/o?uploadType=media&name={name.replace('/', '%2F')}", text.encode())

    def drop(self, name: str) -> None:
        self.ask(f"/storage/v1/b/logs/o/{name.replace('/', '%2F')}", method="DELETE")


@pytest.fixture(scope="module")
def service():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = emulator.create_server("127.0.0.1", port, in_memory=True)
    server.start()
    bucket = Bucket(f"http://127.0.0.1:{port}")
    bucket.ask("/storage/v1/b?project=any", json.dumps({"name": "logs"}).encode(), kind="application/json")
    yield bucket
    server.stop()


@pytest.fixture
def bucket(service, request):
    service.day = request.node.name.replace("[", "-").replace("]", "")
    return service


def test_logs_of_a_bucket_are_read_as_local_ones_are(bucket, tmp_path):
    for name, failure in (("a.log", "oom"), ("deep/b.log", "none")):
        text = log(len(name), failure)
        bucket.put(f"{bucket.day}/{name}", text)
        path = tmp_path / "day" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found = list_objects([f"gs://logs/{bucket.day}"], bucket.storage).objects
    assert [o.name.rpartition(bucket.day)[2] for o in found] == ["/a.log", "/deep/b.log"]
    assert all(o.stamp != "none" and o.size for o in found)
    chosen = Settings(storage=bucket.storage)
    result = run(plan([f"gs://logs/{bucket.day}"], chosen), tmp_path / "gs", Here(), parquet=False, quiet=True)
    assert (result.incidents, result.failed, result.bad) == (2, 1, 0)
    run(plan([str(tmp_path / "day")], Settings()), tmp_path / "local", Here(), parquet=False, quiet=True)
    query = "select cause, verdict, failure, line, files, lines, bytes, time from incidents order by time"
    rows = [sqlite3.connect(tmp_path / n / "summary.sqlite").execute(query).fetchall() for n in ("gs", "local")]
    assert rows[0] == rows[1]


def test_large_logs_are_read_by_ranges(bucket):
    text = log(3, "oom", steps=3000)
    bucket.put(f"{bucket.day}/large.log", text)
    chosen = Settings(storage=bucket.storage, split_above=4 * len(text))
    [incident] = plan([f"gs://logs/{bucket.day}"], chosen).incidents
    job, elsewhere = Job(incident, chosen, 2), Elsewhere()
    assert run_job(job, elsewhere).data == run_job(replace(job, processes=1)).data
    assert len(elsewhere.pieces) == 4


def test_what_is_missing_is_named(bucket, tmp_path):
    with pytest.raises(InputError, match="no such object"):
        list_objects(["gs://logs/never.log"], bucket.storage)
    for name in ("a.log", "b.log"):
        bucket.put(f"{bucket.day}/{name}", log(1, "oom"))
    planned = plan([f"gs://logs/{bucket.day}"], Settings(storage=bucket.storage))
    bucket.drop(f"{bucket.day}/b.log")
    result = run(planned, tmp_path / "out", Here(), parquet=False, quiet=True)
    assert (result.incidents, result.bad) == (2, 1)
    rows = sqlite3.connect(tmp_path / "out" / "summary.sqlite").execute("select code from problems").fetchall()
    assert rows == [("object-missing",)]
