"""From a hypothesis' fix to changes: alternatives, steps that belong together, names of the log's own release."""

from forensics.replay.steps import alternatives, changes_of
from forensics.schema.report import FixInfo, HypothesisInfo, LaunchInfo, VersionInfo


def flag(name: str, value: str | None = None, **more) -> FixInfo:
    return FixInfo(kind="flag", op="set", name=name, value=value, runnable=True, **more)


def hypothesis(*fix: FixInfo) -> HypothesisInfo:
    return HypothesisInfo(id="L1.H1", kind="finding", finding="f", title="t", verdict="likely", fix=list(fix))


def launch(version: str | None = None) -> LaunchInfo:
    return LaunchInfo.model_construct(facts={}, version=VersionInfo(exact=version))


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
