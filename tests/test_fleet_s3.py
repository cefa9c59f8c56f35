"""Fleets on the real S3 protocol: a local S3 server, read through fsspec, with what goes wrong in object stores."""

from __future__ import annotations

import gzip
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fleet_logs import START, Here, log
from s3_store import Store, serve

from forensics.cli.main import run as command
from forensics.errors import InputError, UsageError
from forensics.fleet.objects import list_objects
from forensics.fleet.plan import Settings
from forensics.fleet.remote import Limits
from forensics.fleet.run import plan, run

pytest.importorskip("s3fs")
pytest.importorskip("pyarrow")
pytest.importorskip("boto3")
pytest.importorskip("moto.server")


@pytest.fixture
def store():
    with serve() as made:
        yield made


def settings(store: Store, **limits: Any) -> Settings:
    return Settings(storage=store.storage(), limits=Limits(**limits))


def analyzed(
    store: Store, folder: Path, chosen: Settings, between: Any = None, *names: str
) -> tuple[Any, sqlite3.Connection]:
    planned = plan(list(names) or ["s3://logs/day"], chosen)
    if between:
        between()
    result = run(planned, folder, Here(), quiet=True)
    return result, sqlite3.connect(folder / "summary.sqlite")


def test_logs_of_a_bucket_are_read_as_local_ones_are(store, tmp_path):
    for node in range(2):
        text = log(3, "oom", nodes=2, node=node, address="10.0.0.1:5000")
        packed = gzip.compress(text.encode(), mtime=0)
        store.put(f"day/job/node-{node}/server.log.gz", packed)
        path = tmp_path / "day" / "job" / f"node-{node}" / "server.log.gz"
        path.parent.mkdir(parents=True)
        path.write_bytes(packed)
    store.put("day/notes.bin", "no log")
    result, remote = analyzed(store, tmp_path / "remote", settings(store))
    assert (result.incidents, result.failed, result.bad) == (1, 1, 0)
    _, local = analyzed(store, tmp_path / "local", Settings(), None, str(tmp_path / "day"))
    for query in (
        "select cause, verdict, failure, line, files, lines, bytes, time from incidents",
        "select launch, role, count, ranks, line, text from failures order by 1, 2, 5",
    ):
        assert remote.execute(query).fetchall() == local.execute(query).fetchall()
    paths = [r[0] for r in remote.execute("select distinct path from failures").fetchall()]
    assert paths and all(p.startswith("s3://logs/day/job/node-") for p in paths)


def test_globs_and_single_objects(store):
    for name in ("day/a.log", "day/deep/b.log", "day/c.txt"):
        store.put(name, log(0, "none"))
    found = list_objects(["s3://logs/day/**/*.log", "s3://logs/day/c.txt"], store.storage()).objects
    assert [o.name for o in found] == ["s3://logs/day/a.log", "s3://logs/day/c.txt", "s3://logs/day/deep/b.log"]
    assert all(o.stamp.startswith("ETag") and o.size for o in found)


def test_what_is_missing_is_named(store):
    with pytest.raises(InputError, match="s3://logs/never: no such object"):
        list_objects(["s3://logs/never"], store.storage())
    with pytest.raises(InputError, match=r"s3://nowhere/a\.log: no such object"):
        list_objects(["s3://nowhere/a.log"], store.storage())
    store.put("day/a.log", log(0, "none"))
    listing = list_objects(["s3://logs/day", "s3://logs/never.log"], store.storage())
    assert len(listing.objects) == 1 and [p.code for p in listing.problems] == ["object-missing"]


def test_an_object_that_vanishes_after_the_listing_is_a_problem_and_is_tried_again(store, tmp_path):
    store.put("day/a.log", log(0, "oom"))
    store.put("day/b.log", log(1, "none"))
    gone = lambda: store.client().delete_object(Bucket="logs", Key="day/b.log")  # noqa: E731
    result, rows = analyzed(store, tmp_path / "out", settings(store), gone)
    assert (result.incidents, result.bad) == (2, 1)
    assert rows.execute("select path, code from problems").fetchall() == [("s3://logs/day/b.log", "object-missing")]


def test_of_an_incident_the_readable_logs_are_used(store, tmp_path):
    for node in range(2):
        store.put(
            f"day/node-{node}.log", log(1, "oom" if node else "none", nodes=2, node=node, address="10.0.0.1:5000")
        )
    gone = lambda: store.client().delete_object(Bucket="logs", Key="day/node-0.log")  # noqa: E731
    result, rows = analyzed(store, tmp_path / "out", settings(store), gone)
    assert (result.incidents, result.failed, result.bad) == (1, 1, 0)
    assert rows.execute("select code from problems").fetchall() == [("object-missing",)]


@pytest.mark.slow
def test_a_read_that_hangs_is_given_up_and_the_rest_goes_on(store, tmp_path):
    store.put("day/fast.log", log(0, "oom"))
    store.put("day/slow.log", log(1, "none", begin=START))

    def stall() -> None:
        store.slow = 25.0

    result, rows = analyzed(store, tmp_path / "out", settings(store, stall=8.0), stall)
    assert (result.incidents, result.failed, result.bad) == (2, 1, 1)
    message, code = rows.execute("select message, code from problems").fetchone()
    assert code == "object-slow" and "s3://logs/day/slow.log: the store sent nothing for 8 s" in message
    store.slow = 0.0
    result, rows = analyzed(store, tmp_path / "out", settings(store))
    assert (result.analyzed, result.skipped, result.bad) == (1, 1, 0)


def test_a_read_that_is_slow_but_goes_on_is_fine(store, tmp_path):
    store.slow = 0.3
    store.put("day/slow.log", log(0, "oom"))
    result, _ = analyzed(store, tmp_path / "out", settings(store, stall=5.0))
    assert (result.incidents, result.failed, result.bad) == (1, 1, 0)


def test_what_may_not_be_read_is_a_problem(store, tmp_path):
    store.put("day/open.log", log(0, "oom"))
    store.put("day/private.log", log(1, "oom"))
    iam = store.client("iam")
    iam.create_user(UserName="reader")
    allowed = [
        {"Effect": "Allow", "Action": ["s3:ListBucket", "s3:HeadObject"], "Resource": "*"},
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::logs/day/open.log"},
    ]
    iam.put_user_policy(
        UserName="reader", PolicyName="p", PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": allowed})
    )
    keys = iam.create_access_key(UserName="reader")["AccessKey"]
    store.post("reset-auth", b"0")
    chosen = replace(settings(store), storage=store.storage(keys["AccessKeyId"], keys["SecretAccessKey"]))
    result, rows = analyzed(store, tmp_path / "out", chosen)
    assert (result.incidents, result.failed, result.bad) == (2, 1, 1)
    message, code = rows.execute("select message, code from problems").fetchone()
    assert code == "object-denied" and message == "s3://logs/day/private.log: reading it is not allowed"
    with pytest.raises(InputError, match="s3://logs/day: reading it is not allowed"):
        list_objects(["s3://logs/day"], store.storage("unknown", "unknown"))
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file():
            assert keys["SecretAccessKey"].encode() not in file.read_bytes()


def test_an_incident_larger_than_the_spool_is_a_problem(store, tmp_path):
    store.put("day/a.log", log(0, "oom"))
    result, rows = analyzed(store, tmp_path / "out", settings(store, spool=1000))
    assert result.bad == 1
    assert rows.execute("select code from problems").fetchall() == [("object-large",)]


def test_the_command_takes_urls_and_a_file_of_storage_options(store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store.put("day/a.log", log(0, "oom"))
    Path("storage.json").write_text(json.dumps(store.storage()), encoding="utf-8")
    assert command(["fleet", "s3://logs/day", "--storage", "storage.json", "-o", "out", "-q"]) == 0
    assert "1 incident: 1 show a failure" in capsys.readouterr().out
    assert not list(Path("out").rglob("*.tmp"))
    Path("storage.json").write_text("[]", encoding="utf-8")
    assert command(["fleet", "s3://logs/day", "--storage", "storage.json"]) == 2


def test_a_protocol_that_nobody_knows_is_a_clear_error():
    with pytest.raises(UsageError, match="Protocol not known"):
        list_objects(["nosuch://bucket/a.log"])
