"""The arithmetic of messages: pure functions with known sums."""

from __future__ import annotations

import pytest

from forensics.timeline import arithmetic
from forensics.timeline.arithmetic import Pool

LEAK = (
    "ValueError: token_to_kv_pool_allocator memory leak detected! full_available_size=6016, full_evictable_size=390685, "
    "self.token_to_kv_pool_allocator.size=396701, self.tree_cache.full_protected_size()=0\n"
    "mamba_available_size=315, mamba_evictable_size=138, self.req_to_token_pool.mamba_pool.size=454, "
    "self.tree_cache.mamba_protected_size()=0, leaked_full_pages=None, leaked_mamba_pages={317}"
)


def test_leak_message_names_one_pool_but_the_other_one_lost_a_slot() -> None:
    full, mamba = arithmetic.pools(LEAK)
    assert (full.name, full.difference) == ("full", 0)
    assert (mamba.name, mamba.difference) == ("mamba", -1)
    assert "balances" in arithmetic.leak_reading(full)
    assert "1 lost" in arithmetic.leak_reading(mamba)


def test_more_than_the_size_is_a_double_free() -> None:
    assert "324984 freed twice" in arithmetic.leak_reading(Pool("full", 2864304, 325120, 0, 2864440))


@pytest.mark.parametrize(("evictable", "difference"), [(201000, 1000), (200000, 0), (199000, -1000)])
def test_the_size_by_its_plain_names(evictable: int, difference: int) -> None:
    parts = f"available_size=300000, evictable_size={evictable}, protected_size=0"
    for text in (
        f"leak detected! {parts}, self.max_total_num_tokens=500000",
        f"self.max_total_num_tokens=500000, {parts}",
    ):
        (pool,) = arithmetic.pools(text)
        assert (pool.name, pool.difference) == ("full", difference)
    window = (
        "self.full_tokens_per_layer=900, full_available_size=900, self.swa_tokens_per_layer=80, swa_available_size=79"
    )
    assert [(p.name, p.difference) for p in arithmetic.pools(window)] == [("full", 0), ("swa", -1)]


def test_short_form_of_the_pool_line() -> None:
    (pool,) = arithmetic.pools("[full] total=65536, available=65312, evictable=155, protected=63, session_held=0")
    assert pool == Pool("full", 65312, 155, 63, 65536)
    assert pool.difference == -6


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (-9, "SIGKILL"),
        (-11, "SIGSEGV"),
        (-6, "SIGABRT"),
        (-7, "SIGBUS"),
        (-15, "SIGTERM"),
        (137, "SIGKILL"),
        (139, "SIGSEGV"),
        (143, "SIGTERM"),
    ],
)
def test_exit_codes_of_signals(code: int, word: str) -> None:
    assert word in arithmetic.exit_reading(code)


@pytest.mark.parametrize("code", [1, 2, 255])
def test_exit_codes_of_exceptions_name_no_signal(code: int) -> None:
    assert "raised" in arithmetic.exit_reading(code)
    assert "SIG" not in arithmetic.exit_reading(code)


def test_allocation_below_the_free_count_is_no_full_pool() -> None:
    assert "the pool is full" in arithmetic.allocation_reading(300, 200)
    reading = arithmetic.allocation_reading(148, 2048, page_size=64, requests=148)
    assert "not a full pool" in reading
    assert "32 free pages for 148 requests" in reading


def test_an_empty_window_pool_is_told_from_the_full_one_beside_it() -> None:
    text = (
        "Decode out of memory. Try to lower your batch size.\nTry to allocate 48 tokens.\n"
        "Available full tokens: 9000 (full_available_size=8000 + full_evictable_size=1000)\n"
        "Available swa tokens: {} (swa_available_size={} + swa_evictable_size=0)\n"
    )
    empty, enough = text.replace("{}", "16"), text.replace("{}", "4800")
    assert arithmetic.readings(empty) == ("48 requested, 16 available in the sliding-window pool: that pool is full",)
    assert arithmetic.readings(enough) == ()


def test_balance_check_names_the_other_rank() -> None:
    assert "balanced" in arithmetic.balance_reading(75.0, 79.0)
    assert "foreign process" in arithmetic.balance_reading(60.0, 79.0)
    assert "draft" in arithmetic.balance_reading(8.9, 11.9)


def test_oom_that_does_not_fit_is_no_fragmentation() -> None:
    text = "CUDA out of memory. Tried to allocate 6.05 GiB. GPU 0 has a total capacity of 79.11 GiB of which 5.94 GiB is free."
    (reading,) = arithmetic.readings(text)
    assert "no fragmentation" in reading
    assert "fragmentation, or another" in arithmetic.oom_reading(2.0**20, 2.0**30)


def test_watchdog_start_and_sequence() -> None:
    assert arithmetic.watchdog_start(1000.0, 600_255) == pytest.approx(399.745)
    first = arithmetic.readings(
        "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600010 milliseconds"
    )
    assert "first collective after loading" in first[0]
    late = arithmetic.readings(
        "WorkNCCL(SeqNum=181277, OpType=ALLREDUCE, NumelIn=67108864, NumelOut=67108864, Timeout(ms)=600000) ran for 600255 milliseconds"
    )
    assert "divergence" in late[0]


def test_block_divisibility() -> None:
    assert arithmetic.divides(18432, 8, 128)
    assert not arithmetic.divides(18432, 32, 128)
    assert not arithmetic.divides(100, 0, 128)
    (reading,) = arithmetic.readings(
        "ValueError: Weight output_partition_size = 576 is not divisible by weight quantization block_n = 128."
    )
    assert "4 x 128 + 64" in reading


def test_text_without_numbers_reads_as_nothing() -> None:
    assert arithmetic.readings("RuntimeError: something else") == ()
