"""Steps that leave a value open, controls that may be held against a launch, and symptoms without an error line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from diagnose_kit import SERVES, START, diagnose, finding, focus, knowledge, launch_text, write

from forensics.diagnose.controls import READS, Comparison, Difference, suspicious
from forensics.diagnose.relaunch import command_with
from forensics.knowledge.store import load
from forensics.replay.edits import Change, change_command
from forensics.rulebook.case import Case
from forensics.schema.facts import Fact, Value, VersionInterval
from forensics.schema.finding import Deployment, FixStep
from forensics.schema.launch import Failure, Launch
from forensics.schema.options import Options
from forensics.schema.span import Span

DIVIDES = """[2026-05-01 10:00:19 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2974, in run_scheduler_process
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/distributed/utils.py", line 53, in ensure_divisibility
AssertionError: {total} is not divisible by 24
"""


@pytest.mark.parametrize(("total", "wanted"), [(152064, 16), (25, 5), (29, 1)])
def test_an_open_size_gets_the_value_that_the_numbers_suggest(total: int, wanted: int, tmp_path: Path) -> None:
    head = launch_text("").split(START)[0].replace("tp_size=1", "tp_size=24")
    own = finding(
        tmp_path,
        "split",
        must=["size-not-divisible"],
        decisive=["size-not-divisible"],
        fix="[{kind: flag, op: set, name: --tp-size, value: '<a divisor>', runnable: true}]",
    )
    body = START.split("[2026-05-01 10:00:20]")[0] + DIVIDES.format(total=total)
    steps = focus(diagnose([write(tmp_path, "1.log", head + body)], knowledge(own))).next
    assert [s.do for s in steps] == [f"choose --tp-size: a divisor (now 24; try {wanted}), then relaunch"]
    assert not steps[0].command  # the log states none


SPLIT = "{kind: flag, op: set, name: --tp-size, value: '<a divisor>', runnable: true}"
TOWER = "{kind: flag, op: set, name: --mm-enable-dp-encoder, note: 'if it is the vision tower: alone', runnable: true}"
GRAPH = "{kind: flag, op: set, name: --disable-cuda-graph, runnable: true}"
COMPILE = "{kind: flag, op: remove, name: --enable-torch-compile, note: 'if it is set', runnable: true}"


def steps_for(tmp_path: Path, *fix: str, args: str = "") -> list[str]:
    head = launch_text("").split(START)[0].replace("tp_size=1", f"tp_size=24{args}")
    own = finding(tmp_path, "split", must=["size-not-divisible"], decisive=["size-not-divisible"],
                  fix=f"[{', '.join(fix)}]")  # fmt: skip
    body = START.split("[2026-05-01 10:00:20]")[0] + DIVIDES.format(total=25)
    return [s.do for s in focus(diagnose([write(tmp_path, "1.log", head + body)], knowledge(own))).next]


def test_a_choice_comes_first_and_a_step_for_some_launches_does_not_follow_it(tmp_path: Path) -> None:
    choice = "choose --tp-size: a divisor (now 24; try 5), then relaunch"
    graph = "relaunch with --disable-cuda-graph and nothing else changed"
    assert steps_for(tmp_path, SPLIT, TOWER) == [choice]
    assert steps_for(tmp_path, TOWER, SPLIT) == [choice]
    assert steps_for(tmp_path, SPLIT, GRAPH) == [choice, graph]
    assert steps_for(tmp_path, GRAPH, SPLIT) == [graph]


def test_a_step_for_some_launches_says_so_unless_the_log_shows_that_it_is_meant(tmp_path: Path) -> None:
    assert steps_for(tmp_path, TOWER) == [
        "if it is the vision tower: relaunch with --mm-enable-dp-encoder and nothing else changed"
    ]
    without = "relaunch without --enable-torch-compile and nothing else changed"
    assert steps_for(tmp_path, COMPILE, args=", enable_torch_compile=True") == [without]
    assert steps_for(tmp_path, COMPILE) == [f"if it is set: {without}"]


def test_a_step_is_not_repeated_where_the_log_has_no_command(tmp_path: Path) -> None:
    head = launch_text("").split(START)[0].replace("tp_size=1", "tp_size=24")
    own = finding(tmp_path, "split", must=["size-not-divisible"], decisive=["size-not-divisible"], fix=f"[{GRAPH}]")
    body = START.split("[2026-05-01 10:00:20]")[0] + DIVIDES.format(total=25)
    path = write(tmp_path, "1.log", head + body)
    assert [s.command for s in focus(diagnose([path], knowledge(own))).next] == [""]
    command = "+ python3 -m sglang.launch_server --model-path /m --tp-size 24\n"
    shown = focus(diagnose([write(tmp_path, "2.log", command + head + body)], knowledge(own))).next
    assert [s.command for s in shown] == [command[2:].rstrip() + " --disable-cuda-graph"]


def test_a_fraction_is_moved_from_where_it_stands(tmp_path: Path) -> None:
    own = finding(
        tmp_path,
        "budget",
        must=["scheduler-hit-exception"],
        decisive=["scheduler-hit-exception"],
        explains=["scheduler-hit-exception", "size-not-divisible"],
        fix="[{kind: flag, op: set, name: --mem-fraction-static, value: '<higher>', runnable: true}, "
        "{kind: other, do: 'more GPUs'}]",
    )
    head = launch_text("").split(START)[0].replace("tp_size=1", "tp_size=24, mem_fraction_static=0.62")
    body = START.split("[2026-05-01 10:00:20]")[0] + DIVIDES.format(total=25)
    steps = focus(diagnose([write(tmp_path, "1.log", head + body)], knowledge(own))).next
    assert any(s.do.startswith("choose --mem-fraction-static: higher (now 0.62; try 0.70)") for s in steps)


def test_all_values_of_a_flag_go_with_it() -> None:
    command = "python3 -m sglang.launch_server --model-path /m --lora-paths a=/x b=/y --port 1"
    assert command_with(command, FixStep("flag", "remove", "--lora-paths")) == (
        "python3 -m sglang.launch_server --model-path /m --port 1"
    )
    tail = "python3 -m sglang.launch_server --lora-paths a=/x"
    assert command_with(tail, FixStep("flag", "remove", "--lora-paths")) == "python3 -m sglang.launch_server"


def test_a_step_is_edited_into_the_command_as_replay_edits_it() -> None:
    """Same text as the fix's own diff: in its place, and nothing else of the command touched."""
    server = "python3 -m sglang.launch_server --model-path $MODEL --kv-cache-dtype fp8_e4m3 --port 1 > out.log 2>&1"
    for command, step, expected in [
        (server, FixStep("flag", "set", "--kv-cache-dtype", "bfloat16"), server.replace("fp8_e4m3", "bfloat16")),
        (server, FixStep("flag", "set", "--skip-server-warmup"), server.replace(" >", " --skip-server-warmup >", 1)),
        (server, FixStep("env", "set", "NCCL_DEBUG", "INFO"), f"env NCCL_DEBUG=INFO {server}"),
        (f"A=1 {server}", FixStep("env", "set", "B", "2 3"), f"A=1 B='2 3' {server}"),
        (f"A=1 nohup {server}", FixStep("env", "set", "B", "2"), f"A=1 nohup env B=2 {server}"),
        (f"A=1 NCCL_DEBUG=WARN {server}", FixStep("env", "remove", "NCCL_DEBUG"), f"A=1 {server}"),
        ("docker run img " + server, FixStep("env", "set", "A", "1"), f"docker run -e A=1 img {server}"),
        ("python3 -m sglang_router.launch_router", FixStep("flag", "set", "--worker-urls", "http://a http://b"),
         "python3 -m sglang_router.launch_router --worker-urls http://a http://b"),
        ("./start.sh --port 1", FixStep("flag", "remove", "--port"), ""),
        ("python3 -m sglang.launch_server --host '0.0.0.0", FixStep("flag", "set", "--port", "1"), ""),
    ]:  # fmt: skip
        assert command_with(command, step) == expected
        if expected:
            assert change_command(command, [Change(step.kind, step.op, step.name, step.value)]) == expected


# -- controls -----------------------------------------------------------------------------------------------------


def held(component: str, stage: str, facts: dict[str, Value], control: Deployment, *names: str) -> list[str]:
    """Names of the differences that may be behind a failure of this component."""
    rows = np.zeros(0, dtype=np.int64)
    failure = Failure(
        "L1.F1", "root", "terminal", stage, 0, (), None, (), 1, "x", "RuntimeError: x", component=component
    )
    launch = Launch(
        "L1", rows, (0,), (1, 1), "serving", "crashed", None, "", (), (), (), {}, (),
        {n: Fact(n, v, None, "test") for n, v in facts.items()},
        VersionInterval(exact="0.5.10", low="0.5.10", high="0.5.10"), (failure,), "L1.F1",
    )  # fmt: skip
    differing = tuple(Difference(n, facts.get(n), None, False, None) for n in names)
    case = Case(None, (), launch, {}, {})  # type: ignore[arg-type]  # no table is read here
    return [d.name for d in suspicious(Comparison(control, "", differing), case)]


SPAN = Span("x", 1, 1)
H200: dict[str, Value] = {"gpu.sm": 90, "model.architecture": "Qwen3MoeForCausalLM", "args.quantization": "fp8",
        "args.moe_runner_backend": "triton", "args.speculative_algorithm": "EAGLE",
        "args.attention_backend": "triton"}  # fmt: skip


def control(**keys: object) -> Deployment:
    values: dict[str, object] = {"id": "d", "title": "d", "strength": "served", "span": SPAN, "sm": 90, "gpu": "H200",
                                 "architecture": "Qwen3MoeForCausalLM", "quantization": "fp8"}  # fmt: skip
    return Deployment(**(values | keys))  # type: ignore[arg-type]


NAMES = ("args.moe_runner_backend", "args.speculative_algorithm", "args.attention_backend")


def test_only_settings_that_the_failing_component_reads_count() -> None:
    assert held("moe", "decode", H200, control(), *NAMES) == ["args.moe_runner_backend"]
    assert held("speculative", "decode", H200, control(), *NAMES) == [
        "args.speculative_algorithm",
        "args.attention_backend",
    ]
    assert held("loader", "load", H200, control(), *NAMES) == []
    assert "loader" not in READS


@pytest.mark.parametrize("other", [{"sm": 120, "gpu": "RTX PRO 6000"}, {"versions": "0.4.6"}, {"versions": ">=0.5.12"}])
def test_another_gpu_or_release_is_no_control(other: dict[str, object]) -> None:
    assert held("moe", "decode", H200, control(**other), *NAMES) == []


def test_another_model_counts_for_the_kernels_of_its_number_format_only() -> None:
    other = control(architecture="DeepseekV3ForCausalLM")
    assert held("speculative", "decode", H200, other, *NAMES) == []
    assert held("moe", "decode", H200, other, *NAMES) == ["args.moe_runner_backend"]
    assert held("moe", "decode", H200, control(architecture="DeepseekV3ForCausalLM", quantization=""), *NAMES) == []


# -- symptoms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symptom", "wanted"), [("garbage", "weight index"), ("slow", "nvidia-smi dmon"), ("hang", "py-spy dump")]
)
def test_a_symptom_that_nothing_explains_gets_steps(symptom: str, wanted: str, tmp_path: Path) -> None:
    path = write(tmp_path, "1.log", launch_text(SERVES))
    info = focus(diagnose([path], knowledge(), symptom=symptom))
    assert not [h for h in info.hypotheses if h.kind == "finding"]
    assert any(wanted in f"{s.do} {s.command}" for s in info.next)


def test_a_symptom_alone_names_no_cause(tmp_path: Path) -> None:
    idle = finding(tmp_path, "idle", must=["symptom garbage", "not weight-shard-missing"], symptoms=["garbage"],
                   weak=["stage reached serving"])  # fmt: skip
    fits = finding(tmp_path, "fits", must=["symptom garbage", "args.dtype = half"], symptoms=["garbage"])
    path = write(tmp_path, "1.log", launch_text(SERVES, dtype="half"))
    info = focus(diagnose([path], knowledge(idle, fits), symptom="garbage"))
    assert [(h.finding, h.verdict) for h in info.hypotheses] == [("fits", "possible")]


@pytest.mark.parametrize("symptom", ["garbage", "slow"])
def test_silent_causes_stay_possible_with_all_findings(symptom: str, tmp_path: Path) -> None:
    known = load(Options())
    path = write(tmp_path, "1.log", launch_text(SERVES, dtype="half", kv="fp8_e4m3"))
    with_symptom = focus(diagnose([path], known, symptom=symptom))
    assert all(h.verdict in ("possible", "ruled-out") for h in with_symptom.hypotheses)
    without = focus(diagnose([path], known))
    assert not without.hypotheses
