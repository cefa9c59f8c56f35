"""Where one launch ends and the next begins, how far each got, and which ranks it has."""

from __future__ import annotations

from pathlib import Path

from timeline_logs import SIGQUIT, args, at, decode, launches, prefill, startup, trace

TP2 = ["TP0", "TP1"]


def crash(second: int) -> list[str]:
    return [
        *trace(second, "TP0", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        f"{at(second + 1)} {SIGQUIT}",
        "Killed",
    ]


def test_a_relaunch_in_the_same_file_is_a_second_launch(tmp_path: Path) -> None:
    lines = [
        args(0, tp_size=2),
        *startup(5, TP2),
        *crash(30),
        args(100, tp_size=2),
        *startup(105, TP2),
        decode(130, "TP0"),
    ]
    _, found = launches(tmp_path, lines)
    assert [x.ended for x in found] == ["crashed", "running"]
    assert [x.reached for x in found] == ["serving", "serving"]
    assert found[1].first_failure is None


def test_lines_of_the_config_stage_belong_to_the_launch_that_follows(tmp_path: Path) -> None:
    first = [args(0), *startup(5, [""]), *crash(30)]
    lines = [
        *first,
        "+ python3 -m sglang.launch_server --model-path /models/m",
        f"{at(90)} WARNING server_args.py:12: Cuda graph is disabled",
        args(91),
        *startup(95, [""]),
    ]
    _, found = launches(tmp_path, lines)
    assert [x.lines[0] for x in found] == [1, len(first) + 1]


def test_a_refused_command_line_is_a_launch_of_its_own(tmp_path: Path) -> None:
    refused = [
        "+ python3 -m sglang.launch_server --enable-x",
        "usage: launch_server.py [-h] --model-path MODEL_PATH",
        "launch_server.py: error: unrecognized arguments: --enable-x",
    ]
    lines = [*refused, "+ python3 -m sglang.launch_server --model-path /models/m", args(10), *startup(15, [""])]
    table, found = launches(tmp_path, lines)
    assert [x.reached for x in found] == ["config", "serving"]
    first = found[0].failure(found[0].first_failure)
    assert first is not None
    assert int(table.line[first.row]) == 3
    assert found[0].ended == "crashed"


def test_the_log_of_the_other_node_appended_is_the_same_launch(tmp_path: Path) -> None:
    node0 = [args(0, tp_size=4, nnodes=2, node_rank=0), *startup(5, TP2, ready=False)]
    node1 = [args(2, tp_size=4, nnodes=2, node_rank=1), *startup(6, ["TP2", "TP3"], ready=False)]
    _, found = launches(tmp_path, [*node0, *node1])
    assert len(found) == 1
    assert {str(r) for r in found[0].seen} == {"TP0", "TP1", "TP2", "TP3"}
    assert found[0].missing == ()


def test_the_log_of_the_other_node_in_its_own_file_is_the_same_launch(tmp_path: Path) -> None:
    node0 = [args(0, tp_size=4, nnodes=2, node_rank=0), *startup(5, TP2, ready=False)]
    node1 = [args(2, tp_size=4, nnodes=2, node_rank=1), *startup(6, ["TP2", "TP3"], ready=False)]
    _, found = launches(tmp_path, node0, node1)
    assert len(found) == 1
    assert found[0].sources == (0, 1)


def test_attempts_in_two_files_are_two_launches(tmp_path: Path) -> None:
    _, found = launches(
        tmp_path, [args(0), *startup(5, [""]), *crash(30)], [args(600), *startup(605, [""]), decode(630)]
    )
    assert [x.ended for x in found] == ["crashed", "running"]


def test_ranks_of_a_node_that_the_input_lacks_are_not_called_missing(tmp_path: Path) -> None:
    _, (launch,) = launches(tmp_path, [args(0, tp_size=4, nnodes=2, node_rank=0), *startup(5, TP2, ready=False)])
    assert len(launch.expected) == 4
    assert launch.missing == ()
    assert any("node" in note for note in launch.notes)


def test_prefill_and_decode_services_of_one_compose_log_are_one_launch(tmp_path: Path) -> None:
    one = [f"prefill-1  | {line}" for line in [args(0, disaggregation_mode="prefill"), *startup(5, [""])]]
    two = [f"decode-1   | {line}" for line in [args(1, disaggregation_mode="decode", port=30001), *startup(6, [""])]]
    mixed = [line for pair in zip(one, two, strict=True) for line in pair]
    _, found = launches(tmp_path, mixed)
    assert len(found) == 1
    assert set(found[0].services) >= {"prefill", "decode"}


def test_a_tail_of_five_lines_is_a_launch_with_a_cut_head(tmp_path: Path) -> None:
    _, (launch,) = launches(tmp_path, [decode(5, "TP0"), prefill(6, "TP0"), decode(7, "TP0"), *crash(8)])
    assert launch.truncated_head
    assert launch.reached == "serving"
    assert launch.missing == ()


def test_a_silent_rank_is_missing_where_the_head_is_there(tmp_path: Path) -> None:
    _, (launch,) = launches(tmp_path, [args(0, tp_size=4), *startup(5, ["TP0", "TP1", "TP3"], ready=False)])
    assert [str(r) for r in launch.missing] == ["TP2"]
    assert any("TP2 never reported init" in note for note in launch.notes)


def test_dp_attention_ranks_are_not_counted_twice(tmp_path: Path) -> None:
    ranks = ["DP0 TP0 EP0", "DP0 TP1 EP1", "DP1 TP2 EP2", "DP1 TP3 EP3"]
    _, (launch,) = launches(
        tmp_path, [args(0, tp_size=4, dp_size=2, ep_size=4, enable_dp_attention=True), *startup(5, ranks)]
    )
    assert {str(r) for r in launch.expected} == set(ranks)
    assert launch.missing == ()


def test_pipeline_and_tensor_ranks_multiply(tmp_path: Path) -> None:
    ranks = ["PP0 TP0", "PP0 TP1", "PP1 TP0"]
    _, (launch,) = launches(tmp_path, [args(0, tp_size=2, pp_size=2), *startup(5, ranks, ready=False)])
    assert [str(r) for r in launch.missing] == ["PP1 TP1"]


def test_stage_of_every_rank_and_the_last_stage_of_the_launch(tmp_path: Path) -> None:
    lines = [
        args(0, tp_size=2),
        f"{at(5, 'TP0')} Init torch distributed begin.",
        f"{at(5, 'TP1')} Init torch distributed begin.",
        f"{at(9, 'TP0')} Load weight begin. avail mem=78.10 GB",
    ]
    _, (launch,) = launches(tmp_path, lines)
    assert {str(r): s for r, s in launch.stages.items()} == {"TP0": "load", "TP1": "init"}
    assert launch.reached == "load"
    assert launch.ended == "log-ends"


def test_old_and_new_wordings_of_init(tmp_path: Path) -> None:
    for number, word in enumerate(("Init nccl begin.", "Init torch distributed begin.", "Init parallel begin.")):
        folder = tmp_path / str(number)
        folder.mkdir()
        _, (launch,) = launches(folder, [args(0), f"{at(5)} {word}"])
        assert launch.reached == "init"


def test_an_empty_input_has_no_launch(tmp_path: Path) -> None:
    _, found = launches(tmp_path, [""])
    assert found == ()


def test_replicas_that_come_up_after_their_parent_died_are_no_second_launch(tmp_path: Path) -> None:
    begin = "Init torch distributed begin."
    lines = [
        args(0, dp_size=3),
        *trace(30, "DP1", "torch.AcceleratorError: CUDA error: invalid device ordinal"),
        f"{at(30)} kill_process_tree called: parent_pid=902, include_parent=False, pid=902",
        f"{at(31, 'DP0')} {begin}",
        *trace(32, "DP2", "torch.AcceleratorError: CUDA error: invalid device ordinal"),
    ]
    _, found = launches(tmp_path, lines)
    assert len(found) == 1


def test_an_error_that_is_logged_before_its_traceback_is_one_failure(tmp_path: Path) -> None:
    lines = [
        args(0),
        *startup(5, [""])[:4],
        f"{at(20)} NameError: name 'fast_kernel' is not defined",
        "Possible suggestions:",
        *trace(20, "", "NameError: name 'fast_kernel' is not defined"),
    ]
    table, found = launches(tmp_path, lines)
    first = found[0].failure(found[0].first_failure)
    assert first is not None
    assert table.text(first.row) == "NameError: name 'fast_kernel' is not defined"
    assert first.blocks, "the traceback belongs to it"
