"""Fleets on a real Ray cluster of several processes: nothing lost, nothing doubled, the local engine's bytes."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fleet_logs import log, same_bytes, write_fleet
from ray_cluster import cluster

pytest.importorskip("ray")
pytest.importorskip("pyarrow")

COUNT = 180
SMALL = 24
SEVERAL = "1 was read on several nodes at once"


def fleet(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "forensics", "fleet", *arguments]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


@pytest.fixture(autouse=True)
def no_foreign_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def parts(dataset: Path) -> int:
    return len(list(dataset.glob("parts/*/*.zst")))


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_in_the_middle_gives_the_local_engines_bytes(tmp_path):
    write_fleet(tmp_path / "logs", COUNT - 1)
    large = tmp_path / "logs" / "large.log"
    large.write_text(log(9, "none", steps=4000), encoding="utf-8")
    with cluster(workers=2) as nodes:
        words = ("logs", "-o", "ray", "--engine", "ray", "--ray-address", nodes.address, "--split-above", "100k")
        running = fleet(*words, cwd=tmp_path, env=nodes.environment)
        end = time.monotonic() + 240
        while parts(tmp_path / "ray") < COUNT // 4 and running.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        reached = parts(tmp_path / "ray")
        if running.poll() is not None or reached < COUNT // 4:
            running.kill()
            pytest.fail(f"{reached} parts; {running.communicate()}; {nodes.told()}")
        nodes.kill(1)
        out, err = running.communicate(timeout=240)
        if running.returncode == 2 and "no cores" in err:
            # the machine was too busy for the other worker's heart-beats, too: what the program says to do then
            nodes.join()
            running = fleet(*words, cwd=tmp_path, env=nodes.environment)
            out, err = running.communicate(timeout=240)
    assert running.returncode == 0, err
    assert reached < COUNT
    assert f"{COUNT} incidents: {COUNT // 3} show a failure, 0 could not be analyzed" in out
    local = fleet("logs", "-o", "local", cwd=tmp_path)
    out, err = local.communicate(timeout=240)
    assert local.returncode == 0, err
    assert same_bytes(tmp_path / "ray", tmp_path / "local")
    rows = sqlite3.connect(tmp_path / "ray" / "summary.sqlite").execute("select name from incidents").fetchall()
    assert len(rows) == len({r[0] for r in rows}) == COUNT


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True], ids=["all-nodes-live", "a-node-dies"])
def test_one_large_incident_is_read_on_several_nodes(tmp_path, lost):
    (tmp_path / "logs").mkdir()
    for node in range(2):
        text = log(9, "oom" if node else "none", steps=15_000, nodes=2, node=node, address="10.0.0.1:5000")
        (tmp_path / "logs" / f"log.node{node}.txt").write_text(text, encoding="utf-8")
    for number in range(SMALL):  # they wake the workers of every node: the ranges are too short to wait for one
        (tmp_path / "logs" / f"small-{number}.log").write_text(log(number, "odd"), encoding="utf-8")
    with cluster(workers=3 if lost else 2) as nodes:
        words = ("logs", "-o", "ray", "--engine", "ray", "--ray-address", nodes.address, "--split-above", "1MB")
        running = fleet(*words, cwd=tmp_path, env=nodes.environment)
        if lost:
            end = time.monotonic() + 120
            while parts(tmp_path / "ray") < 1 and running.poll() is None and time.monotonic() < end:
                time.sleep(0.02)
            nodes.kill(2)
        out, err = running.communicate(timeout=240)
        for _ in range(4):
            if lost or running.returncode or SEVERAL in out:
                break
            # on a busy machine one node may have read every range before the other had a free core
            shutil.rmtree(tmp_path / "ray")
            running = fleet(*words, cwd=tmp_path, env=nodes.environment)
            out, err = running.communicate(timeout=240)
    assert running.returncode == 0, err
    assert f"{SMALL + 1} incidents: {SMALL + 1} show a failure, 0 could not be analyzed" in out
    assert lost or SEVERAL in out
    local = fleet("logs", "-o", "local", "--split-above", "1MB", cwd=tmp_path)
    out, err = local.communicate(timeout=240)
    assert local.returncode == 0 and "several nodes" not in out, err
    assert same_bytes(tmp_path / "ray", tmp_path / "local")


def test_no_cluster_is_a_clear_error(tmp_path):
    write_fleet(tmp_path / "logs", 1)
    running = fleet("logs", "--engine", "ray", "--ray-address", "127.0.0.1:1", cwd=tmp_path)
    _, err = running.communicate(timeout=90)
    assert running.returncode == 2
    assert "no Ray cluster at 127.0.0.1:1" in err
