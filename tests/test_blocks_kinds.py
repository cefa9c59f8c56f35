"""Every kind of block from its own lines: floods, dumps, foreign tracebacks, compilers, wrappers."""

from __future__ import annotations

from functools import partial

import pytest
from block_kit import read_blocks


@pytest.fixture
def blocks(tmp_path):
    return partial(read_blocks, tmp_path)


def test_assert_flood_is_one_block(blocks):
    flood = "".join(
        f"/pytorch/aten/src/ATen/native/cuda/Index.cu:92: op: block: [{b},0,0], thread: [{t},0,0] Assertion `i < n` failed.\n"
        for b in range(20)
        for t in range(50)
    )
    _, found = blocks(flood + 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nRuntimeError: x\n')
    assert [(b.kind, b.count) for b in found] == [("cuda-assert", 1000), ("traceback", 1)]
    assert found[0].raised[0].message == "`i < n` failed."


def test_process_and_asgi_leads(blocks):
    _, found = blocks(
        """Process SpawnProcess-1:
Traceback (most recent call last):
  File "/usr/lib/process.py", line 314, in _bootstrap
    self.run()
EOFError
[2026-03-02 10:00:00] ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File "/srv/uvicorn.py", line 4, in run_asgi
    await app()
KeyError: 'rid'
"""
    )
    assert [b.raised[0].type for b in found] == ["EOFError", "KeyError"]
    assert [len(b.rows) for b in found] == [5, 5]


def test_exception_group_has_its_inner_exception_first(blocks):
    _, found = blocks(
        """  + Exception Group Traceback (most recent call last):
  |   File "/srv/app.py", line 5, in serve
  |     await group()
  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/app.py", line 9, in task
    |     raise ValueError("bad")
    | ValueError: bad
    +------------------------------------
"""
    )
    assert [(r.type, r.link) for r in found[0].raised] == [("ValueError", ""), ("ExceptionGroup", "cause")]


def test_truncated_tracebacks_are_still_blocks(blocks):
    _, found = blocks(
        """  File "/srv/a.py", line 7, in inner
    f()
OSError: [Errno 28] No space left on device
[2026-03-02 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/a.py", line 1, in outer
    g()
"""
    )
    assert [(b.truncated, [r.type for r in b.raised]) for b in found] == [(True, ["OSError"]), (True, [])]


def test_faulthandler_names_the_current_threads_frames(blocks):
    _, found = blocks(
        """Fatal Python error: Segmentation fault

Thread 0x00007f0000000001 (most recent call first):
  File "/usr/lib/threading.py", line 324 in wait
  File "/usr/lib/queue.py", line 180 in get

Current thread 0x00007f0000000002 (most recent call first):
  File "/srv/kernel.py", line 12 in launch
  File "/srv/model.py", line 99 in forward

Extension modules: numpy.core, torch._C (total: 2)
"""
    )
    block = found[0]
    assert block.kind == "faulthandler"
    assert block.raised[0].message == "Segmentation fault"
    assert [f.function for f in block.frames] == ["forward", "launch"]


def test_py_spy_dump_is_one_block_a_process(blocks):
    _, found = blocks(
        """Process 77: sglang::scheduler_DP0_TP1
Python v3.12.3 (/usr/bin/python3.12)

Thread 77 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3080)
    recv (srv/scheduler.py:90)
Thread 80 (idle): "watchdog"
    wait (threading.py:10)
Process 78: sglang::scheduler_DP0_TP2
Python v3.12.3 (/usr/bin/python3.12)

Thread 78 (idle): "MainThread"
    broadcast (torch/distributed/distributed_c10d.py:2979)
"""
    )
    assert [(b.kind, str(b.rank), b.frames[-1].function) for b in found] == [
        ("py-spy", "DP0 TP1", "all_reduce"),
        ("py-spy", "DP0 TP2", "broadcast"),
    ]


def test_argparse_error_and_native_abort(blocks):
    _, found = blocks(
        """usage: launch_server.py [-h] --model-path MODEL_PATH
                        [--tp-size TP_SIZE]
launch_server.py: error: unrecognized arguments: --tensor 4
terminate called after throwing an instance of 'c10::Error'
  what():  CUDA error: out of memory
Aborted (core dumped)
"""
    )
    assert [(b.kind, b.raised[0].type, b.raised[0].message) for b in found] == [
        ("argparse", "ArgumentError", "unrecognized arguments: --tensor 4"),
        ("cxx-terminate", "c10::Error", "CUDA error: out of memory"),
    ]


def test_ray_remote_traceback_is_the_cause(blocks):
    _, found = blocks(
        """ray.exceptions.RayTaskError(ValueError): ray::Engine.start() (pid=811, ip=10.0.0.4)
  File "/srv/engine.py", line 8, in start
    check()
ValueError: bad layout
"""
    )
    assert [r.type for r in found[0].raised] == ["ValueError", "ray.exceptions.RayTaskError(ValueError)"]


def test_multiprocessing_remote_traceback(blocks):
    _, found = blocks(
        '''multiprocessing.pool.RemoteTraceback:
"""
Traceback (most recent call last):
  File "/usr/lib/pool.py", line 125, in worker
    result = f()
IndexError: list index out of range
"""

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/main.py", line 3, in <module>
    pool.map(f)
IndexError: list index out of range
'''
    )
    assert len(found) == 1
    assert [r.type for r in found[0].raised if r.frames] == ["IndexError", "IndexError"]
    assert found[0].raised[-1].link == "cause"


def test_nothing_of_a_quiet_log_is_a_block(blocks):
    _, found = blocks("[2026-03-02 10:00:00 TP0] Load weight begin. avail mem=70.1 GB\nplain words\n")
    assert found == ()


def test_labels_of_a_wrapper_keep_writers_apart(blocks):
    _, found = blocks(
        """(SchedulerActor pid=811) Traceback (most recent call last):
(SchedulerActor pid=812) Traceback (most recent call last):
(SchedulerActor pid=811)   File "/srv/a.py", line 1, in outer
(SchedulerActor pid=812)   File "/srv/a.py", line 1, in outer
(SchedulerActor pid=812)     f()
(SchedulerActor pid=812) KeyError: 'b'
(SchedulerActor pid=811)     f()
(SchedulerActor pid=811) ValueError: a
"""
    )
    assert [[r.type for r in b.raised] for b in found] == [["ValueError"], ["KeyError"]]
    assert [len(b.rows) for b in found] == [4, 4]


def test_compose_service_lines(blocks):
    _, found = blocks(
        """worker-1  | [2026-03-02 10:00:00 TP2] Scheduler hit an exception: Traceback (most recent call last):
router-1  | plain line of another service
worker-1  |   File "/srv/a.py", line 1, in outer
worker-1  |     f()
worker-1  | torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
router-1  | another one
"""
    )
    assert [(str(b.rank), [r.type for r in b.raised]) for b in found] == [("TP2", ["torch.OutOfMemoryError"])]
    assert found[0].raised[0].message == "CUDA out of memory. Tried to allocate 2.00 GiB."


def test_a_compile_error_message_keeps_its_last_line(blocks):
    _, found = blocks(
        """[2026-03-02 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/triton/code_generator.py", line 1, in ast_to_ttir
    raise CompilationError
triton.compiler.errors.CompilationError: at 12:4:
    x = tl.load(ptr)
    y = x.to(tl.float8e4nv)
        ^
ValueError("type fp8e4nv not supported in this architecture")

[2026-03-02 10:00:01] Received sigquit from a child process. It usually means the child failed.
"""
    )
    assert len(found) == 1
    assert found[0].raised[0].message.splitlines()[0] == "at 12:4:"
    assert found[0].raised[0].message.splitlines()[-1].startswith("ValueError(")


def test_ptxas_errors_are_a_block(blocks):
    _, found = blocks(
        """ptxas /tmp/tmpabc.ptx, line 77; error   : Feature '.tile' not supported on .target 'sm_120'
ptxas /tmp/tmpabc.ptx, line 91; error   : Feature '.tile' not supported on .target 'sm_120'
ptxas fatal   : Ptx assembly aborted due to errors
"""
    )
    assert [(b.kind, len(b.rows)) for b in found] == [("triton-compile", 3)]
    assert "not supported on .target" in found[0].raised[0].message


def test_nccl_warnings_run_together(blocks):
    _, found = blocks(
        """node-a:811:900 [3] transport/net_ib.cc:94 NCCL WARN Got completion from peer with status=12
node-a:811:900 [3] NCCL INFO transport/net.cc:1 -> 6
"""
    )
    assert [(b.kind, len(b.rows)) for b in found] == [("nccl", 1)]


def test_an_unrelated_record_above_a_bare_traceback_gives_no_rank(blocks):
    _, found = blocks(
        """[2026-03-02 10:00:00 TP3] Load weight begin. avail mem=70.10 GB
Traceback (most recent call last):
  File "/srv/a.py", line 1, in <module>
KeyboardInterrupt
[2026-03-02 10:00:00 TP2] ERROR: worker loop failed with an exception
Traceback (most recent call last):
  File "/srv/a.py", line 1, in <module>
ZeroDivisionError: division by zero
"""
    )
    assert [(b.rank and str(b.rank), b.raised[0].type) for b in found] == [
        (None, "KeyboardInterrupt"),
        ("TP2", "ZeroDivisionError"),
    ]


def test_a_native_trace_inside_a_message_is_no_second_traceback(blocks):
    _, found = blocks(
        """[2026-03-02 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/kernel.py", line 4, in launch
    run()
tvm.error.InternalError: Traceback (most recent call last):
  File "/src/native.cc", line 120, in Launch()
InternalError: Check failed: (status == 0) is false
[2026-03-02 10:00:01] Received sigquit from a child process. It usually means the child failed.
"""
    )
    assert [[r.type for r in b.raised] for b in found] == [["tvm.error.InternalError"]]
    assert found[0].raised[0].message.endswith("Check failed: (status == 0) is false")
    assert [f.function for f in found[0].frames] == ["launch"]


def test_a_watchdog_line_without_its_rank_in_the_text(blocks):
    _, found = blocks(
        "[rank6]:[E302 10:00:00.1 ProcessGroupNCCL.cpp:629] Some NCCL operations have failed or timed out.\n"
        "[rank6]:[W302 10:00:00.1 ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group() was not called\n"
    )
    assert [(b.kind, b.global_rank) for b in found] == [("pg-watchdog", 6)]
    assert found[0].raised[0].message == "Some NCCL operations have failed or timed out."
