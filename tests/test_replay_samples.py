"""The logs of real replays on a GPU give the verdict that was given there."""

import json
from pathlib import Path

import pytest

from forensics import analyze
from forensics.replay.probe import Check
from forensics.replay.run import Outcome
from forensics.replay.verify import failing_of, judge

REPLAYS = Path(__file__).parent.parent / "samples" / "replay"


def outcome(folder: Path, step: str) -> Outcome | None:
    done = json.loads((folder / "run.json").read_text())["steps"].get(step)
    if done is None:
        return None
    checks = tuple(Check(**check) for check in done["checks"])
    return Outcome(
        done["end"], done["why"], analyze(folder / f"{step}.log"), checks, done["seconds"], done["exit_code"]
    )


@pytest.mark.parametrize("name", sorted(p.name for p in REPLAYS.iterdir() if p.is_dir()))
def test_the_verdict_follows_from_the_logs(name):
    folder = REPLAYS / name
    control, fixed = outcome(folder, "control"), outcome(folder, "fixed")
    before = failing_of(control.report) if control else None
    assert judge(before, fixed, control).word == json.loads((folder / "run.json").read_text())["verdict"]
    assert fixed.report.launches[-1].first_failure is None
    if control:
        assert control.report.launches[-1].first_failure.stage in ("decode", "prefill")


@pytest.mark.parametrize(
    ("name", "cause", "flag"),
    [("h200-fp8-kv", "fp8-kv-cache-without-scales", "--kv-cache-dtype"), ("h200-float16", "fp16-overflow", "--dtype")],
)
def test_the_two_logs_together_establish_the_cause(name, cause, flag):
    folder = REPLAYS / name
    report = analyze([folder / "control.log", folder / "fixed.log"])
    focus = next(x for x in report.launches if x.id == report.focus)
    best = focus.hypotheses[0]
    assert (best.finding, best.verdict) == (cause, "established")
    assert flag in best.why
