"""Verdicts, sanity checks and delta debugging as pure functions."""

import json

import pytest

from forensics.errors import ReplayError
from forensics.replay.edits import Change
from forensics.replay.minimal import minimal
from forensics.replay.probe import PROMPTS, Check, judge_load, judge_sanity, read_recorded, sanity_requests
from forensics.replay.run import Outcome
from forensics.replay.verify import Failing, judge

GOOD = Outcome("answered", "it answered", None, (Check("x", True, ""),))
DEAD = Outcome("died", "the server ended", None)
BAD = Outcome("answered", "", None, (Check("no answer is empty", False, "8 of 8"),))
SLOW = Outcome("timeout", "it stayed in stage load", None)
BEFORE = Failing("fp16-overflow", "RuntimeError: probability", "decode", frozenset({"nan-probabilities"}))


@pytest.mark.parametrize(
    ("fixed", "control", "word"),
    [
        (GOOD, None, "passes"),
        (GOOD, DEAD, "fixed"),
        (GOOD, GOOD, "not-reproduced"),
        (GOOD, SLOW, "inconclusive"),
        (GOOD, BAD, "fixed"),
        (SLOW, None, "inconclusive"),
        (DEAD, None, "different-failure"),
        (BAD, None, "still-failing"),
    ],
)
def test_verdict_words(fixed, control, word):
    assert judge(BEFORE, fixed, control).word == word


def test_a_launch_that_hangs_where_the_log_hung_fails_as_before():
    hung = Failing(None, "", "load", frozenset(), hung=True)
    again = Outcome("timeout", "it stayed in stage load for more than 60 s", None, reached="load")
    later = Outcome("timeout", "it stayed in stage warmup", None, reached="warmup")
    assert judge(hung, again, None).word == "still-failing"
    assert judge(hung, GOOD, again).word == "fixed"
    assert judge(hung, later, again).word == "inconclusive"
    assert judge(hung, GOOD, later).word == "inconclusive"
    assert judge(BEFORE, again, None).word == "inconclusive"


def test_the_same_failure_is_one_mechanism_signal_or_cause():
    assert BEFORE.same_as(Failing(None, "RuntimeError: probability", "prefill", frozenset()))
    assert BEFORE.same_as(Failing(None, "other", "decode", frozenset({"nan-probabilities"})))
    assert BEFORE.same_as(Failing("fp16-overflow", "other", "decode", frozenset()))
    assert not BEFORE.same_as(Failing("other", "other", "decode", frozenset()))


def reply(text: str, logprobs=(-0.1, -2.0)) -> dict:
    body = {"choices": [{"text": text, "logprobs": {"token_logprobs": list(logprobs)}}]}
    return {"status": 200, "text": json.dumps(body), "seconds": 0.1}


def sane() -> list[dict]:
    """Two greedy rounds with the flush between them, then sampled answers."""
    return [
        reply(f"answer {n % (len(PROMPTS) + 1)} with several different words") for n in range(len(sanity_requests("m")))
    ]


def held(results) -> dict[str, bool]:
    return {check.name: check.held for check in judge_sanity(results)}


def test_sane_answers_pass():
    assert all(held(sane()).values())


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("", "no answer is empty"),
        ("!" * 40, "no answer is one repeated token"),
        ("ab " * 20, "no answer is one repeated token"),
    ],
)
def test_a_silent_failure_is_seen(text, check):
    results = sane()
    results[0] = reply(text)
    assert not held(results)[check]


def test_nan_in_log_probabilities_and_unstable_greedy_answers_are_seen():
    results = sane()
    results[0] = reply("answer 0 with several different words", (float("nan"),))
    assert not held(results)["log probabilities are finite"]
    assert held(results)["greedy answers are stable"]
    for n in range(3):
        results[n] = reply(f"other words {n}")
    assert not held(results)["greedy answers are stable"]


def test_an_unanswered_request_is_seen():
    results = [*sane()[:-1], None]
    assert not held(results)["every request is answered"]
    assert not judge_load([None])[0].held
    assert len(sanity_requests("m")) == 3 * len(PROMPTS) + 1


def flags(*names: str) -> list[Change]:
    return [Change("flag", "set", f"--{name}") for name in names]


@pytest.mark.parametrize("needed", [{"a"}, {"c"}, {"a", "d"}, {"b", "c", "e"}, {"a", "b", "c", "d", "e", "f"}])
def test_delta_debugging_finds_exactly_what_is_needed_and_asks_nothing_twice(needed):
    asked: list[tuple[str, ...]] = []

    def passes(subset):
        names = tuple(change.name[2:] for change in subset)
        assert names not in asked
        asked.append(names)
        return needed <= set(names)

    least, known = minimal(flags("a", "b", "c", "d", "e", "f"), passes)
    assert known and {change.name[2:] for change in least} == needed


def test_minimising_a_failing_set_is_refused():
    with pytest.raises(ReplayError):
        minimal(flags("a", "b"), lambda subset: False)


def test_recorded_requests_are_read_with_the_line_of_a_bad_one(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text('{"prompt": "x"}\n\n{"messages": []}\n{"path": "/generate", "body": {"text": "x"}}\n')
    assert [r["path"] for r in read_recorded(path)] == ["/v1/completions", "/v1/chat/completions", "/generate"]
    path.write_text('{"prompt": "x"}\nnot json\n')
    with pytest.raises(ReplayError, match=r"r\.jsonl:2"):
        read_recorded(path)
