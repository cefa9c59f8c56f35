"""Rules over launches: kinds, refusals, surroundings, stages, captures, floods, caps, ranks."""

from __future__ import annotations

import numpy as np
import pytest
from rule_cases import launch_of, mark, rule, signals_of, simple, table_of

from forensics.rulebook import match as matching
from forensics.rulebook.captures import typed
from forensics.rulebook.match import match_rules
from forensics.rulebook.program import program_of
from forensics.schema.signal import Rule

HEAD = "[2026-01-05 10:00:0{} TP{}] "


def line(second: int, rank: int, text: str) -> str:
    return f"[2026-01-05 10:{second // 60:02}:{second % 60:02} TP{rank}] {text}"


TRACE = """[2026-01-05 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 300, in event_loop_overlap
    batch = self.get_next_batch_to_run()
  File "/opt/sglang/srt/layers/sampler.py", line 88, in forward
    torch.multinomial(probs)
RuntimeError: probs are broken

[2026-01-05 10:00:01 TP0] RuntimeError: probs are broken
"""


def test_a_rule_finds_its_line_and_rank() -> None:
    found = signals_of(line(0, 3, "the pool is broken") + "\n", simple("a", "pool is broken"))
    signal = found["a"]
    assert signal.total == 1 and not signal.capped
    assert str(signal.matches[0].rank) == "TP3"


def test_only_rules_that_match_are_signals() -> None:
    assert signals_of(line(0, 0, "all good") + "\n", simple("a", "broken")) == {}


def test_not_refuses_a_line() -> None:
    text = line(0, 0, "pool is broken in torch.compile") + "\n"
    assert signals_of(text, simple("a", "pool is broken", **{"not": "['torch\\.compile']"})) == {}


def test_kinds_limit_the_lines() -> None:
    text = "pool is broken\n" + line(1, 0, "WARNING x.py:3: pool is broken") + "\n"
    assert "a" in signals_of(text, simple("a", "pool is broken"))
    assert "b" not in signals_of(text, simple("b", "pool is broken", kinds="[cuda-assert]"))


def test_user_text_is_not_searched() -> None:
    text = line(0, 0, "Receive: obj=GenerateReqInput(text='CUDA out of memory')") + "\n"
    assert signals_of(text, simple("oom", "CUDA out of memory")) == {}
    assert "oom" in signals_of(text, simple("oom", "CUDA out of memory", kinds="[request-dump]"))


def test_innermost_asks_the_last_frame_of_the_exception() -> None:
    found = signals_of(
        TRACE,
        simple("innermost", "probs are broken", innermost="'sampler\\.py'"),
        simple("an-outer-one", "probs are broken", innermost="'scheduler\\.py'"),
    )
    assert [name for name, signals in found.items() if signals] == ["innermost"]


def test_frames_and_exception_ask_the_block() -> None:
    found = signals_of(
        TRACE,
        simple("frame", "probs are broken", frames="'sampler\\.py'"),
        simple("other-frame", "probs are broken", frames="'logits_processor\\.py'"),
        simple("type", "probs are broken", exception="RuntimeError"),
        simple("other-type", "probs are broken", exception="ValueError"),
    )
    assert [str(m.rank) for m in found["frame"].matches] == ["TP1"]
    assert "other-frame" not in found and "other-type" not in found
    assert found["type"].total == 2


def test_a_line_of_a_block_has_the_blocks_rank() -> None:
    found = signals_of(TRACE, simple("a", "probs are broken", frames="'sampler'"))
    assert found["a"].matches[0].block is not None
    assert str(found["a"].matches[0].rank) == "TP1"


def test_process_scope_has_no_rank() -> None:
    found = signals_of(line(0, 3, "child died") + "\n", simple("a", "child died", scope="process"))
    assert found["a"].matches[0].rank is None


def test_stages_use_the_marks() -> None:
    text = (
        "\n".join(
            [
                line(0, 0, "Load weight begin."),
                line(1, 0, "odd thing"),
                line(60, 0, "Load weight end."),
                line(61, 0, "odd thing"),
            ]
        )
        + "\n"
    )
    table, blocks = table_of(text)
    launch = launch_of(
        table,
        marks=(mark("load", "begin", 0, "TP0"), mark("graph-capture", "begin", 2, "TP0")),
        reached="graph-capture",
    )
    found = match_rules(
        [simple("a", "odd thing", stages="[load]"), simple("b", "odd thing", stages="[init]")], table, blocks, launch
    )
    assert [m.row for m in found["a"].matches] == [1]
    assert "b" not in found


def test_captures_are_typed_and_where_compares_them() -> None:
    text = line(0, 0, "leak: available=10, size=12, mem=1.5 GB, after 2 min on TP3") + "\n"
    pattern = r"leak: available=(?P<available>\d+), size=(?P<size>\d+), mem=(?P<mem>[\d.]+ \w+), after (?P<t>\d+ \w+) on (?P<who>\w+)"
    yaml = "captures: {available: int, size: int, mem: size, t: duration, who: rank}\nrole: root"
    made = [
        rule(f"id: {name}\ntitle: t\nmatch: {{any: ['{pattern}']}}\nwhere: '{where}'\n{yaml}")
        for name, where in [
            ("less", "available < size"),
            ("more", "available > size"),
            ("sum", "available + 2 >= size"),
        ]
    ]
    found = signals_of(text, *made)
    assert set(found) == {"less", "sum"}
    assert dict(found["less"].matches[0].captures) == {
        "available": 10,
        "size": 12,
        "mem": 1.5 * 2**30,
        "t": 120.0,
        "who": "TP3",
    }


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12", "int", 12),
        ("1,234", "int", 1234),
        ("1.5", "float", 1.5),
        ("abc", "int", None),
        ("3 GB", "size", 3 * 2**30),
        ("512MiB", "size", 512 * 2**20),
        ("7", "size", 7),
        ("3 parsecs", "size", None),
        ("300s", "duration", 300.0),
        ("5 min", "duration", 300.0),
        ("1:02:03", "duration", 3723.0),
        ("250ms", "duration", 0.25),
        ("DP0 TP3", "rank", "DP0 TP3"),
        (None, "int", None),
        ("-1", "int", -1),
        ("1e3", "float", 1000.0),
    ],
)
def test_types(text: str | None, kind: str, value: object) -> None:
    assert typed(text, kind) == value


def test_floods_fold() -> None:
    text = "".join(
        f"../aten/native/cuda/TensorCompare.cu:110: block: [{i},0,0], thread: [{i % 32},0,0] Assertion `probability tensor contains` failed.\n"
        for i in range(500)
    )
    found = signals_of(line(0, 0, "start") + "\n" + text, simple("a", "probability tensor contains"))
    assert found["a"].total == 500
    assert len(found["a"].matches) == 1 and found["a"].matches[0].count == 500


def test_a_long_flood_with_a_digit_in_the_pattern_counts_as_a_whole() -> None:
    text = "".join(f"thread: [{i},0,0] Assertion `element < 0` failed.\n" for i in range(9000))
    signal = signals_of(line(0, 0, "start") + "\n" + text, simple("a", "element < 0` failed"))["a"]
    assert signal.total == 9000 and len(signal.matches) <= 2 and not signal.capped


def test_a_flood_in_which_few_lines_match_is_read_line_by_line() -> None:
    text = "".join(f"thread {i}: code {7 if i == 300 else 3}\n" for i in range(900))
    signal = signals_of(line(0, 0, "start") + "\n" + text, simple("a", "code 7"))["a"]
    assert [m.row for m in signal.matches] == [301]


def test_a_pause_ends_a_flood() -> None:
    text = "".join(line(s, 0, "timeout again") + "\n" for s in (0, 0, 1, 30, 31, 59))
    found = signals_of(text, simple("a", "timeout again"))
    assert [m.count for m in found["a"].matches] == [3, 2, 1]
    assert found["a"].total == 6


def test_a_flood_that_goes_on_keeps_its_course_in_time() -> None:
    text = "".join(line(s, 0, "timeout again") + "\n" for s in range(60))
    found = signals_of(text, simple("a", "timeout again"))
    assert [m.count for m in found["a"].matches] == [10] * 6


def test_ranks_are_not_folded_together() -> None:
    text = "".join(line(0, r, "timeout again") + "\n" for r in (0, 1, 0, 1))
    found = signals_of(text, simple("a", "timeout again"))
    assert sorted((str(m.rank), m.count) for m in found["a"].matches) == [("TP0", 2), ("TP1", 2)]


def test_digits_that_a_pattern_asks_for_are_read_from_each_line() -> None:
    text = "".join(line(i, 0, f"crashed with exit code -{code}") + "\n" for i, code in enumerate([11, 9, 6]))
    found = signals_of(text, simple("killed", "exit code -9$"), simple("any", r"exit code -\d+"))
    assert [m.row for m in found["killed"].matches] == [1]
    assert found["any"].total == 3


def test_captures_of_each_line_are_kept() -> None:
    text = "".join(line(i, 0, f"used {n} GB") + "\n" for i, n in enumerate([1, 2, 2, 3])) + "\n"
    made = rule("id: a\ntitle: t\nmatch: {any: ['used (?P<n>\\d+) GB']}\ncaptures: {n: int}\nrole: info")
    found = signals_of(text, made)
    assert [(dict(m.captures)["n"], m.count) for m in found["a"].matches] == [(1, 1), (2, 2), (3, 1)]


def test_min_count() -> None:
    text = "".join(line(i * 9, 0, "retry") + "\n" for i in range(3))
    assert "a" in signals_of(text, simple("a", "retry", min_count="3"))
    assert "a" not in signals_of(text, simple("a", "retry", min_count="4"))


def test_matches_are_capped_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MAX_MATCHES", 8)
    text = "".join(line(i * 3, 0, "retry") + "\n" for i in range(50))
    signal = signals_of(text, simple("a", "retry"))["a"]
    assert signal.capped and len(signal.matches) == 8
    assert signal.matches[0].row == 0 and signal.matches[-1].row == 49


def test_only_the_launchs_rows_count() -> None:
    text = "".join(line(i, 0, "retry") + "\n" for i in range(4))
    table, blocks = table_of(text)
    launch = launch_of(table, rows=np.array([2, 3], np.int64))
    assert [m.row for m in match_rules([simple("a", "retry")], table, blocks, launch)["a"].matches] == [2]


def test_long_lines_that_differ_behind_the_shape_are_read_each() -> None:
    text = "".join(
        line(i * 5, 0, "prefix " + "x" * 600 + word) + "\n" for i, word in enumerate(["good", "pool is broken", "good"])
    )
    assert [m.row for m in signals_of(text, simple("a", "pool is broken"))["a"].matches] == [1]


def test_the_prefilter_gives_what_a_search_of_every_line_gives() -> None:
    """The combined prefilter against the plain definition, over a real log with all shipped rules."""
    from pathlib import Path

    from forensics.knowledge.store import load
    from forensics.rulebook.program import takes_kind

    root = Path(__file__).parent.parent
    rules = load().rules
    text = (root / "samples/cases/run-gpu2-tp2_nan/log.txt").read_text(errors="replace")
    table, blocks = table_of(text)
    found = match_rules(rules, table, blocks, launch_of(table))
    plain: dict[str, int] = {}
    for ready in program_of(rules).ready:
        made = ready.rule
        if _asks_more(made):
            continue
        rows = [
            r
            for r in range(len(table))
            if takes_kind(made, table.kind(r))
            and any(p.search(table.text(r)) for p in ready.patterns)
            and not any(p.search(table.text(r)) for p in ready.absent)
        ]
        if len(rows) >= made.min_count:
            plain[made.id] = len(rows)
    assert {k: v.total for k, v in found.items() if k in plain or not _asks_more(rules[k])} == plain


def _asks_more(made: Rule) -> bool:
    """Whether a rule asks for more than its text."""
    return bool(
        made.frames
        or made.innermost
        or made.exception
        or made.stages
        or made.where
        or made.differs
        or made.min_same > 1
    )


def test_the_program_is_made_once() -> None:
    rules = {"a": simple("a", "retry")}
    assert program_of(rules) is program_of(dict(rules))
