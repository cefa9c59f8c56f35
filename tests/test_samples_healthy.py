"""Servers that worked: whatever the release, the topology and the wrapper, no hypothesis and no failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from forensics import analyze

ROOT = Path(__file__).parent.parent
HEALTHY = sorted(p.parent for p in ROOT.glob("samples/healthy/*/log.txt"))
TOPOLOGIES = (
    "amd", "ascend", "data-parallel", "dp-attention-ep", "eagle3", "embedding", "hicache", "hybrid", "lora", "pd-decode",
    "pd-prefill", "pipeline", "router", "sliding-window", "two-nodes",
)  # fmt: skip


def test_every_topology_has_a_healthy_log() -> None:
    assert {f"v-{name}" for name in TOPOLOGIES} <= {p.name for p in HEALTHY}
    releases = {json.loads((p / "truth.json").read_text()).get("sglang_version") for p in HEALTHY}
    assert len(releases - {None, ""}) >= 12


@pytest.mark.parametrize("folder", HEALTHY, ids=lambda p: p.name)
def test_a_healthy_log_gives_no_hypothesis(folder: Path) -> None:
    report = analyze(folder / "log.txt")
    assert report.launches
    for launch in report.launches:
        assert [(h.finding, h.verdict) for h in launch.hypotheses] == []
        assert launch.first_failure is None and launch.ranks.missing == []
        assert launch.ended not in ("died", "hung", "killed", "exception")


def test_the_masked_shapes_of_all_healthy_logs_are_packed() -> None:
    done = subprocess.run([sys.executable, "tools/build_pack.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
