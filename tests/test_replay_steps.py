"""From a hypothesis' fix to changes: alternatives, steps that belong together, names of the log's own release."""

import re
from pathlib import Path

import pytest

from forensics.agents.jail import Jail
from forensics.agents.tools import Toolbox
from forensics.errors import ReplayError
from forensics.replay.base import Base
from forensics.replay.command import run_replay
from forensics.replay.propose import Proposer
from forensics.replay.request import Request
from forensics.replay.steps import alternatives, changes_of, left_open
from forensics.schema.report import (
    FactValue,
    FirstFailure,
    FixInfo,
    HypothesisInfo,
    LaunchInfo,
    RanksInfo,
    VersionInfo,
    Where,
)


def flag(name: str, value: str | None = None, **more) -> FixInfo:
    return FixInfo(kind="flag", op="set", name=name, value=value, runnable=True, **more)


def hypothesis(*fix: FixInfo) -> HypothesisInfo:
    return HypothesisInfo(id="L1.H1", kind="finding", finding="f", title="t", verdict="likely", fix=list(fix))


def launch(version: str | None = None) -> LaunchInfo:
    return LaunchInfo(
        id="L1", lines=(1, 1), reached="load", ended="crashed", ranks=RanksInfo(), version=VersionInfo(exact=version)
    )


def texts(sets) -> list[list[str]]:
    return [[str(change) for change in one] for one in sets]


def test_alternatives_come_in_order_and_steps_that_help_only_together_are_one_change():
    fix = hypothesis(
        flag("--dtype", "bfloat16"),
        flag("--disable-cuda-graph", with_above=True),
        FixInfo(kind="env", op="set", name="NCCL_DEBUG", value="INFO", with_above=True),
        flag("--kv-cache-dtype", "auto"),
    )
    together = ["set --dtype=bfloat16", "set --disable-cuda-graph", "set NCCL_DEBUG=INFO"]
    assert texts(alternatives(fix, launch())) == [together, ["set --kv-cache-dtype=auto"]]
    first, by_hand = changes_of(fix, launch())
    assert [str(c) for c in first] == together
    assert len(by_hand) == 1 and by_hand[0].startswith("or: ") and "kv-cache-dtype auto" in by_hand[0]


def test_a_change_of_which_one_part_must_be_done_by_hand_is_not_applied_in_part():
    fix = hypothesis(
        flag("--dtype", "bfloat16"),
        FixInfo(kind="package", op="at-least", name="triton", version="3.5", with_above=True),
        flag("--kv-cache-dtype", "auto"),
    )
    assert texts(alternatives(fix, launch())) == [["set --kv-cache-dtype=auto"]]
    first, by_hand = changes_of(fix, launch())
    assert [str(c) for c in first] == ["set --kv-cache-dtype=auto"]
    assert any("dtype bfloat16" in line for line in by_hand) and any("triton" in line for line in by_hand)


def test_a_flag_without_the_value_that_it_needs_is_not_runnable():
    assert alternatives(hypothesis(flag("--dtype")), launch()) == []
    assert texts(alternatives(hypothesis(flag("--disable-cuda-graph")), launch())) == [["set --disable-cuda-graph"]]


def test_a_flag_takes_the_name_that_the_logs_release_knows():
    fix = hypothesis(flag("--cuda-graph-bs-decode", "1 2 4"))
    assert texts(alternatives(fix, launch("0.5.9"))) == [["set --cuda-graph-bs=1 2 4"]]
    assert texts(alternatives(fix, launch("0.5.18"))) == [["set --cuda-graph-bs-decode=1 2 4"]]


# -- values that are left to the reader --------------------------------------------------------------------------


BASE = Base("python3 -m sglang.launch_server --model-path m --tp-size 6", "the command line (--launch)")
OPEN = flag("--tp-size", "<divisor of all head counts>")


def proposer(*fix: FixInfo, ladder: bool = False, text: str = "", tp: int = 6) -> Proposer:
    first = FirstFailure(stage="load", where=Where(path="x.log", line=1), text=text)
    facts = {"args.tp_size": FactValue(value=tp, how="stated")}
    info = launch("0.5.9").model_copy(update={"facts": facts, "first_failure": first, "hypotheses": [hypothesis(*fix)]})
    return Proposer(Request(logs=("x.log",), ladder=ladder), BASE, info, None)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ValueError: Attention heads 40 are not divisible by TP=6", "--fix 'set --tp-size=4'"),
        ("AssertionError: 33 is not divisible by 6", "--fix 'set --tp-size=3'"),
        ("RuntimeError: shapes do not fit", "--fix 'set --tp-size=…'"),
    ],
)
def test_a_value_that_is_left_to_the_reader_is_asked_for(text, hint):
    with pytest.raises(ReplayError) as refused:
        proposer(OPEN, flag("--mm-enable-dp-encoder"), text=text).plans()
    assert "the fix leaves a value to you: --tp-size <divisor of all head counts>" in str(refused.value)
    assert hint in refused.value.render()


def test_a_ladder_and_a_later_open_value_go_on_with_what_can_be_run():
    (plan,) = proposer(OPEN, flag("--disable-cuda-graph"), ladder=True).plans()
    assert [str(c) for c in plan.changes] == ["set --disable-cuda-graph"]
    (plan,) = proposer(flag("--disable-cuda-graph"), OPEN).plans()
    assert [str(c) for c in plan.changes] == ["set --disable-cuda-graph"]
    assert plan.by_hand == ("--tp-size <divisor of all head counts> (the value is left to you)",)


def test_a_part_of_a_value_may_be_open_and_a_step_by_hand_before_it_is_no_change():
    address = FixInfo(kind="flag", op="set", name="--dist-init-addr", value="<host>:<another port>")
    assert left_open(hypothesis(FixInfo(kind="host", do="reboot"), address)) is address
    assert alternatives(hypothesis(address), launch()) == []


def test_what_is_not_done_is_named_with_its_dashes():
    fix = hypothesis(
        flag("--dtype", "bfloat16"),
        flag("--fp8-gemm-backend", "triton"),
        FixInfo(kind="flag", op="remove", name="--enable-torch-compile"),
        FixInfo(kind="env", op="set", name="NCCL_DEBUG", value="INFO"),
    )
    assert changes_of(fix, launch("0.5.9"))[1] == [
        "or: --fp8-gemm-backend triton", "or: remove --enable-torch-compile", "or: env NCCL_DEBUG=INFO",
    ]  # fmt: skip


@pytest.mark.parametrize("sample", ["w-tp-size-not-dividing-heads-3", "w-ep-size-not-dividing-experts-1",
                                    "w-hicache-host-memory-reservation-2"])  # fmt: skip
def test_samples_whose_fix_is_open_end_with_2(sample, capsys):
    log = Path(__file__).parents[1] / "samples/cases" / sample / "log.txt"
    with pytest.raises(ReplayError, match="leaves a value to you"):
        run_replay(Request(logs=(str(log),)))
    assert "<" not in capsys.readouterr().out


def test_an_agent_is_given_no_command_where_the_value_is_left_open():
    log = Path(__file__).parents[1] / "samples/cases/w-tp-size-not-dividing-heads-3/log.txt"
    told = Toolbox(Jail(log.parent)).replay_plan([str(log)])
    assert re.search(r'"runnable": ?false', told) and "divisor of all head counts" in told
