"""What the report says of a launch: own values, own words of an unknown failure, grounds that can be told apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import START, diagnose, focus, knowledge, write

from forensics.analysis import analyze
from forensics.diagnose.headline import headline
from forensics.diagnose.objections import ELSEWHERE, told_apart
from forensics.diagnose.wording import readable
from forensics.schema.report import GroundInfo, LaunchInfo, RanksInfo, VersionInfo, Where
from forensics.timeline.remarks import WAITED

CASES = Path(__file__).parents[1] / "samples/cases"
SITE = "/opt/venv/lib/python3.12/site-packages"


def crash(message: str, file: str = "sglang/srt/models/odd_gate.py") -> str:
    return START + (
        "[2026-05-01 10:00:30] Capture cuda graph begin. This can take up to several minutes. avail mem=8.00 GB\n"
        "[2026-05-01 10:00:31] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "{SITE}/sglang/srt/managers/scheduler.py", line 2974, in run_scheduler_process\n'
        f'  File "{SITE}/{file}", line 31, in forward\n{message}\n\n'
        "[2026-05-01 10:00:32] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
    )


def test_a_comparison_shows_the_launchs_own_values() -> None:
    launch = next(x for x in analyze([str(CASES / "saga/session.log")]).launches if x.id == "L5")
    assert launch.comparison is not None and launch.comparison.differences
    for difference in launch.comparison.differences:
        assert difference.here == launch.facts[difference.name].value, difference.name
        assert difference.tested or difference.here != difference.control, difference.name
    shown = next(d for d in launch.comparison.differences if d.name == "args.disable_cuda_graph")
    assert shown.here is True and shown.tested and shown.where is not None and shown.where.line > launch.lines[0]


def test_the_headline_of_an_unknown_failure_gives_its_words_and_no_cause(tmp_path: Path) -> None:
    text = "torch._dynamo.exc.Unsupported: The backend has no lowering for a gate of this kind, please report it\n  Hint: none"
    found = diagnose([write(tmp_path, "server.log", crash(text, "modeling/modeling_gate_moe.py"))], knowledge())
    words = "Unsupported: The backend has no lowering for a gate of this kind, please report it"
    assert found.headline.endswith(f"; no known cause; it says: {words}")
    top = focus(found).hypotheses[0]
    assert top.kind == "engine" and top.title == f"It says: {words}"


@pytest.mark.parametrize("text", ["AssertionError", "AssertionError: "])
def test_an_exception_without_words_is_named_with_its_place(tmp_path: Path, text: str) -> None:
    found = diagnose([write(tmp_path, "server.log", crash(text))], knowledge())
    assert "no known cause; AssertionError in " in found.headline and "it says" not in found.headline


def test_a_known_kind_of_failure_is_a_reading_not_a_cause(tmp_path: Path) -> None:
    text = "RuntimeError: CUDA error: an illegal memory access was encountered"
    found = diagnose([write(tmp_path, "server.log", crash(text))], knowledge())
    assert "; no known cause; A GPU kernel faulted (illegal memory access)" in found.headline


@pytest.mark.parametrize(
    ("ended", "told"), [("stopped", "came up, served and was stopped"), ("running", "the server came up and serves")]
)
def test_a_stopped_server_no_longer_serves(ended: str, told: str) -> None:
    launch = LaunchInfo(id="L1", lines=(1, 9), reached="serving", ended=ended, ranks=RanksInfo(), version=VersionInfo())
    assert told in headline([launch], "L1", None)


def ground(side: str, why: str, *lines: int) -> GroundInfo:
    places = [Where(path="a.log", line=n) for n in lines]
    return GroundInfo.model_validate(
        {"id": "", "side": side, "strength": "must", "condition": "c", "why": why, "where": places}
    )


def test_a_ground_against_says_what_no_ground_for_has_said() -> None:
    support = ground("for", "NaN was seen (8 times)", 20)
    against = ground("against", "NaN was seen (8 times); --quantization is fp8", 20, 3)
    same = ground("against", "NaN was seen (8 times)", 20)
    other = ground("against", "L2 works and prints it too", 90)
    told = told_apart([support, against, same, other])
    assert [g.why for g in told] == [
        support.why, "--quantization is fp8", f"NaN was seen (8 times): {ELSEWHERE}", other.why,
    ]  # fmt: skip
    assert [w.line for w in told[1].where] == [3]


def test_no_sentence_stands_under_both_signs() -> None:
    launch = next(x for x in analyze([str(CASES / "saga/session.log")]).launches if x.id == "L5")
    for hypothesis in launch.hypotheses:
        sides = {side: {g.why for g in hypothesis.grounds if g.side == side} for side in ("for", "against")}
        assert not sides["for"] & sides["against"], hypothesis.id


def test_what_was_not_seen_is_a_sentence() -> None:
    rule = knowledge().rules["deepgemm-jit-compile"]
    told = readable("deepgemm-jit-compile was not seen; args.tp_size is 4", {rule.id: rule})
    assert told == f"no line shows “{rule.title}”; --tp-size is 4"


def test_an_established_cause_leaves_no_hint_to_look_elsewhere() -> None:
    launch = analyze([str(CASES / "run-gpu-sched_sigkill/log.txt")]).launches[-1]
    assert launch.hypotheses[0].verdict == "established"
    assert not any(note.startswith(WAITED) for note in launch.notes)


def test_the_hint_stays_where_no_cause_is_established() -> None:
    launch = focus(diagnose([str(CASES / "run-gpu-sched_sigkill/log.txt")], knowledge()))
    assert any(note.startswith(WAITED) for note in launch.notes)


def test_compared_sizes_are_told_in_units_and_other_numbers_as_they_are() -> None:
    rules = knowledge().rules
    why = "the value is 1589137899.52, compared with 7505455349.760001"
    told = readable(why, rules, "memory-pool-end.avail < cuda-out-of-memory.total * 0.05")
    left, right = rules["memory-pool-end"].title, rules["cuda-out-of-memory"].title
    assert told == f"avail of “{left}” is 1.48 GB, total of “{right}” * 0.05 is 6.99 GB"
    share = readable(
        "the value is 1048576000, compared with 2",
        rules,
        "memory-pool-end.avail / cuda-out-of-memory.total < pool-leak.size",
    )
    assert f"is 1048576000, size of “{rules['pool-leak'].title}” is 2" in share


def test_numbers_of_one_line_are_told_as_such() -> None:
    rule = knowledge().rules["pool-leak"]
    told = readable(
        "the value is 422192, compared with 421888",
        {rule.id: rule},
        "pool-leak.available + pool-leak.evictable > pool-leak.size",
    )
    assert told == f"available + evictable is 422192, size is 421888, in “{rule.title}”"
    facts = readable("the value is 8, compared with 16", {}, "kv.tokens * args.page_size < kv.limit")
    assert facts == "kv.tokens * --page-size is 8, kv.limit is 16"


def test_how_often_is_grouped_however_often() -> None:
    rule = knowledge().rules["pool-leak"]
    assert readable("pool-leak was seen 12,345 times", {rule.id: rule}) == f"{rule.title} (12,345 times)"
