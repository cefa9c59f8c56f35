"""The failing component comes from the exception that states the failure, not from what wraps it."""

from __future__ import annotations

from pathlib import Path

import pytest
from timeline_logs import args, at, launches

from forensics.schema.block import Frame
from forensics.schema.launch import Failure
from forensics.timeline import component
from forensics.timeline.arithmetic import exit_code_in

SITE = "/opt/venv/lib/python3.12/site-packages"
WRAPPED = """{head} Scheduler hit an exception: Traceback (most recent call last):
  File "{site}/sglang/srt/model_executor/cuda_graph_runner.py", line 635, in capture_one_batch_size
{inner}

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "{site}/sglang/srt/managers/scheduler.py", line 2415, in run_scheduler_process
  File "{site}/sglang/srt/model_executor/model_runner.py", line 383, in init_device_graphs
Exception: Capture cuda graph failed: see above
"""


def failed(folder: Path, inner: str) -> Failure:
    text = WRAPPED.format(head=at(30, "TP0"), site=SITE, inner=inner.format(site=SITE))
    launch = launches(folder, [args(0), *text.splitlines()])[1][0]
    found = launch.failure(launch.first_failure)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("inner", "wanted"),
    [
        ('  File "{site}/sglang/srt/distributed/device_communicators/custom_all_reduce.py", line 88, in __init__\nRuntimeError: invalid argument', "communication"),
        ('  File "{site}/deep_gemm/jit/build.py", line 12, in load\nAssertionError: Too many kernels in the library', "kernel"),
        ('  File "{site}/triton/runtime/cache.py", line 99, in put\nOSError: [Errno 28] No space left on device: \'/x\'', "kernel"),
        ('  File "{site}/torch/cuda/__init__.py", line 476, in set_device\nRuntimeError: CUDA error: out of memory', "host"),
        ('  File "{site}/sglang/srt/layers/sampler.py", line 5, in forward\nRuntimeError: bad value', "sampling"),
    ],
)  # fmt: skip
def test_the_stating_exception_names_the_component(inner: str, wanted: str, tmp_path: Path) -> None:
    assert failed(tmp_path, inner).component == wanted


def test_a_failed_build_is_stated_by_the_exception_that_quotes_the_compiler(tmp_path: Path) -> None:
    inner = (
        '  File "{site}/flashinfer/jit/cpp_ext.py", line 299, in run_ninja\n'
        "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.\n"
        "\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\n"
        "RuntimeError: Ninja build failed. Ninja output:\n"
        "/opt/include/tensor_fill.h:41:10: fatal error: curand_kernel.h: No such file or directory"
    )
    found = failed(tmp_path, inner)
    assert found.text.startswith("RuntimeError: Ninja build failed")
    assert "fatal error: curand_kernel.h" in found.text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Child process unexpectedly failed with exitcode=9. pid=412", -9),
        ("Child process unexpectedly failed with exitcode=131. pid=412", -3),
        ("Child process unexpectedly failed with exitcode=256. pid=412", 1),
        ("Subprocess scheduler_0 (pid=5) crashed with exit code -11. Triggering SIGQUIT", -11),
        ("Exit code: 255", 255),
        ("Child process unexpectedly failed with an exit code 9. pid=1882", -9),
        ("Scheduler or DataParallelController 7719 terminated with -9", -9),
        ("sglang-1 exited with code 137", 137),
        ("Command '['ninja']' returned non-zero exit status 1.", None),
        ("no code here", None),
    ],
)
def test_a_raw_wait_status_is_read_as_signal_or_code(text: str, code: int | None) -> None:
    assert exit_code_in(text) == code


def test_a_line_without_a_stack_is_placed_by_its_own_header() -> None:
    assert component.of_message("E0619 02:40:25.441629  1555 tcp_transport.cpp:136] Session failed") == "kv-transfer"
    assert component.of_message("h17:11978:12642 [0] ib_plugin.c:1075 NCCL WARN NET/IB : x") == "communication"
    assert component.of_message("nothing of this kind") == ""


def test_the_innermost_telling_frame_decides() -> None:
    frames = (
        Frame(0, f"{SITE}/sglang/srt/speculative/eagle_worker.py", 1, "verify"),
        Frame(0, f"{SITE}/torch/nn/modules/module.py", 1, "forward"),
    )
    assert component.component_of(frames) == "speculative"
