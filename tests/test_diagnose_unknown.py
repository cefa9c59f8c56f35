"""Failures that nothing explains: one cheap step that tells more, and no empty advice."""

from __future__ import annotations

from pathlib import Path

import pytest
from diagnose_kit import START, diagnose, finding, focus, knowledge, write

from forensics.diagnose.fallback import searchable
from forensics.diagnose.plain import plain_of
from forensics.diagnose.reworded import by_wording
from forensics.diagnose.similar import raised_at
from forensics.diagnose.titles import message_of
from forensics.knowledge.store import load
from forensics.schema.block import Frame
from forensics.schema.report import LaunchInfo

SITE = "/opt/venv/lib/python3.12/site-packages"
COMMAND = (
    "$ python3 -m sglang.launch_server --model-path /models/dense --tp-size 1 --port 30001 {flags}\n"
    "[2026-05-01 10:00:00] server_args=ServerArgs(model_path='/models/dense', tokenizer_path='/models/dense', "
    "tp_size=1, dp_size=1, pp_size={pp}, nnodes=1, node_rank=0, port=30001, schedule_policy='fcfs', {args})\n"
)
READY = "[2026-05-01 10:00:40] The server is fired up and ready to roll!\n"
DECODE = (
    "[2026-05-01 10:00:45] Decode batch, #running-req: 4, #token: 900, token usage: 0.01, gen throughput (token/s): 20.1, "
    "#queue-req: 0,\n"
)


def crash(where: str, message: str, ready: bool = True, flags: str = "", pp: int = 1, args: str = "") -> str:
    """A launch whose scheduler raises `message` in `where` (file and function)."""
    file, function = where.split(":")
    head = COMMAND.format(flags=flags, pp=pp, args=args or "attention_backend='triton'")
    body = (
        f"[2026-05-01 10:00:51] Scheduler hit an exception: Traceback (most recent call last):\n"
        f'  File "{SITE}/sglang/srt/managers/scheduler.py", line 2974, in run_scheduler_process\n'
        f'  File "{SITE}/{file}", line 365, in {function}\n{message}\n\n'
        "[2026-05-01 10:00:52] SIGQUIT received. signum=None, frame=None. It usually means one child failed.\n"
    )
    return head + START.split("[2026-05-01 10:00:20]")[0] + body if not ready else head + START + READY + DECODE + body


def told(folder: Path, text: str, **options: object) -> LaunchInfo:
    """The diagnosis with the real rules and no finding at all."""
    return focus(diagnose([write(folder, "server.log", text)], knowledge(), **options))


SWITCHES = [
    ("sglang/srt/speculative/eagle_worker.py:verify", "RuntimeError: sizes do not fit", "--speculative-algorithm EAGLE", "speculative_algorithm='EAGLE'", "--speculative-algorithm"),
    ("sglang/srt/mem_cache/hiradix_cache.py:load_back", "TypeError: object of type 'NoneType' has no len()", "--enable-hierarchical-cache", "enable_hierarchical_cache=True", "--enable-hierarchical-cache"),
    ("sglang/srt/lora/layers.py:forward", "AttributeError: 'NoneType' object has no attribute 'seg_lens'", "--enable-lora --lora-paths a=/x b=/y", "enable_lora=True, lora_paths='a=/x'", "--lora-paths"),
    ("sglang/srt/constrained/xgrammar_backend.py:fill", "RuntimeError: Maximum recursion depth exceeded", "", "grammar_backend='xgrammar'", "--grammar-backend llguidance"),
    ("sglang/srt/layers/sampler.py:forward", "RuntimeError: a value is odd here", "", "sampling_backend='flashinfer'", "--sampling-backend pytorch"),
    ("sglang/srt/managers/scheduler_output_processor_mixin.py:process_batch_result", "AssertionError: out of step", "", "disable_overlap_schedule=False", "--disable-overlap-schedule"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "message", "flags", "args", "wanted"), SWITCHES)
def test_the_part_that_failed_is_taken_out(
    where: str, message: str, flags: str, args: str, wanted: str, tmp_path: Path
) -> None:
    steps = told(tmp_path, crash(where, message, flags=flags, args=args)).next
    assert steps[0].kind == "experiment"
    assert wanted in steps[0].do
    assert "sglang.launch_server" in steps[0].command
    assert not any("check_env" in s.command for s in steps)


def test_a_switch_with_several_values_leaves_none_behind(tmp_path: Path) -> None:
    where, message, flags, args, _ = SWITCHES[2]
    step = told(tmp_path, crash(where, message, flags=flags, args=args)).next[0]
    assert "b=/y" not in step.command
    assert "--enable-lora" not in step.command


def test_what_is_off_is_not_taken_out(tmp_path: Path) -> None:
    where, message, *_ = SWITCHES[0]
    steps = told(tmp_path, crash(where, message, args="speculative_algorithm=None")).next
    assert not any("--speculative-algorithm" in s.do for s in steps)


def test_a_step_that_a_launch_of_the_input_has_tried_is_not_offered(tmp_path: Path) -> None:
    where, message, flags, args, _ = SWITCHES[5]
    first = crash(where, message, flags=flags, args=args)
    second = crash(where, message, flags="--disable-overlap-schedule", args="disable_overlap_schedule=True")
    info = told(tmp_path, first + second.replace("2026-05-01 10:", "2026-05-01 11:"))
    assert not any("overlap" in s.do for s in info.next)


def test_a_tensor_without_a_place_is_compared_with_the_checkpoint(tmp_path: Path) -> None:
    text = crash(
        "sglang/srt/models/deepseek_v2.py:load_weights",
        "KeyError: 'model.layers.21.mlp.experts.w2_weight_scale'",
        ready=False,
        pp=2,
        args="quantization='fp8'",
    )
    steps = told(tmp_path, text).next
    assert "--pp-size 1" in steps[0].do
    assert "w2_weight_scale" in steps[1].do and "fp8" in steps[1].do
    assert "quantization_config /models/dense/config.json" in steps[1].command


def test_nothing_from_the_log_breaks_out_of_a_command(tmp_path: Path) -> None:
    text = crash("sglang/srt/models/x.py:load_weights", "KeyError: 'a.b$(reboot)`id`'", ready=False)
    text = text.replace("/models/dense'", "/models/x; reboot'")
    for step in told(tmp_path, text).next:
        assert "$(reboot)" not in step.command.replace("'", "")
        assert "; reboot" not in step.command or "'/models/x; reboot" in step.command


def test_a_failed_transfer_is_looked_up_on_the_other_side(tmp_path: Path) -> None:
    head = COMMAND.format(flags="--disaggregation-mode prefill", pp=1, args="disaggregation_mode='prefill'")
    line = (
        "[2026-05-01 10:00:51] Prefill transfer failed for request rank=0 req.rid='1' req.bootstrap_room=27182818 with "
        "exception KVTransferError(bootstrap_room=27182818): Decode instance could be dead\n"
    )
    info = told(tmp_path, head + START + READY + DECODE + line)
    assert info.next[0].command == "grep -n 27182818 decode.log"
    assert not any("py-spy" in s.command for s in info.next)


def test_a_failed_request_is_called_one(tmp_path: Path) -> None:
    body = (
        "[2026-05-01 10:00:51] ERROR:    Exception in ASGI application\nTraceback (most recent call last):\n"
        f'  File "{SITE}/uvicorn/protocols/http/h11_impl.py", line 403, in run_asgi\n'
        f'  File "{SITE}/sglang/srt/entrypoints/openai/serving_chat.py", line 99, in _apply_template\n'
        "jinja2.exceptions.TemplateError: System role not supported\n"
    )
    path = write(
        tmp_path, "server.log", COMMAND.format(flags="", pp=1, args="dtype='auto'") + START + READY + DECODE + body
    )
    found = diagnose([path], knowledge())
    assert "a request failed at line" in found.headline and "the server goes on" in found.headline
    assert focus(found).hypotheses[0].title.startswith("A request failed: jinja2.exceptions.TemplateError: System role")
    assert "by itself" in focus(found).next[0].do


def test_many_settings_are_halved(tmp_path: Path) -> None:
    flags = "--chunked-prefill-size 4096 --schedule-policy lpm --stream-interval 4"
    text = crash("sglang/srt/models/x.py:__init__", "ValueError: odd", ready=False, flags=flags)
    step = next(s for s in told(tmp_path, text).next if "alone" in s.do)
    assert "--model-path /models/dense" in step.command
    assert "--chunked-prefill-size" not in step.command and "--stream-interval" not in step.command


WATCHDOG = """[2026-05-01 10:00:44] Prefill batch, #new-seq: 4, #new-token: 3000, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,
2026-05-01 10:01:10,120 - INFO - flashinfer.jit: Loading JIT ops: cascade
[2026-05-01 10:06:20 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
[2026-05-01 10:06:26] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
"""


def test_the_last_record_before_a_silence_says_what_went_on(tmp_path: Path) -> None:
    head = COMMAND.format(flags="", pp=1, args="attention_backend='flashinfer'")
    info = told(tmp_path, head + START + READY + DECODE + WATCHDOG)
    assert info.hypotheses[0].title.startswith("Kernels were still being compiled when the wait ran out")
    assert "flashinfer.jit: Loading JIT ops" in info.hypotheses[0].why


def test_one_rank_alone_was_not_frozen_from_outside(tmp_path: Path) -> None:
    head = COMMAND.format(flags="", pp=1, args="attention_backend='flashinfer'")
    path = write(tmp_path, "server.log", head + START + READY + DECODE + WATCHDOG)
    live = [h for h in focus(diagnose([path], load())).hypotheses if h.verdict != "ruled-out"]
    assert not any(h.finding == "rank-suspended-from-outside" for h in live)


def test_waiting_longer_is_the_last_step(tmp_path: Path) -> None:
    own = finding(
        tmp_path,
        "stall",
        must=["scheduler-watchdog-timeout"],
        fix="[{kind: env, op: set, name: SGLANG_HEALTH_CHECK_TIMEOUT, value: '60', runnable: true}, "
        "{kind: host, do: 'read the last batch lines'}]",
    )
    head = COMMAND.format(flags="", pp=1, args="attention_backend='flashinfer'")
    path = write(tmp_path, "server.log", head + START + READY + DECODE + WATCHDOG)
    steps = focus(diagnose([path], knowledge(own))).next
    assert len(steps) > 1
    assert [i for i, s in enumerate(steps) if "TIMEOUT" in s.do] == [len(steps) - 1]


def test_a_hang_always_gets_what_to_collect(tmp_path: Path) -> None:
    head = COMMAND.format(flags="", pp=1, args="attention_backend='flashinfer'")
    for text in (head + START + READY + DECODE, head + START + READY + DECODE + WATCHDOG):
        steps = told(tmp_path, text, symptom="hang").next
        assert any("py-spy dump" in s.command for s in steps)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("OSError: [Errno 28] No space left on device: '/x'", "The disk or the shared memory is full"),
        ("PermissionError: [Errno 13] Permission denied: '/x'", "A file may not be read or written"),
        ("ImportError: libnuma.so.1: cannot open shared object file: No such file or directory", "A shared library is missing"),
        ("TypeError: f() got an unexpected keyword argument 'activation'", "Two packages, or a package and a configuration, do not fit together"),
        ("RuntimeError: Ninja build failed.\n/x.h:41:10: fatal error: curand_kernel.h: No such file or directory", "A kernel could not be compiled: a header is missing"),
        ("[1.2] [h:1:0] ib_mlx5_dv.c:452  UCX  ERROR   mlx5dv_devx_obj_create(CQ) failed", "UCX could not set up a transport"),
        ("NCCL WARN NET/IB : Got completion from peer 10.0.0.9<38536> with error 12, opcode 0", "An RDMA peer stopped answering (transport retries used up)"),
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "A GPU kernel faulted (illegal memory access)"),
    ],
)  # fmt: skip
def test_words_that_say_what_they_are(text: str, wanted: str) -> None:
    row = plain_of(text)
    assert row is not None and row.title == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("RuntimeError: The NVIDIA driver on your system is too old (found version 12020).", "nvidia-driver-too-old"),
        ("RuntimeError: CUDA driver version is insufficient for CUDA runtime version", "nvidia-driver-too-old"),
        ("ValueError: Not enough host memory available. Requesting 96.00 GB but only have 41.50 GB free.", "hicache-host-memory-reservation"),
    ],
)  # fmt: skip
def test_words_that_a_finding_knows_have_no_row_of_their_own(text: str, wanted: str, tmp_path: Path) -> None:
    assert plain_of(text) is None
    frame = '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2974, in run_scheduler_process\n'
    stopped = (
        f"[2026-05-01 10:00:19 TP0] Scheduler hit an exception: Traceback (most recent call last):\n{frame}{text}\n"
    )
    path = write(tmp_path, "server.log", START.split("[2026-05-01 10:00:20]")[0] + stopped)
    launch = focus(diagnose([path], load()))
    assert launch.hypotheses[0].finding == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("E0917 16:11:35.918110  2163 worker_pool.cpp:250] Worker: Process failed", "Worker: Process failed"),
        ("h17-82:11978:12642 [0] ib_plugin.c:1075 NCCL WARN NET/IB : Got completion", "NET/IB : Got completion"),
        ("2025-07-30 00:11:38 ERROR sglang_router_rs::routers::pd_router: src/routers/pd_router.rs:330: Failed to select PD pair", "Failed to select PD pair"),
        ('http_request{method=POST uri=/v1/x}: sglang_router_rs::middleware: src/middleware.rs:300: request failed', "request failed"),
        ("thread 'tokio' panicked at src/router.rs:463:40:\ncalled `Result::unwrap()` on an `Err`", "called `Result::unwrap()` on an `Err`"),
        ("ValueError: plain", "ValueError: plain"),
    ],
)  # fmt: skip
def test_titles_are_the_message_without_its_headers(text: str, wanted: str) -> None:
    assert message_of(text) == wanted


def test_words_to_search_for_hold_nothing_of_the_site() -> None:
    words = searchable(
        "RuntimeError: Missing lora_A weight for module layers.3.q_proj in adapter /models/secret/x id 12ab"
    )
    assert words.split()[:3] == ["RuntimeError", "Missing", "lora_A"]
    assert "secret" not in words and "12" not in words
    assert searchable("AssertionError") == ""


def test_a_reworded_message_points_to_the_finding_whose_wording_it_nearly_has() -> None:
    known = load()
    text = "ValueError: Loaded weights leave too little GPU memory for KV blocks under the static fraction"
    named = [name for name, _ in by_wording(text, known.findings, known.rules, ())]
    assert named
    assert by_wording("ValueError: something else entirely went wrong in here", known.findings, known.rules, ()) == []


def test_an_exception_has_a_place_only_with_frames_and_words() -> None:
    frames = [Frame(0, f"{SITE}/sglang/srt/layers/linear.py", 1, "weight_loader")]
    assert raised_at("RuntimeError: the shard does not fit the parameter", frames) is not None
    assert raised_at("RuntimeError: the shard does not fit the parameter", []) is None
    assert raised_at("AssertionError", frames) is None
    assert raised_at("RuntimeError: CUDA error: an illegal memory access was encountered", frames) is None
