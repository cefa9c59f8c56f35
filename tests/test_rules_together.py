"""What rules ask of several matches, and captures that need arithmetic."""

from __future__ import annotations

import pytest
from rule_cases import signals_of, simple

from forensics.rulebook.derived import DERIVED

GIB = 2**30
DUMP = "[2026-05-01 10:00:00 TP{rank}] Scheduler debug info:\nscheduler.cur_batch.batch_size()={size}\n"
RID = "Received output for rid='{rid}' but the state was deleted in TokenizerManager."


def test_a_rule_that_wants_the_same_values_again_counts_each_value_by_itself() -> None:
    rule = simple("again", r"output for rid=.(?P<rid>\w+). but", captures="{rid: str}", min_same="3")
    lines = [f"[2026-05-01 10:00:{n:02}] {RID.format(rid=rid)}" for n, rid in enumerate("abcdaae")]
    found = signals_of("\n".join(lines) + "\n", rule)
    assert {dict(m.captures)["rid"] for m in found["again"].matches} == {"a"}
    assert found["again"].total == 3
    assert signals_of("\n".join(lines[:5]) + "\n", rule) == {}


@pytest.mark.parametrize(("sizes", "differ"), [((22, 22, 21), True), ((22, 22, 22), False), ((22,), False)])
def test_a_rule_can_ask_whether_ranks_show_different_values(sizes: tuple[int, ...], differ: bool) -> None:
    rule = simple(
        "unequal",
        r"batch_size\(\)=(?P<size>\d+)",
        kinds="[request-dump, text, message]",
        captures="{size: int}",
        differs="size",
    )
    text = "".join(DUMP.format(rank=rank, size=size) for rank, size in enumerate(sizes))
    assert ("unequal" in signals_of(text, rule)) is differ


@pytest.mark.parametrize(
    ("free", "named"),
    [
        (("78.81", "19.36"), {"TP1"}),
        (("78.81", "78.79"), set()),
        (("47.10",), set()),
        (("9.0", "9.1", "60.0"), {"TP0", "TP1"}),
    ],
)
def test_a_rule_can_name_the_ranks_that_lie_far_below_the_others(free: tuple[str, ...], named: set[str]) -> None:
    rule = simple(
        "short", r"begin\. avail mem=(?P<avail>[\d.]+ GB)", captures="{avail: size}", differs="avail", apart="75"
    )
    lines = [f"[2026-05-01 10:00:01 TP{n}] Load weight begin. avail mem={size} GB" for n, size in enumerate(free)]
    draft = [f"[2026-05-01 10:01:{n:02} TP{n}] Load weight begin. avail mem=3.10 GB" for n in range(len(free))]
    found = signals_of("\n".join(lines + draft) + "\n", rule)
    assert {str(m.rank) for m in found["short"].matches} == named if named else found == {}


@pytest.mark.parametrize(
    ("text", "own", "other"),
    [
        (
            "Process 7 has 60.00 GiB memory in use. Including non-PyTorch memory, this process has 9.00 GiB memory in use.",
            9,
            60,
        ),
        (
            "Process 7 has 69.00 GiB memory in use. Process 8 has 9.50 GiB memory in use. Of the allocated memory 9.00 GiB is allocated by PyTorch",
            9.5,
            69,
        ),
        (
            "Process 7 has 9.50 GiB memory in use. Process 8 has 69.00 GiB memory in use. Of the allocated memory 60.00 GiB is allocated by PyTorch",
            69,
            9.5,
        ),
    ],
)
def test_own_and_other_memory_are_told_by_what_torch_allocated(text: str, own: float, other: float) -> None:
    found = DERIVED["gpu-processes"](text)
    assert found is not None
    assert (found["own"], found["other"]) == (own * GIB, other * GIB)


def test_an_only_entry_is_the_process_itself() -> None:
    assert (
        DERIVED["gpu-processes"](
            "Process 7 has 79.00 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch"
        )
        is None
    )


@pytest.mark.parametrize(
    ("kind", "text", "counts"),
    [
        (
            "full",
            "memory leak detected! available_size=402, evictable_size=20, protected_size=0, self.max_total_num_tokens=421, held=3",
            (402, 20, 421),
        ),
        (
            "full",
            "memory leak detected! full_evictable_size=13, full_available_size=790, self.full_tokens_per_layer=803",
            (790, 13, 803),
        ),
        (
            "swa",
            "swa_available_size=107, swa_evictable_size=2, self.swa_tokens_per_layer=110, self.tree_cache.swa_protected_size()=0",
            (107, 2, 110),
        ),
        (
            "swa",
            "full_available_size=5, allocator.size_full=9, swa_available_size=1, swa_evictable_size=2, allocator.size_swa=3",
            (1, 2, 3),
        ),
    ],
)
def test_pools_are_read_from_pairs_in_any_order(kind: str, text: str, counts: tuple[int, int, int]) -> None:
    found = DERIVED[f"pool-{kind}"](text)
    assert found is not None
    assert tuple(found[name] for name in ("available", "evictable", "size")) == counts
