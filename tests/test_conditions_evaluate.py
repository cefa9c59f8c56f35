"""What conditions come to in a launch: Kleene logic, coverage, order, ranks, windows, facts, versions, attempts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from rule_cases import case_of, facts, failure, mark, ranks, rule, simple

from forensics.engine.table import Series
from forensics.rulebook.case import Case
from forensics.rulebook.evaluate import evaluate
from forensics.schema.facts import Fact, VersionInterval
from forensics.schema.rank import Rank
from forensics.schema.span import Span

A, B, C = simple("sig-a", "alpha happened"), simple("sig-b", "beta happened"), simple("sig-c", "gamma happened")
SIZE = rule(
    "id: pool\ntitle: t\nmatch: {any: ['pool has (?P<have>\\d+) of (?P<size>\\d+)']}\ncaptures: {have: int, size: int}\nrole: root"
)
NOTE = simple("note", "scale note", role="warning")
DONE = simple("load-end", "Load done", role="progress")
PROC = simple("child-died", "child died", scope="process")
OLD = simple("old-wording", "old wording", lifetime='{last: "0.5.6"}')
NEW = simple("new-wording", "new wording", lifetime='{first: "0.5.7"}')
RULES = (A, B, C, SIZE, NOTE, DONE, PROC, OLD, NEW)


def line(second: int, rank: int, text: str) -> str:
    return f"[2026-01-05 10:{second // 60:02}:{second % 60:02} TP{rank}] {text}"


LOG = (
    "\n".join(
        [
            line(0, 0, "alpha happened"),
            line(1, 1, "alpha happened"),
            line(5, 1, "beta happened"),
            line(6, 0, "pool has 5 of 9"),
            line(7, 1, "pool has 9 of 9"),
            line(8, 0, "end"),
        ]
    )
    + "\n"
)
TWO = ranks("TP0", "TP1")


def case(text: str = LOG, **more) -> Case:
    more.setdefault("expected", TWO)
    return case_of(text, *RULES, **more)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("sig-a", True),
        ("sig-c", False),
        ("not sig-c", True),
        ("sig-a and sig-c", False),
        ("sig-a or sig-c", True),
        ("sig-a before sig-b", True),
        ("sig-b before sig-a", False),
        ("sig-a before sig-c", False),
        ("sig-a on every rank", True),
        ("sig-b on every rank", False),
        ("sig-b on some rank", True),
        ("sig-b on one rank", True),
        ("sig-a on one rank", False),
        ("sig-b on rank TP1", True),
        ("sig-b on rank TP0", False),
        ("sig-a before sig-b on rank TP1", True),
        ("sig-a before sig-b on every rank", False),
        ("sig-a before sig-b on some rank", True),
        ("child-died on every rank", False),
        ("pool.have < pool.size", True),
        ("pool.have > pool.size", False),
        ("pool.have + 4 = pool.size", True),
        ("pool.size - pool.have >= 4 and pool.have * 2 > pool.size", True),
        ("pool.size / 0 > 1", None),
        ("count sig-a >= 2", True),
        ("count sig-a >= 3", False),
        ("count sig-a >= 2 within 2s", True),
        ("count sig-c = 0", True),
        ("count pool >= 2 within 0.5s", False),
        ("count sig-a on rank TP0 = 1", True),
        ("absent sig-c", True),
        ("absent sig-a", False),
        ("absent sig-c on rank TP1", True),
        ("first failure has sig-a", False),
        ("symptom garbage", False),
        ("stage reached load", True),
        ("ended = crashed", True),
        ("ended in {hung, killed}", False),
        ("ended != hung", True),
        ("known args.tp_size", False),
        ("silence > 1s", False),
    ],
)
def test_what_conditions_come_to(condition: str, value: bool | None) -> None:
    outcome = evaluate(condition, case())
    assert outcome.value is value, outcome
    assert outcome.why or outcome.parts


def test_witnesses_are_places_in_the_log() -> None:
    outcome = evaluate("sig-b and pool.have < pool.size", case())
    assert {w.line for w in outcome.witnesses} == {3, 4}
    assert all(w.column > 1 for w in outcome.witnesses)


def test_the_match_that_satisfies_a_comparison_is_named() -> None:
    assert [w.line for w in evaluate("pool.have = pool.size", case()).witnesses] == [5]


def test_unknown_is_neither() -> None:
    assert evaluate("args.tp_size = 8", case()).value is None
    assert evaluate("not args.tp_size = 8", case()).value is None
    assert evaluate("args.tp_size = 8 or sig-a", case()).value is True
    assert evaluate("args.tp_size = 8 and sig-c", case()).value is False
    mixed = evaluate("args.tp_size = 8 and sig-a", case())
    assert mixed.value is None and "args.tp_size" in mixed.why and mixed.settle


@pytest.mark.parametrize(
    ("condition", "settle"),
    [
        ("gpu.sm = 120", "check_env"),
        ("env.NCCL_DEBUG = INFO", "environ"),
        ("version.torch < 2.9", "check_env"),
        ("version.sglang < 0.5.10", "__version__"),
        ("args.tp_size = 8", "server_args"),
        ("weights.dtype = fp8", "config.json"),
        ("tried --foo=1 and same failure", "relaunch"),
        ("series throughput falls", "batch lines"),
        ("kv.dtype = fp8", "KV Cache"),
    ],
)
def test_an_unknown_says_what_would_settle_it(condition: str, settle: str) -> None:
    outcome = evaluate(condition, case())
    assert outcome.value is None and settle in outcome.settle


def test_every_part_can_be_explained() -> None:
    outcome = evaluate("not (sig-a and sig-c) or args.x", case())
    assert [p.text for p in outcome.parts] == ["not (sig-a and sig-c)", "args.x"]
    assert outcome.parts[0].parts[0].parts[1].text == "sig-c"


# -- coverage ------------------------------------------------------------------------------------------------------


def test_a_cut_head_hides_notes_but_no_fatal_fault() -> None:
    cut = case(truncated_head=True)
    assert evaluate("note", cut).value is None
    assert evaluate("sig-c", cut).value is False
    assert evaluate("absent note", cut).value is None


def test_an_open_end_hides_progress() -> None:
    assert evaluate("load-end", case(ended="log-ends", reached="load")).value is None
    assert evaluate("absent load-end", case(ended="log-ends", reached="load")).value is None
    assert evaluate("load-end", case(ended="crashed", reached="load")).value is False
    assert evaluate("load-end", case(ended="running", reached="serving")).value is False


def test_a_message_that_the_release_does_not_print_proves_nothing() -> None:
    new = case(version=VersionInterval("0.5.9", "0.5.9"))
    assert evaluate("old-wording", new).value is None
    assert evaluate("new-wording", new).value is False
    assert evaluate("old-wording or new-wording", new).value is False
    assert evaluate("absent old-wording", new).value is None
    partly = case(version=VersionInterval("0.5.4", None))
    assert evaluate("old-wording", partly).value is False
    assert evaluate("old-wording", case()).value is False


def test_an_unseen_rank_makes_every_unknown() -> None:
    four = case(expected=ranks("TP0", "TP1", "TP2", "TP3"))
    outcome = evaluate("sig-a on every rank", four)
    assert outcome.value is None and "TP2" in outcome.why
    assert evaluate("sig-b on every rank", four).value is False
    assert evaluate("sig-a on rank TP3", four).value is None
    assert evaluate("absent sig-a on rank TP3", four).value is None


def test_labels_of_other_axes_name_the_same_rank() -> None:
    wide = case(expected=ranks("DP0 TP0 EP0", "DP0 TP1 EP1"))
    assert evaluate("sig-a on every rank", wide).value is True


def test_lines_without_rank_leave_quantifiers_open() -> None:
    text = "[2026-01-05 10:00:00] alpha happened\n" + LOG.split("\n")[5] + "\n"
    bare = case(text)
    assert evaluate("sig-a", bare).value is True
    assert evaluate("sig-a on some rank", bare).value is True
    assert evaluate("sig-a on every rank", bare).value is None
    assert evaluate("sig-a on rank TP0", bare).value is None


def test_an_unknown_rule_is_unknown() -> None:
    assert evaluate("no-such-rule", case()).value is None
    assert evaluate("absent no-such-rule", case()).value is None


# -- the failing rank, stages, first failure ----------------------------------------------------------------------


def test_the_failing_rank() -> None:
    at = case(failures=(failure(2, "TP1", signals=("sig-b",)),), first_failure="F1")
    assert evaluate("sig-b on the failing rank", at).value is True
    assert evaluate("sig-c on the failing rank", at).value is False
    assert evaluate("absent sig-c on the failing rank", at).value is True
    assert evaluate("first failure has sig-b", at).value is True
    assert evaluate("first failure has sig-a", at).value is False
    assert evaluate("stage = decode", at).value is True
    assert evaluate("stage in {prefill, warmup}", at).value is False
    assert evaluate("stage != decode", at).value is False
    unranked = case(failures=(failure(2, None, stage="unknown", reporters=TWO),), first_failure="F1")
    assert evaluate("sig-b on the failing rank", unranked).value is None
    assert evaluate("stage = decode", unranked).value is None
    suspect = case(failures=(failure(2, None, suspect_ranks=TWO[1:]),), first_failure="F1")
    assert evaluate("sig-b on the failing rank", suspect).value is True


def test_the_first_failure_is_matched_by_rows_too() -> None:
    at = case(failures=(failure(3, "TP0"),), first_failure="F1")
    assert evaluate("first failure has pool", at).value is True


def test_how_far_it_got() -> None:
    load = case(reached="load", marks=(mark("load", "begin", 0),))
    assert evaluate("stage reached load", load).value is True
    assert evaluate("stage reached warmup", load).value is False
    assert evaluate("stage reached warmup", case(reached="load", truncated_head=True)).value is None


# -- facts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("args.quantization = fp8", True),
        ("args.quantization != fp8", False),
        ("args.quantization in {awq, fp8}", True),
        ("args.quantization not in {awq, fp8}", False),
        ("args.tp_size >= 8", True),
        ("args.tp_size < 8", False),
        ("args.tp_size = 8", True),
        ("args.enable_dp_attention", True),
        ("args.disable_cuda_graph", False),
        ("args.moe_backend", False),
        ("args.moe_backend = none", True),
        ("args.enable_dp_attention = true", True),
        ('args.attention_backend ~ "trt.*mla"', True),
        ('args.attention_backend ~ "^mla"', False),
        ("env.SGLANG_X = 0", True),
        ("env.SGLANG_X = false", True),
        ("env.SGLANG_X = 1", False),
        ("env.SGLANG_X", False),
        ("env.NAME = abc", True),
        ("gpu.memory_gb > 79.5", True),
        ("gpu.capability = 12.0", True),
        ("version.torch >= 2.10", False),
        ("version.torch < 2.10", True),
        ("version.torch = 2.9.1", True),
        ("kv.dtype = torch.bfloat16", True),
        ("args.quantization < 3", None),
        ("known args.tp_size", True),
        ("pool.size < args.tp_size", False),
        ("pool.have < args.tp_size", True),
        ("args.tp_size * 2 = 16", True),
        ('args.cuda_graph_bs ~ "16"', True),
    ],
)
def test_facts(condition: str, value: bool | None) -> None:
    known = facts(
        args__quantization="fp8",
        args__tp_size=8,
        args__enable_dp_attention=True,
        args__disable_cuda_graph=False,
        args__moe_backend=None,
        args__attention_backend="trtllm_mla",
        env__SGLANG_X="0",
        env__NAME="abc",
        gpu__memory_gb=80.0,
        gpu__capability=12.0,
        version__torch="2.9.1+cu128",
        kv__dtype="torch.bfloat16",
        args__cuda_graph_bs=(8, 16),
    )
    outcome = evaluate(condition, case(facts=known))
    assert outcome.value is value, outcome


def test_facts_have_their_places() -> None:
    where = Span("server.log", 7, 12)
    outcome = evaluate("args.tp_size = 4", case(facts={"args.tp_size": Fact("args.tp_size", 8, where)}))
    assert outcome.value is False and outcome.witnesses == (where,)


def test_a_full_dump_tells_that_an_argument_does_not_exist() -> None:
    dump = facts(**{f"args__f{i}": i for i in range(50)})
    full = case(facts=dump)
    assert evaluate("args.new_backend = triton", full).value is False
    assert evaluate("args.new_switch", full).value is False
    assert evaluate("args.new_backend != triton", full).value is True
    assert evaluate("env.X = 1", full).value is None


@pytest.mark.parametrize(
    ("interval", "condition", "value"),
    [
        (VersionInterval("0.5.7", "0.5.9"), "version.sglang < 0.5.10", True),
        (VersionInterval("0.5.7", "0.5.9"), "version.sglang < 0.5.8", None),
        (VersionInterval("0.5.11"), "version.sglang < 0.5.10", False),
        (VersionInterval(exact="0.5.8"), "version.sglang = 0.5.8", True),
        (VersionInterval(), "version.sglang >= 0.5.8", None),
        (VersionInterval("0.5.7", "0.5.9"), "version.sglang in {0.5.8, 0.5.9}", None),
    ],
)
def test_versions_compare_over_the_interval(interval: VersionInterval, condition: str, value: bool | None) -> None:
    assert evaluate(condition, case(version=interval)).value is value


# -- time, series, attempts, symptom -------------------------------------------------------------------------------


def test_silence() -> None:
    start = evaluate("sig-a", case()).witnesses and case().table.time_of(0)
    assert start is not None
    quiet = case(silences=((Rank.parse("TP1"), start + 1, start + 701), (None, start + 7, start + 60)))
    assert evaluate("silence > 9min on some rank", quiet).value is True
    assert evaluate("silence > 9min on rank TP0", quiet).value is False
    assert evaluate("silence > 9min on rank TP1", quiet).value is True
    assert evaluate("silence > 9min on some rank before sig-b", quiet).value is True
    assert evaluate("silence > 50s before sig-b", quiet).value is True
    assert evaluate("silence > 20min", quiet).value is False
    assert evaluate("silence > 9min before sig-c", quiet).value is False
    assert evaluate("silence > 1s", case("alpha happened\nend\n")).value is None


def series(kind: str, **columns: list[float]) -> Series:
    size = len(next(iter(columns.values())))
    whole = np.arange(size, dtype=np.int64)
    return Series(
        kind,
        np.ones(size, np.int64),
        np.zeros(size, np.int16),
        whole + 1,
        whole.astype(float),
        np.zeros(size, np.int16),
        {k: np.array(v, float) for k, v in columns.items()},
    )


def test_series() -> None:
    at = case()
    at.table.series["decode"] = series(
        "decode", throughput=[100.0] * 4 + [60.0] * 4 + [20.0] * 4, accept_len=[1.0] * 12, queue=[1.0] * 12
    )
    at.table.series["prefill"] = series("prefill", cached_tokens=[0.0, 0.0, 5.0])
    assert evaluate("series throughput falls", at).value is True
    assert evaluate("series throughput rises", at).value is False
    assert evaluate("series queue falls", at).value is False
    assert evaluate("series accept_len <= 1.05", at).value is True
    assert evaluate("series cached_tokens = 0", at).value is True
    assert evaluate("series cached_tokens falls", at).value is None
    assert evaluate("series cuda_graph = 0", at).value is None
    at.table.series["decode"] = series("decode", cuda_graph=[1.0, 1.0, 0.0])
    assert evaluate("series cuda_graph > 0 and series cuda_graph < 1", at).value is True


def test_tried() -> None:
    here = (failure(2, "TP1", mechanism="assert"),)
    same = case(facts=facts(args__fp8_gemm_runner_backend="cutlass"), failures=here, first_failure="F1")
    clean = case(facts=facts(args__disable_cuda_graph=True, env__X="0"))
    now = replace(case(failures=here, first_failure="F1"), earlier=(same, clean))
    assert evaluate("tried --fp8-gemm-backend=cutlass and same failure", now).value is True
    assert evaluate("tried --fp8-gemm-backend=triton and same failure", now).value is False
    assert evaluate("tried --disable-cuda-graph and same failure", now).value is False
    assert evaluate("tried --disable-cuda-graph and no failure", now).value is True
    assert evaluate("tried X=0", now).value is True
    assert evaluate("tried X=0 and same failure", case()).value is None


def test_symptom() -> None:
    stated = case_of(LOG, *RULES, symptom="garbage")
    assert evaluate("symptom garbage", stated).value is True
    assert evaluate("symptom hang", stated).value is False
    assert "--symptom" in evaluate("symptom hang", case()).settle


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("pool.have = 5", "have of pool is 5"),
        ("pool.have = 7", "have of pool is 5, not 7"),
        ("pool.size != 8", "size of pool is 9, not 8"),
        ("pool.have > 4", "have of pool is 5, above 4"),
        ("pool.have >= 10", "have of pool is 5, not at least 10"),
        ("pool.have < 1 KB", "have of pool is 0.004883 KB, below 1 KB"),
    ],
)
def test_a_captured_value_is_told_by_its_name(condition: str, why: str) -> None:
    assert evaluate(condition, case()).why == why
