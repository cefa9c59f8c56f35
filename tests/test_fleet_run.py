"""Fleets on the local engine: grouping, datasets, resuming, dying workers, errors."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from fleet_logs import START, Here, log, same_bytes, write_fleet
from ray_cluster import tree

from forensics.cli.main import run as command
from forensics.errors import InputError, UsageError
from forensics.fleet.dataset import Dataset
from forensics.fleet.engine import AHEAD, choose
from forensics.fleet.job import Outcome, run_job, unpack
from forensics.fleet.local import LocalEngine
from forensics.fleet.plan import Job, Settings, jobs
from forensics.fleet.run import plan, run

pytest.importorskip("pyarrow")


def names(folder: Path, by: str = "", *paths: str) -> list[tuple[str, ...]]:
    planned = plan(list(paths) or [str(folder)], Settings(), by)
    return [tuple(o.name.removeprefix(f"{folder}/") for o in i.objects) for i in planned.incidents]


def put(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_nodes_of_one_job_over_the_same_time_are_one_incident(tmp_path):
    for node in range(2):
        for start in (0, 9):
            text = log(1, "none", nodes=2, node=node, address="10.0.0.1:5000", begin=START + timedelta(hours=start))
            put(tmp_path, f"run{start}/node-{node}/server.log", text)
    assert names(tmp_path) == [
        ("run0/node-0/server.log", "run0/node-1/server.log"),
        ("run9/node-0/server.log", "run9/node-1/server.log"),
    ]


def test_servers_on_numbered_machines_are_incidents_of_their_own(tmp_path):
    for node in range(3):
        put(tmp_path, f"node-{node}/server.log", log(1, "none"))
    assert names(tmp_path) == [(f"node-{n}/server.log",) for n in range(3)]


def test_a_node_whose_log_lost_its_head_joins_its_job(tmp_path):
    whole = [log(1, "none", nodes=2, node=n, address="10.0.0.1:5000") for n in range(2)]
    put(tmp_path, "log.node0.txt", whole[0])
    put(tmp_path, "log.node1.txt", "\n".join(whole[1].split("\n")[4:]))
    assert names(tmp_path) == [("log.node0.txt", "log.node1.txt")]


def test_rotated_parts_are_one_log(tmp_path):
    for part in ("server.log", "server.log.1", "server.log.2"):
        put(tmp_path, part, log(1, "none"))
    assert len(names(tmp_path)) == 1


def test_a_pattern_groups_by_names(tmp_path):
    for name in ("job-1/a.log", "job-1/b.log", "job-2/a.log", "other.log"):
        put(tmp_path, name, log(1, "none"))
    found = names(tmp_path, "job-([0-9]+)")
    assert sorted(found) == [("job-1/a.log", "job-1/b.log"), ("job-2/a.log",), ("other.log",)]


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=x)"])
def test_a_pattern_that_is_none_is_a_clear_error(tmp_path, pattern):
    put(tmp_path, "a.log", log(1, "none"))
    with pytest.raises(UsageError, match="--group-by"):
        names(tmp_path, pattern)


def test_a_dataset_holds_every_table(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    write_fleet(tmp_path / "logs", 9)
    assert command(["fleet", "logs", "-o", "out", "-q"]) == 0
    for table in ("incidents", "launches", "hypotheses", "failures", "facts", "series", "problems"):
        assert (tmp_path / "out" / f"{table}.parquet").is_file()
    incidents = pq.read_table("out/incidents.parquet").to_pylist()
    assert [r["failed"] for r in sorted(incidents, key=lambda r: r["name"])].count(True) == 3
    assert {r["version"] for r in incidents} == {"0.5.9"}
    throughput = [r for r in pq.read_table("out/series.parquet").to_pylist() if r["metric"] == "throughput"]
    assert {r["count"] for r in throughput} == {12} and all(r["low"] <= r["median"] <= r["high"] for r in throughput)
    rows = sqlite3.connect("out/summary.sqlite").execute("select name from incidents").fetchall()
    assert len(rows) == 9 and all(r[0].startswith("logs/") for r in rows)


def test_an_interrupted_run_goes_on_and_repeats_nothing(tmp_path):
    write_fleet(tmp_path / "logs", 8)
    planned = plan([str(tmp_path / "logs")], Settings())
    first, second = Here(3), Here()
    with pytest.raises(KeyboardInterrupt):
        run(planned, tmp_path / "out", first, quiet=True)
    assert not (tmp_path / "out" / "summary.sqlite").exists()
    with pytest.raises(InputError, match="no finished dataset"):
        Dataset(tmp_path / "out", create=False)
    result = run(planned, tmp_path / "out", second, quiet=True)
    assert (result.analyzed, result.skipped) == (5, 3)
    seen = first.seen + second.seen
    assert len(seen) == len(set(seen)) == 8
    run(planned, tmp_path / "whole", Here(), quiet=True)
    assert same_bytes(tmp_path / "out", tmp_path / "whole")


def test_a_damaged_part_is_made_anew_and_a_changed_log_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = write_fleet(tmp_path / "logs", 4)
    assert command(["fleet", "logs", "-o", "out", "-q", "-j", "1"]) == 0
    part = next(Path("out").glob("parts/*/*.zst"))
    part.write_bytes(part.read_bytes()[:40])
    paths[1].write_text(log(1, "oom"), encoding="utf-8")
    planned = plan(["logs"], Settings())
    todo = [i for i in planned.incidents if not Dataset(Path("out")).finished(i)]
    assert 1 <= len(todo) <= 2
    assert command(["fleet", "logs", "-o", "out", "-q", "-j", "1"]) == 0
    rows = sqlite3.connect("out/summary.sqlite").execute("select count(*), sum(failed) from incidents").fetchone()
    assert rows == (4, 3)


def die_on_odd_logs(job: Job) -> Outcome:
    if Path(job.incident.objects[0].location).read_text().startswith("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    return run_job(job)


def test_a_log_that_kills_its_worker_is_named_and_takes_no_other_along(tmp_path):
    write_fleet(tmp_path / "logs", 6)
    put(tmp_path / "logs", "deadly.log", "die\n" * 5)
    planned = plan([str(tmp_path / "logs")], Settings())
    engine = LocalEngine(2)

    class Deadly:
        def run(self, jobs, work=run_job):
            return engine.run(jobs, die_on_odd_logs)

        def close(self) -> None:
            engine.close()

    result = run(planned, tmp_path / "out", Deadly(), quiet=True)
    engine.close()
    assert (result.incidents, result.bad) == (7, 1)
    row = sqlite3.connect(tmp_path / "out" / "summary.sqlite").execute("select message, code from problems").fetchone()
    assert "deadly.log: the worker died" in row[0] and row[1] == "worker-died"
    # it is tried again by the next run, and the others are not
    assert run(planned, tmp_path / "out", Here(), quiet=True).analyzed == 1


def test_few_jobs_are_in_flight_at_any_time(tmp_path):
    write_fleet(tmp_path / "logs", 12)
    planned = plan([str(tmp_path / "logs")], Settings())
    handed = []

    class Waiting(list):
        def __iter__(self):
            for job in super().__iter__():
                handed.append(job)
                yield job

    engine = LocalEngine(1)
    try:
        for number, _ in enumerate(engine.run(Waiting(jobs(planned.incidents, planned.settings))), 1):
            assert len(handed) <= number - 1 + 1 * AHEAD
    finally:
        engine.close()
    assert len(handed) == 12


def test_one_huge_incident_by_byte_ranges_gives_the_same_part(tmp_path):
    put(tmp_path, "server.log", log(3, "oom", steps=4000))
    planned = plan([str(tmp_path / "server.log")], Settings())
    one = run_job(Job(planned.incidents[0], planned.settings, 1))
    three = run_job(Job(planned.incidents[0], planned.settings, 3))
    assert one == three and unpack(one.data)["final"]


def test_bad_inputs_are_problems_and_the_rest_is_analyzed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "logs/good.log", log(0, "oom"))
    put(tmp_path, "logs/empty.log", "")
    (tmp_path / "logs" / "binary.log").write_bytes(b"\x7fELF" + bytes(range(256)) * 9)
    assert command(["fleet", "logs", "missing.log", "-o", "out", "-q"]) == 1
    assert "3 incidents: 1 show a failure, 2 could not be analyzed" in capsys.readouterr().out
    codes = sqlite3.connect("out/summary.sqlite").execute("select code from problems order by code").fetchall()
    assert [c[0] for c in codes] == ["input-binary", "input-empty", "input-missing"]


def test_nothing_usable_is_exit_code_two(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(["fleet", "nowhere", "-o", "out"]) == 2
    assert "nowhere: no such file or folder" in capsys.readouterr().err
    put(tmp_path, "a.log", log(0, "none"))
    put(tmp_path, "other/keep.txt", "mine")
    assert command(["fleet", "a.log", "-o", "other", "-q"]) == 2
    assert "holds other files" in capsys.readouterr().err
    assert command(["fleet", "a.log", "--engine", "cron"]) == 2


def test_a_dry_run_lists_the_incidents(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "a.log", log(0, "none"))
    assert command(["fleet", "a.log", "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith("a.log\n") and not Path("fleet").exists()


@pytest.mark.slow
def test_a_killed_run_leaves_no_worker_behind_and_is_taken_up_again(tmp_path):
    write_fleet(tmp_path / "logs", 60)
    line = [sys.executable, "-m", "forensics", "fleet", "logs", "-o", "out", "-j", "2"]
    running = subprocess.Popen(line, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(list(tmp_path.glob("out/parts/*/*.zst"))) < 5 and running.poll() is None:
        time.sleep(0.02)
    workers = tree(running.pid)[1:]
    running.kill()
    running.wait()
    done = len(list(tmp_path.glob("out/parts/*/*.zst")))
    assert 5 <= done < 60 and workers
    end = time.monotonic() + 30
    while any(Path(f"/proc/{pid}/cmdline").exists() for pid in workers) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}/cmdline").exists()]
    again = subprocess.run([*line, "-q"], cwd=tmp_path, capture_output=True, text=True)
    assert f"{done} were finished by an earlier run" in again.stdout, again.stderr
    assert "60 incidents: 20 show a failure, 0 could not be analyzed" in again.stdout


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("ray", "fsspec", "pyarrow"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from forensics.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.log", "--engine", "ray"], "--engine ray needs ray"),
        (["s3://bucket/a.log"], "URLs need fsspec"),
        (["a.log"], "Parquet tables need pyarrow"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, arguments, said):
    put(tmp_path, "a.log", log(0, "none"))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, "fleet", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert said in done.stderr and "sglang-forensics[fleet]" in done.stderr


def test_the_base_package_alone_makes_a_summary_and_reports_it(tmp_path):
    put(tmp_path, "a.log", log(0, "oom"))
    run_it = [sys.executable, "-c", WITHOUT, "fleet"]
    done = subprocess.run([*run_it, "a.log", "--no-parquet", "-q"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([*run_it, "report", "fleet"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "1 of 1 incident failed" in done.stdout


def test_engines_are_chosen_by_name():
    assert isinstance(choose("local", 3), LocalEngine)
    with pytest.raises(UsageError, match="there is no such engine"):
        choose("cluster", 1)


def test_storage_options_stay_out_of_keys_and_texts(tmp_path):
    put(tmp_path, "a.log", log(0, "none"))
    plain = plan([str(tmp_path)], Settings())
    keyed = plan([str(tmp_path)], replace(Settings(), storage={"s3": {"secret": "hush"}}))
    assert plain.incidents == keyed.incidents
    assert "hush" not in repr(keyed)
