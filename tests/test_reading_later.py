"""What is read when somebody asks for it, and what is worked out once for many, gives what reading everything gives."""

from __future__ import annotations

import gc
import pickle
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rule_cases import launch_of, signals_of, simple, table_of

from forensics.analysis import read, report
from forensics.knowledge.store import load
from forensics.rulebook import match as matching
from forensics.rulebook.later import LaterMatch
from forensics.rulebook.match import match_rules
from forensics.rulebook.program import Asked, program_of
from forensics.schema.options import Options
from forensics.schema.signal import Match
from forensics.timeline.silence import find_silences

SAMPLES = Path(__file__).parent.parent / "samples"
STALL = simple("stall", "stalled for (?P<seconds>\\d+) seconds", captures="{seconds: int}")


def line(second: int, rank: int, text: str) -> str:
    return f"[2026-01-05 10:{second // 60:02}:{second % 60:02} TP{rank}] {text}"


def stalls(*values: tuple[int, int, int]) -> str:
    return "".join(line(second, rank, f"stalled for {n} seconds") + "\n" for second, rank, n in values)


def test_captures_are_read_when_they_are_asked_for() -> None:
    match, other = signals_of(stalls((0, 1, 7), (30, 1, 11)), STALL)["stall"].matches
    assert isinstance(match, LaterMatch) and isinstance(other, LaterMatch)
    assert match.captures == (("seconds", 7),) and other.captures == (("seconds", 11),)
    plain = Match(match.row, match.rank, (("seconds", 7),))
    assert match == plain and hash(match) == hash(plain) and repr(match) == repr(plain) and match != other


def test_for_another_process_a_later_match_is_a_plain_one() -> None:
    signal = signals_of(stalls((0, 1, 7), (30, 1, 11)), STALL)["stall"]
    copy = pickle.loads(pickle.dumps(signal))
    assert [type(m) for m in copy.matches] == [Match, Match]
    assert copy == signal


def test_equal_values_in_one_flood_fold_and_others_do_not() -> None:
    found = signals_of(stalls((0, 1, 7), (0, 1, 7), (1, 1, 8), (1, 2, 8)), STALL)["stall"].matches
    assert [(str(m.rank), m.captures[0][1], m.count) for m in found] == [("TP1", 7, 2), ("TP1", 8, 1), ("TP2", 8, 1)]


def test_lines_of_users_are_asked_for_words_before_they_are_read() -> None:
    made = simple("phrase", "kernel panic", kinds="[request-dump]")
    asked = Asked(program_of([made]), [0])
    assert asked.nobody(b"Receive: obj=GenerateReqInput(text='good day')")
    assert not asked.nobody(b"Receive: obj=GenerateReqInput(text='Kernel PANIC')")
    assert not asked.nobody(b"Receive: obj=GenerateReqInput(text='kern\x1b[0mel panic')")
    assert not asked.nobody("Receive: obj=GenerateReqInput(text='\u212aernel panic')".encode())
    text = "".join(
        line(0, 0, f"Receive: obj=GenerateReqInput(text='{t}')") + "\n" for t in ("hi", "a \u212aERNEL panic")
    )
    assert "phrase" not in signals_of(text, made)
    table, blocks = table_of(text.replace("\u212aERNEL", "kernel"))
    assert [m.row for m in match_rules([made], table, blocks, launch_of(table))["phrase"].matches] == [1]


def test_whole_seconds_give_the_silences_that_fractions_give() -> None:
    generator = np.random.default_rng(7)
    seconds = np.sort(generator.integers(0, 3000, 900))
    seconds = seconds[(seconds < 1000) | (seconds > 1100)]
    text = "".join(line(int(s), int(generator.integers(0, 3)), f"Cache flushed {s}") + "\n" for s in seconds)
    table, _ = table_of(text)
    rows = np.arange(len(table))
    whole = find_silences(table, rows)
    shifted = find_silences(replace(table, time=table.time + 0.25, memo={}), rows)
    assert len(whole) > 3 and {rank is None for rank, _, _ in whole} == {True, False}
    assert [(rank, a + 0.25, b + 0.25) for rank, a, b in whole] == list(shifted)


def test_neighbours_that_were_read_at_once_are_the_same_lines() -> None:
    table, _ = table_of("".join(line(i, 0, f"step {i} " + "x" * (i % 7)) + "\n" for i in range(40)))
    alone = [table.raw(row) for row in range(40)]
    table.look_ahead(5, 20)
    assert [table.raw(row) for row in range(40)] == alone
    table.look_ahead(30, 10)  # an order that is not the file's is no stretch
    assert [table.raw(row) for row in range(40)] == alone


def test_of_too_many_matches_the_same_ones_stay_whether_they_are_made_or_not() -> None:
    limit = matching.MAX_HELD
    for number in (limit, limit + 1, 2 * limit, 2 * limit + 700):
        rows = np.arange(number)
        flooded, one_by_one = matching._Found(), matching._Found()
        flooded.take(matching._Flooded(rows, np.ones(number, np.int64), np.full(number, -1, np.int32)))
        for row in rows.tolist():
            one_by_one.make_room()
            one_by_one.held.append((row, 1, (), -1))
        assert flooded.held == one_by_one.held and flooded.capped == one_by_one.capped == (number > limit)


@pytest.mark.parametrize("name", ["cases/saga/attempt-3.log", "cases/a-fp8-model-on-a100/log.txt"])
def test_what_is_kept_for_the_launches_goes_with_the_table(name: str) -> None:
    """A server that analyzes log after log holds none of them, even where nobody looks for cycles."""
    options = Options()
    knowledge = load(options)
    gc.disable()
    try:
        reading = read([str(SAMPLES / name)], options, knowledge)
        table = weakref.ref(reading.table)
        report(reading, options, knowledge)
        del reading
        assert table() is None
    finally:
        gc.enable()
