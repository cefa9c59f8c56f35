"""`explain_finding`: every condition with held, failed or unknown, and where; and a history that counts when named."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import NAN, diagnose, finding, hypothesis, knowledge, launch_text, verdicts, write

from forensics.analysis import masker, read
from forensics.diagnose.explain import Explanation, explain_finding
from forensics.diagnose.places import Places
from forensics.errors import UsageError
from forensics.history import History, Verdict
from forensics.knowledge.store import Knowledge
from forensics.schema.options import Options

FP8 = "[2026-05-01 10:00:08] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to less accurate results!\n"


def explained(log: str, known: Knowledge, name: str) -> Explanation:
    reading = read([log], Options(), known)
    places = Places((reading.table,), masker(Options()))
    return explain_finding(name, reading.cases[-1], reading.cases, known, places)


def test_every_condition_is_held_failed_or_unknown_with_its_place(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(FP8 + NAN, kv="fp8_e4m3"))
    path = finding(
        tmp_path,
        "a",
        applies=["gpu.sm = 120"],
        must=["nan-probabilities and args.kv_cache_dtype = fp8_e4m3"],
        strong=["fp8-kv-scale-default"],
        against=["args.dtype = float16"],
    )
    found = explained(log, knowledge(path), "a")
    top = {s.text: s.state for s in found.steps if s.depth == 0}
    assert top == {
        "gpu.sm = 120": "unknown",
        "nan-probabilities and args.kv_cache_dtype = fp8_e4m3": "held",
        "fp8-kv-scale-default": "held",
        "args.dtype = float16": "failed",
    }
    parts = [s for s in found.steps if s.depth == 1]
    assert [(s.text, s.state) for s in parts][:2] == [
        ("nan-probabilities", "held"),
        ("args.kv_cache_dtype = fp8_e4m3", "held"),
    ]
    assert all(s.where and s.where[0].path == log for s in parts[:2])
    assert next(s for s in found.steps if s.state == "unknown").settle
    assert found.verdict == "possible"


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"applies": ["args.dtype = float16"], "must": ["nan-probabilities"]}, "not of the kind"),
        ({"must": ["nan-probabilities", "args.dtype = float16"]}, "requires what is not there"),
        ({"must": ["fp8-kv-scale-default"], "explains": ["cuda-illegal-access"]}, "no failure of this launch shows"),
    ],
)
def test_why_a_finding_is_no_hypothesis(tmp_path: Path, keys: dict[str, object], reason: str) -> None:
    log = write(tmp_path, "server.log", launch_text(FP8 + NAN, kv="fp8_e4m3"))
    found = explained(log, knowledge(finding(tmp_path, "a", **keys)), "a")
    assert found.verdict == "no hypothesis"
    assert reason in found.why


def test_an_unknown_finding_names_the_nearest(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(NAN))
    with pytest.raises(UsageError) as raised:
        explained(log, knowledge(finding(tmp_path, "kv-scales", must=["nan-probabilities"])), "kv-scale")
    assert "kv-scales" in raised.value.hint


def history(folder: Path, outcome: str, model: str) -> Path:
    path = folder / "history.db"
    store = History(path)
    failure = "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel: block: [0,0,0], thread: [0,0,0] Assertion `probability tensor contains either `inf`, `nan` or element < 0` failed."
    store.add_verdict(Verdict("run-1", "a", outcome, ("--kv-cache-dtype=auto",), failure, model))
    store.close()
    return path


def test_a_fix_that_was_proved_before_is_a_strong_ground(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(NAN))
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"]))
    assert verdicts(diagnose([log], known)) == {"a": "possible"}
    found = diagnose([log], known, history=history(tmp_path, "fixed", "dense"))
    assert verdicts(found) == {"a": "likely"}
    assert any("run-1" in g.why and g.side == "for" for g in hypothesis(found, "a").grounds)
    assert str(tmp_path / "history.db") in [s.path for s in found.sources]


def test_a_fix_that_failed_before_rules_out(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(NAN))
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"]))
    assert verdicts(diagnose([log], known, history=history(tmp_path, "still-failing", "dense")))["a"] == "ruled-out"


def test_another_models_past_says_nothing(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(NAN))
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"]))
    assert verdicts(diagnose([log], known, history=history(tmp_path, "fixed", "other"))) == {"a": "possible"}
