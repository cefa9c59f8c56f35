"""The language of conditions: what parses, what it means, canonical text, errors with carets."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.errors import ConditionError
from forensics.grammar import condition_tree as t
from forensics.grammar.condition_text import format_condition
from forensics.grammar.condition_tree import names
from forensics.grammar.conditions import parse_condition, parse_where
from forensics.schema.span import Span

EXAMPLES = [
    "nan-probabilities",
    "deepgemm-scale-format before nan-probabilities",
    "a before b on every rank",
    "a-b on some rank",
    "a-b on one rank",
    "a-b on rank DP0 TP3",
    "a-b on the failing rank",
    "absent load-weight-end on the failing rank",
    "pool-leak.available + pool-leak.evictable < pool-leak.size",
    "a.x * 2 - (a.y - 1) / 3 >= 4 GB",
    "args.quantization = modelopt_fp4",
    "args.quantization in {modelopt_fp4, fp8} and not env.SGLANG_ENABLE_JIT_DEEPGEMM = 0",
    'args.x not in {a, "b c"}',
    'args.attention_backend ~ "trt.*mla"',
    "args.enable_dp_attention",
    "known env.NCCL_DEBUG",
    "version.sglang < 0.5.10",
    "version.torch >= 2.9",
    "count collective-timeout >= 3 within 60s",
    "count collective-timeout on the failing rank > 1",
    "silence > 9min on some rank before collective-timeout",
    "symptom garbage",
    "stage reached warmup",
    "stage = decode",
    "stage != decode",
    "stage in {prefill, decode}",
    "ended not in {hung, killed}",
    "first failure has nan-probabilities",
    "tried --fp8-gemm-backend=cutlass and same failure",
    "tried --disable-cuda-graph and no failure",
    "tried SGLANG_X=0 and a",
    "series throughput falls",
    "series accept_len <= 1.05",
    "not (a and b) or c and not d",
    "kv.dtype = torch.bfloat16",
    "args.max_running_requests = -1",
    "acme/foo and acme/foo.bar > 3",
]


@pytest.mark.parametrize("text", EXAMPLES)
def test_examples_are_canonical(text: str) -> None:
    node = parse_condition(text)
    assert format_condition(node) == text
    assert parse_condition(format_condition(node)) == node


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a  and   (b)", "a and b"),
        ("(a or b) or c", "a or b or c"),
        ("args.x == 3", "args.x = 3"),
        ("not not a", "not not a"),
        ("((a))", "a"),
        ('args.x = "fp8"', "args.x = fp8"),
        ("a and (b or c)", "a and (b or c)"),
        ("(a before b)", "a before b"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    node = parse_condition(text)
    made = format_condition(node)
    assert parse_condition(made) == node
    assert made == canonical


def test_precedence_is_not_and_or() -> None:
    node = parse_condition("not a and b or c")
    assert isinstance(node, t.Or) and isinstance(node.parts[0], t.And) and isinstance(node.parts[0].parts[0], t.Not)


def test_units_are_scaled() -> None:
    node = parse_condition("count a-b >= 3 within 2 min")
    assert isinstance(node, t.Count) and node.within is not None and node.within.value == 120.0
    node = parse_condition("a.x < 1.5 GB")
    assert isinstance(node, t.Compare) and isinstance(node.right, t.Quantity) and node.right.value == 1.5 * 2**30


def test_words_that_begin_like_keywords_are_signals() -> None:
    node = parse_condition("index-out-of-bounds and on-foo or order-x and not-a-number and in-flight")
    assert {s for s, _ in names(node).signals} == {
        "index-out-of-bounds",
        "on-foo",
        "order-x",
        "not-a-number",
        "in-flight",
    }


def test_names() -> None:
    used = names(
        parse_condition("a-b and c-d.x < 3 and args.tp_size = 2 and tried --foo=1 and silence > 3s before e-f")
    )
    assert {s for s, _ in used.signals} == {"a-b", "c-d", "e-f"}
    assert [(s, c) for s, c, _ in used.captures] == [("c-d", "x")]
    assert [f for f, _ in used.facts] == ["args.tp_size"]
    assert [f for f, _ in used.flags] == ["--foo"]


@pytest.mark.parametrize(
    ("text", "column", "said"),
    [
        ("a and", 6, "too early"),
        ("a b", 3, "cannot stand"),
        ("args.x = 'a'", 10, "cannot stand"),
        ("a + 3", 1, "no condition"),
        ("foo < 3", 1, "no value"),
        ("stage < load", 7, "no meaning"),
        ("a on evry rank", 6, "cannot stand"),
        ("symptom foo", 9, "no symptom"),
        ("(a", 3, "too early"),
        ("nan_prob", 1, "no signal name"),
        ("3 < 4", 1, "constants"),
        ("known foo", 7, "no fact"),
        ("", 1, "too early"),
        ("a && b", 3, "cannot stand"),
        ("a before 3", 10, "no condition"),
        ("a-b.x", 1, "capture, not a signal"),
        ('args.x ~ "(?=a)"', 10, "not RE2"),
        ("a.x + foo < 3", 7, "no value"),
        ("x" * 3000, 1, "too long"),
    ],
)
def test_errors_point_at_the_word(text: str, column: int, said: str) -> None:
    with pytest.raises(ConditionError) as error:
        parse_condition(text)
    assert said in error.value.message
    assert error.value.span is not None and error.value.span.column == column
    assert error.value.hint or text == "a b"


def test_errors_point_into_the_file() -> None:
    line = "    - args.tp_size >"
    with pytest.raises(ConditionError) as error:
        parse_condition("args.tp_size >", Span("kb/findings/x.md", 12, 7), line)
    assert str(error.value.span) == "kb/findings/x.md:12:21"
    assert error.value.render().split("\n")[2].index("^") - 4 == 20


def test_where_is_one_comparison_over_captures() -> None:
    node = parse_where("available + 2 < size", {"available", "size"})
    assert node.op == "<"
    for text in ("available", "available < total", "available < size and size > 1", "nope.x < 3"):
        with pytest.raises(ConditionError):
            parse_where(text, {"available", "size"})


SIGNALS = st.sampled_from(["a-b", "nan-probabilities", "acme/x-y", "collective-timeout"])
FACTS = st.sampled_from(["args.tp_size", "gpu.family", "env.NCCL_DEBUG", "kv.dtype"])
VALUES = st.sampled_from(["fp8", "torch.bfloat16", "0.5.10", "a b", 'q"uote', "and", "in", "8bit", "--flag", "a,b"])
QUANTIFIERS = st.one_of(
    st.none(),
    st.sampled_from(["every", "some", "one", "failing"]).map(t.Quantifier),
    st.just(t.Quantifier("named", "DP0 TP3")),
)
NUMBERS = st.sampled_from([("3", 3.0), ("1.5 GB", 1.5 * 2**30), ("90s", 90.0), ("-1", -1.0)]).map(
    lambda p: t.Quantity(p[1], p[0])
)
COUNTS = st.sampled_from([("3", 3.0), ("60s", 60.0)]).map(lambda p: t.Quantity(p[1], p[0]))
OPS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
CAPTURES = st.tuples(SIGNALS, st.sampled_from(["x", "size_gb"])).map(lambda p: t.CaptureRef(*p))
TERMS = st.recursive(
    st.one_of(CAPTURES, NUMBERS.filter(lambda q: q.value > 0)),
    lambda s: st.builds(t.Arithmetic, st.sampled_from("+-*/"), s, s),
    max_leaves=4,
).filter(lambda x: not isinstance(x, t.Quantity))
LEAVES = st.one_of(
    st.builds(t.Seen, SIGNALS, QUANTIFIERS),
    st.builds(t.Absent, SIGNALS, QUANTIFIERS),
    st.builds(lambda a, b, q: t.Before(t.Seen(a), t.Seen(b), q), SIGNALS, SIGNALS, QUANTIFIERS),
    st.builds(t.Compare, OPS, FACTS.map(t.FactRef), st.one_of(NUMBERS, VALUES.map(t.Text))),
    st.builds(t.Compare, OPS, TERMS, st.one_of(NUMBERS, CAPTURES)),
    st.builds(
        t.Member, FACTS.map(t.FactRef), st.lists(VALUES.map(t.Text), min_size=1, max_size=3).map(tuple), st.booleans()
    ),
    st.builds(t.Search, FACTS.map(t.FactRef), st.sampled_from(["a.*b", r"\d+\.", 'x"y', r"\\"])),
    st.builds(t.Truth, FACTS),
    st.builds(t.Known, FACTS),
    st.builds(t.Count, SIGNALS, OPS, COUNTS, st.one_of(st.none(), COUNTS), QUANTIFIERS),
    st.builds(t.Silence, OPS, COUNTS, QUANTIFIERS, st.one_of(st.just(""), SIGNALS)),
    st.builds(t.Symptom, st.sampled_from(["hang", "garbage"])),
    st.builds(t.Reached, st.sampled_from(["load", "serving"])),
    st.builds(t.State, st.just("stage"), st.sampled_from([("decode",), ("load", "idle")]), st.booleans()),
    st.builds(t.FirstFailureHas, SIGNALS),
    st.builds(
        t.Tried,
        st.just("--foo-bar"),
        st.one_of(st.none(), st.sampled_from(["1", "a b"])),
        st.sampled_from(["", "same", "none"]),
    ),
    st.builds(t.Trend, st.just("throughput"), st.sampled_from(["falls", "rises"])),
    st.builds(t.Level, st.just("accept_len"), OPS, COUNTS),
)


def flat(cls: type):
    """And/Or as the parser makes them: no part of the same kind."""
    return lambda parts: cls(tuple(parts))


NODES = st.recursive(
    LEAVES,
    lambda s: st.one_of(
        s.map(t.Not),
        st.lists(s.filter(lambda n: not isinstance(n, t.And)), min_size=2, max_size=3).map(flat(t.And)),
        st.lists(s.filter(lambda n: not isinstance(n, t.Or)), min_size=2, max_size=3).map(flat(t.Or)),
    ),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None)
@given(NODES)
def test_printing_and_parsing_give_the_tree_back(node: t.Node) -> None:
    assert parse_condition(format_condition(node)) == node


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from(list('ab-. ()<>=~{},"019 andortNI/é\n')), max_size=40))
def test_any_text_parses_or_is_refused_with_a_place(text: str) -> None:
    try:
        parse_condition(text)
    except ConditionError as error:
        assert error.span is not None and 1 <= error.span.column <= len(text) + 1
        error.render()
