"""Pieces of logs as people paste them: without the start-up, with a shortened dump, with the pod's description below."""

from __future__ import annotations

from pathlib import Path

from forensics.analysis import read, report
from forensics.knowledge.store import load
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

ARGS = "server_args=ServerArgs(model_path='/models/nova', tokenizer_path='/models/nova', tp_size=2)"
DECODE = (
    "[2026-03-02 10:00:0{s} TP0] Decode batch. #running-req: 9, #token: 8123, token usage: 0.11, cuda graph: True, "
    "gen throughput (token/s): 511.20, #queue-req: 0, "
)
ERROR = """[2026-03-02 10:00:09 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 3080, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/opt/sglang/srt/managers/scheduler.py", line 1121, in event_loop_overlap
    batch_result = self.run_batch(batch)
RuntimeError: the widget is bent
"""


def _launch(tmp_path: Path, text: str) -> LaunchInfo:
    log = tmp_path / "server.log"
    log.write_text(text, encoding="utf-8")
    options = Options()
    knowledge = load(options)
    found = report(read([str(log)], options, knowledge), options, knowledge)
    return next(x for x in found.launches if x.id == found.focus)


def test_batch_lines_of_rank_0_prove_serving_for_a_rank_that_printed_nothing(tmp_path: Path) -> None:
    text = "\n".join(DECODE.format(s=s) for s in range(3)) + "\n" + ERROR
    first = _launch(tmp_path, text).first_failure
    assert first is not None and first.stage == "decode" and first.rank == "TP1"


def test_batch_lines_right_below_the_dump_prove_serving(tmp_path: Path) -> None:
    text = f"[2026-03-02 09:59:00] {ARGS}\n" + "\n".join(DECODE.format(s=s) for s in range(3)) + "\n" + ERROR
    first = _launch(tmp_path, text).first_failure
    assert first is not None and first.stage == "decode"


def test_a_traceback_logged_as_error_in_request_is_a_request_s(tmp_path: Path) -> None:
    text = "\n".join(DECODE.format(s=s) for s in range(3)) + (
        "\n[2026-03-02 10:00:05] Error in request: cannot identify image file\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/sglang/srt/multimodal/processors/base_processor.py", line 401, in _load_single_item\n'
        "    img, _ = load_image(data)\n"
        "RuntimeError: cannot identify image file\n"
        '[2026-03-02 10:00:05] INFO:     10.0.0.8:40112 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n'
        + DECODE.format(s=8)
        + "\n"
    )
    launch = _launch(tmp_path, text)
    assert launch.ended != "crashed"
    assert launch.first_failure is not None and launch.first_failure.stage == "client"


def test_a_pod_description_below_the_log_states_the_memory_kill(tmp_path: Path) -> None:
    text = (
        f"[2026-03-02 09:59:00] {ARGS}\n"
        "[2026-03-02 09:59:09 TP0] Load weight begin. avail mem=78.10 GB\n"
        "Loading safetensors checkpoint shards:  40% Completed | 4/10 [00:20<00:30,  5.00s/it]\n"
        "    Last State:     Terminated\n"
        "      Reason:       OOMKilled\n"
        "      Exit Code:    137\n"
    )
    launch = _launch(tmp_path, text)
    assert launch.first_failure is not None and launch.first_failure.where.line == 5
    assert launch.hypotheses[0].finding == "host-oom-killer-during-weight-load"


def test_what_a_shortened_dump_lacks_proves_no_age(tmp_path: Path) -> None:
    names = [
        "tokenizer_mode",
        "skip_tokenizer_init",
        "load_format",
        "trust_remote_code",
        "dtype",
        "kv_cache_dtype",
        "quantization",
        "context_length",
        "device",
        "served_model_name",
        "is_embedding",
        "revision",
        "host",
        "port",
        "mem_fraction_static",
        "max_running_requests",
        "max_total_tokens",
        "chunked_prefill_size",
        "max_prefill_tokens",
        "schedule_policy",
        "schedule_conservativeness",
        "page_size",
        "pp_size",
        "stream_interval",
        "random_seed",
        "watchdog_timeout",
        "dist_timeout",
        "base_gpu_id",
        "log_level",
        "log_requests",
        "api_key",
        "load_balance_method",
        "ep_size",
        "dist_init_addr",
        "nnodes",
        "node_rank",
        "json_model_override_args",
        "attention_backend",
        "sampling_backend",
        "speculative_algorithm",
        "enable_dp_attention",
        "disable_radix_cache",
        "disable_cuda_graph",
        "moe_a2a_backend",
        "disaggregation_mode",
    ]
    dump = ", ".join(f"{name}=None" for name in names)
    version = _launch(tmp_path, f"[2026-03-02 09:59:00] server_args=ServerArgs(model_path='/m', {dump})\n").version
    assert not any("lacks" in ground.reason for ground in version.grounds)
    assert version.high == "0.5.18"
