"""The diagnosis stays when a log is reordered, wrapped, moved, renamed, noisy or cut."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import mutations
import pytest

import forensics
from forensics.schema.report import LaunchInfo

CASES = Path(__file__).parents[1] / "samples" / "cases"
NAMES = (
    "a-glm52-fp8-b200-pack-assert",
    "b-nextn-draft-unbalanced-tp1",
    "c-fp8-block-tp32-moe-gate-up-10641",
    "d-dp-not-dividing-tp",
    "run-gpu-oom_capture",
    "run-gpu2-tp2_one_rank_oom",
    "run-cpu-k_truncated_shard",
)


def focus(path: Path) -> LaunchInfo:
    found = forensics.analyze(path)
    return next(x for x in found.launches if x.id == found.focus)


def summary(info: LaunchInfo) -> tuple[object, ...]:
    top = next((h for h in info.hypotheses if h.verdict != "ruled-out"), None)
    first = info.first_failure
    assert top is not None
    assert first is not None
    return top.finding, top.verdict, first.rank, first.stage


@cache
def plain(name: str) -> tuple[object, ...]:
    return summary(focus(CASES / name / "log.txt"))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mutation", sorted(mutations.ALL))
def test_mutated_logs_are_diagnosed_alike(name: str, mutation: str, tmp_path: Path) -> None:
    text = (CASES / name / "log.txt").read_bytes().decode("utf-8", "surrogateescape")
    changed = mutations.ALL[mutation](text)
    if changed == text:
        pytest.skip("this log has nothing that the mutation changes")
    path = tmp_path / "server.log"
    path.write_bytes(changed.encode("utf-8", "surrogateescape"))
    assert summary(focus(path)) == plain(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_head_keeps_the_cause_or_says_what_is_missing(name: str, tmp_path: Path) -> None:
    info = focus(CASES / name / "log.txt")
    assert info.first_failure is not None
    lines = (CASES / name / "log.txt").read_bytes().split(b"\n")
    path = tmp_path / "server.log"
    path.write_bytes(b"\n".join(lines[max(0, info.first_failure.where.line - 25) :]))
    cut = focus(path)
    kept = cut.hypotheses and cut.hypotheses[0].finding == plain(name)[0]
    assert kept or cut.next


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_tail_after_the_failure_keeps_the_cause(name: str, tmp_path: Path) -> None:
    info = focus(CASES / name / "log.txt")
    assert info.first_failure is not None
    lines = (CASES / name / "log.txt").read_bytes().split(b"\n")
    path = tmp_path / "server.log"
    path.write_bytes(b"\n".join(lines[: info.first_failure.where.line + 3]) + b"\n")
    assert summary(focus(path))[0] == plain(name)[0]
