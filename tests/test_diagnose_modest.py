"""What must not win: comparisons against the program's own words, likeness of bare exceptions, idle differences."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import NAN, SERVES, diagnose, finding, focus, knowledge, launch_text, verdicts, write

import forensics
from forensics.diagnose.similar import said
from forensics.schema.facts import VersionInterval
from forensics.schema.finding import FixStep
from forensics.timeline.catalog import check_changes

SAMPLES = Path(__file__).parents[1] / "samples/cases"
BIND = """[2026-05-01 10:00:51] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30001): address already in use
[2026-05-01 10:00:52] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
"""
BACKEND = "[{kind: flag, op: set, name: --attention-backend, value: flashinfer, runnable: true}]"


def test_a_port_in_use_is_never_explained_by_a_flag(tmp_path: Path) -> None:
    log = launch_text(SERVES, backend="flashinfer", seed=1) + launch_text(BIND, backend="triton", seed=2)
    own = finding(tmp_path, "backend", must=["http-address-in-use or args.attention_backend = triton"], fix=BACKEND)
    found = diagnose([write(tmp_path, "1.log", log)], knowledge(own))
    assert not any(h.verdict == "established" for h in focus(found).hypotheses)
    assert not any(h.kind == "difference" for h in focus(found).hypotheses)


def test_what_the_program_names_stands_before_a_comparison(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, kv="fp8_e4m3", seed=1))
    good = write(tmp_path, "2.log", launch_text(SERVES, kv="auto", seed=2))
    kv = "[{kind: flag, op: remove, name: --kv-cache-dtype, runnable: true}]"
    named = finding(tmp_path, "named", must=["nan-probabilities"], decisive=["nan-probabilities"])
    other = finding(tmp_path, "other", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=kv)
    report = diagnose([bad, good], knowledge(named, other))
    assert focus(report).hypotheses[0].finding == "named"
    assert verdicts(report)["other"] != "established"


def test_a_good_launch_before_the_failing_one_is_weaker(tmp_path: Path) -> None:
    log = launch_text(SERVES, backend="flashinfer", seed=1) + launch_text(NAN, backend="triton", seed=2)
    top = focus(diagnose([write(tmp_path, "1.log", log)], knowledge())).hypotheses[0]
    assert (top.kind, top.verdict) == ("difference", "likely")
    assert top.title == "Changing --attention-backend flashinfer → triton made it fail"


@pytest.mark.parametrize(
    "text", ["AssertionError", "RuntimeError: ", "KeyError: 'x'", "torch.OutOfMemoryError: failed"]
)
def test_a_bare_exception_is_like_nothing(text: str) -> None:
    assert said(text) == ""


def test_likeness_is_asked_of_the_words_behind_the_type() -> None:
    assert said("ValueError: the output_size of the gate weight is not divisible by 128").startswith("the output_size")


def test_a_proven_fix_is_kept_and_not_tried_again(tmp_path: Path) -> None:
    bad = write(tmp_path, "1.log", launch_text(NAN, kv="fp8_e4m3", seed=1))
    good = write(tmp_path, "2.log", launch_text(SERVES, kv="bfloat16", seed=2))
    kv = "[{kind: flag, op: set, name: --kv-cache-dtype, value: bfloat16, runnable: true}]"
    own = finding(tmp_path, "kv", must=["nan-probabilities", "args.kv_cache_dtype = fp8_e4m3"], fix=kv)
    report = diagnose([bad, good], knowledge(own))
    steps = next(x for x in report.launches if x.id == "L1").next
    assert steps[0].do == "keep --kv-cache-dtype bfloat16: L2 has it and works"
    assert not any(s.kind == "experiment" and "kv-cache-dtype" in s.do for s in steps)


def test_steps_that_help_only_together_are_offered_together(tmp_path: Path) -> None:
    fix = (
        "[{kind: flag, op: set, name: --attention-backend, value: flashinfer, runnable: true}, "
        "{kind: flag, op: set, name: --kv-cache-dtype, value: bfloat16, with_above: true, runnable: true}]"
    )
    log = write(tmp_path, "1.log", launch_text(NAN, kv="fp8_e4m3", seed=1))
    own = finding(tmp_path, "pair", must=["nan-probabilities"], strong=["args.kv_cache_dtype = fp8_e4m3"], fix=fix)
    top = focus(diagnose([log], knowledge(own)))
    assert "--attention-backend flashinfer and --kv-cache-dtype bfloat16" in top.next[0].do
    assert [step.with_above for step in top.hypotheses[0].fix] == [False, True]


def test_an_upgrade_is_offered_to_older_releases_only() -> None:
    step = FixStep("package", "at-least", "sglang", version="0.5.9")
    new, old = VersionInterval("0.5.10", "0.5.12"), VersionInterval("0.5.4", "0.5.6")
    assert check_changes([step], old) == [(step,)]
    assert check_changes([step], new)[0][0].kind == "other"
    spanning = check_changes([step], VersionInterval("0.5.6", "0.5.10"))[0][0]
    assert spanning.kind == "package" and spanning.versions.startswith("<")


def test_a_log_that_begins_with_a_scheduler_exception_has_lost_its_head(tmp_path: Path) -> None:
    """What is not in it proves nothing: `no line shows …` then establishes no cause."""
    text = (SAMPLES / "v-b4cbb" / "log.txt").read_text()
    cut = text[text.rindex("\n", 0, text.index("Scheduler hit an exception")) + 1 :]
    launch = forensics.analyze([write(tmp_path, "cut.log", cut)]).launches[-1]
    assert launch.hypotheses[0].verdict == "possible"
    assert any("head of the log" in note for note in launch.notes)
