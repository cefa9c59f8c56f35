"""What conditions come to in a launch: Kleene logic, coverage, order, ranks, facts, versions, captured values."""

from __future__ import annotations

import pytest
from condition_cases import LOG, TWO, case
from rule_cases import facts, failure, mark, ranks

from forensics.rulebook.evaluate import evaluate
from forensics.schema.facts import Fact, VersionInterval
from forensics.schema.span import Span


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
