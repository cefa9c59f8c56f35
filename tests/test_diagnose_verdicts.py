"""What makes a cause established, likely, possible or ruled out."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import NAN, diagnose, finding, focus, hypothesis, knowledge, launch_text, verdicts, write

FP8 = "[2026-05-01 10:00:08] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. This may lead to less accurate results!\n"


@pytest.fixture
def log(tmp_path: Path) -> str:
    return write(tmp_path, "server.log", launch_text(FP8 + NAN, kv="fp8_e4m3"))


def test_a_decisive_ground_establishes(tmp_path: Path, log: str) -> None:
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"]))
    assert verdicts(diagnose([log], known)) == {"a": "established"}


def test_a_strong_ground_makes_likely(tmp_path: Path, log: str) -> None:
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"], strong=["fp8-kv-scale-default"]))
    assert verdicts(diagnose([log], known)) == {"a": "likely"}


def test_settings_beside_the_shared_failure_are_no_sign(tmp_path: Path, log: str) -> None:
    strong = ["nan-probabilities and args.kv_cache_dtype = fp8_e4m3"]
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"], strong=strong))
    assert verdicts(diagnose([log], known)) == {"a": "possible"}


def test_must_alone_is_possible(tmp_path: Path, log: str) -> None:
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities", "fp8-kv-scale-default"]))
    assert verdicts(diagnose([log], known)) == {"a": "possible"}


def test_an_unknown_must_caps_at_possible_and_says_how_to_settle(tmp_path: Path, log: str) -> None:
    must = ["nan-probabilities", "fp8-kv-scale-default", "gpu.sm = 120"]
    found = diagnose([log], knowledge(finding(tmp_path, "a", must=must, decisive=["fp8-kv-scale-default"])))
    assert verdicts(found) == {"a": "possible"}
    unknown = [g for g in hypothesis(found, "a").grounds if g.side == "unknown"]
    assert [g.condition for g in unknown] == ["gpu.sm = 120"]
    assert unknown[0].settle
    assert any(s.command == unknown[0].settle for s in focus(found).next)


def test_a_false_must_is_no_candidate(tmp_path: Path, log: str) -> None:
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities", "args.kv_cache_dtype = auto"]))
    found = diagnose([log], known)
    assert "a" not in verdicts(found)
    assert focus(found).unexplained


def test_something_against_keeps_a_decisive_ground_at_likely(tmp_path: Path, log: str) -> None:
    path = finding(
        tmp_path, "a", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"], against=["args.dtype = auto"]
    )
    assert verdicts(diagnose([log], knowledge(path))) == {"a": "likely"}


def test_an_exclusion_rules_out(tmp_path: Path, log: str) -> None:
    path = finding(
        tmp_path, "a", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"], excludes=["args.dtype = auto"]
    )
    found = diagnose([log], knowledge(path))
    assert verdicts(found)["a"] == "ruled-out"
    assert focus(found).unexplained


def test_without_log_evidence_it_stays_possible(tmp_path: Path, log: str) -> None:
    path = finding(tmp_path, "a", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"], evidence="none")
    assert verdicts(diagnose([log], knowledge(path))) == {"a": "possible"}


def test_a_suspected_cause_is_never_established(tmp_path: Path, log: str) -> None:
    path = finding(tmp_path, "a", status="suspected", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"])
    assert verdicts(diagnose([log], knowledge(path))) == {"a": "likely"}


def test_a_refuted_finding_is_never_named(tmp_path: Path, log: str) -> None:
    path = finding(tmp_path, "a", status="refuted", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"])
    assert "a" not in verdicts(diagnose([log], knowledge(path)))


def test_look_alikes_that_both_fit_are_likely_at_most(tmp_path: Path, log: str) -> None:
    one = finding(tmp_path, "a", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"], look_alikes=["b"])
    two = finding(tmp_path, "b", must=["nan-probabilities"], strong=["fp8-kv-scale-default"], look_alikes=["a"])
    assert verdicts(diagnose([log], knowledge(one, two))) == {"a": "likely", "b": "possible"}


def test_two_decisive_causes_of_one_failure_are_likely_at_most(tmp_path: Path, log: str) -> None:
    one = finding(tmp_path, "a", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"])
    two = finding(tmp_path, "b", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"])
    assert set(verdicts(diagnose([log], knowledge(one, two))).values()) == {"likely"}


def test_a_stronger_rival_leaves_the_weaker_possible(tmp_path: Path, log: str) -> None:
    one = finding(tmp_path, "a", must=["nan-probabilities"], strong=["fp8-kv-scale-default"])
    two = finding(tmp_path, "b", must=["nan-probabilities"], decisive=["fp8-kv-scale-default"])
    found = verdicts(diagnose([log], knowledge(one, two)))
    assert found == {"b": "established", "a": "possible"}
    assert list(found) == ["b", "a"]


def test_what_explains_only_consequences_comes_below(tmp_path: Path, log: str) -> None:
    echo = finding(
        tmp_path, "a", must=["fp8-kv-scale-default"], decisive=["fp8-kv-scale-default"], explains=["sigquit"]
    )
    cause = finding(tmp_path, "b", must=["nan-probabilities"])
    assert next(iter(verdicts(diagnose([log], knowledge(echo, cause))))) == "b"


def test_a_release_outside_the_range_rules_out(tmp_path: Path) -> None:
    text = "[2026-05-01 09:59:59] sglang version: 0.5.17\n" + launch_text(FP8 + NAN)
    log = write(tmp_path, "server.log", text)
    path = finding(tmp_path, "a", versions="<0.3.5", must=["nan-probabilities"], strong=["fp8-kv-scale-default"])
    found = diagnose([log], knowledge(path))
    if focus(found).version.low is not None:
        assert verdicts(found)["a"] == "ruled-out"


def test_a_passed_stage_rules_out_only_where_it_could_have_been(tmp_path: Path, log: str) -> None:
    shows = "[{signal: triton-shared-memory, stage: kv-pool}]"
    fits = finding(tmp_path, "a", applies=["args.dtype = auto"], must=["triton-shared-memory"], shows=shows)
    other = finding(tmp_path, "b", applies=["args.dtype = float16"], must=["triton-shared-memory"], shows=shows)
    unsaid = finding(tmp_path, "c", applies=["gpu.sm = 120"], must=["triton-shared-memory"], shows=shows)
    found = diagnose([log], knowledge(fits, other, unsaid))
    assert {n: v for n, v in verdicts(found).items() if v == "ruled-out"} == {"a": "ruled-out"}
    assert "kv-pool was passed" in hypothesis(found, "a").why


def test_a_stage_that_was_not_passed_rules_nothing_out(tmp_path: Path, log: str) -> None:
    shows = "[{signal: triton-shared-memory, stage: graph-capture}]"
    path = finding(tmp_path, "a", applies=["args.dtype = auto"], must=["triton-shared-memory"], shows=shows)
    assert "a" not in verdicts(diagnose([log], knowledge(path)))


def test_a_stated_symptom_gives_possible_and_never_more(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(FP8, kv="fp8_e4m3"))
    path = finding(
        tmp_path,
        "a",
        must=["nan-probabilities or symptom garbage", "fp8-kv-scale-default"],
        decisive=["fp8-kv-scale-default"],
        explains=["nan-probabilities"],
        symptoms=["garbage"],
    )
    assert verdicts(diagnose([log], knowledge(path), symptom="garbage")) == {"a": "possible"}
    quiet = diagnose([log], knowledge(path))
    assert verdicts(quiet) == {}
    assert not quiet.failed()


def test_a_warning_without_failure_is_a_risk_where_settings_fit(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(FP8, kv="fp8_e4m3"))
    fits = finding(tmp_path, "a", must=["nan-probabilities", "fp8-kv-scale-default"])
    other = finding(tmp_path, "b", applies=["args.dtype = float16"], must=["nan-probabilities", "fp8-kv-scale-default"])
    assert [r.finding for r in focus(diagnose([log], knowledge(fits, other))).risks] == ["a"]


def test_equal_inputs_give_equal_bytes(tmp_path: Path, log: str) -> None:
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"], strong=["fp8-kv-scale-default"]))
    assert diagnose([log], known).model_dump_json() == diagnose([log], known).model_dump_json()


def test_ids_are_stable_and_nested(tmp_path: Path, log: str) -> None:
    known = knowledge(finding(tmp_path, "a", must=["nan-probabilities"], strong=["fp8-kv-scale-default"]))
    found = hypothesis(diagnose([log], known), "a")
    assert found.id == "L1.H1"
    assert [g.id for g in found.grounds] == [f"L1.H1.G{n}" for n in range(1, len(found.grounds) + 1)]


REWORDED = """[2026-05-01 10:00:51] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/layers/frob.py", line 31, in forward
ValueError: frobnication of layer 12 got 4096 gears where 2048 were geared{tail}

"""
PAGE = """
```log match
[2026-05-01 10:00:51] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/a/sglang/srt/layers/frob.py", line 30, in forward
ValueError: frobnication of layer 3 got 128 gears where 64 were expected
```
"""


def test_a_reworded_message_is_pointed_at_and_stays_unexplained(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(REWORDED.format(tail="")))
    path = finding(tmp_path, "gears", must=["triton-shared-memory"])
    path.write_text(path.read_text() + PAGE)
    info = focus(diagnose([log], knowledge(path)))
    assert info.nearest == ["gears"]
    assert info.unexplained
    top = info.hypotheses[0]
    assert (top.finding, top.verdict) == ("gears", "possible")
    assert "resembles" in top.why


def test_a_likeness_that_settings_contradict_is_only_a_pointer(tmp_path: Path) -> None:
    log = write(tmp_path, "server.log", launch_text(REWORDED.format(tail="")))
    path = finding(tmp_path, "gears", applies=["args.dtype = float16"], must=["triton-shared-memory"])
    path.write_text(path.read_text() + PAGE)
    info = focus(diagnose([log], knowledge(path)))
    assert info.nearest == ["gears"]
    assert [h.kind for h in info.hypotheses] == ["engine"]
