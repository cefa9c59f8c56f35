"""Whatever lines come in whatever order: blocks and facts are made, none raises, no row is used twice by tracebacks."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.engine.scan import scan
from forensics.grammar.blocks import find_blocks
from forensics.timeline.facts import collect_facts
from forensics.timeline.version import infer_version

LINES = (
    "[2026-03-02 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    "[2026-03-02 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):",
    "Traceback (most recent call last):",
    '  File "/srv/a.py", line 1, in outer',
    '  File "/srv/b.py", line 2, in inner',
    "    work(x)",
    "    ^^^^^^^",
    "ValueError: bad value",
    "KeyError",
    "",
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
    "  + Exception Group Traceback (most recent call last):",
    "  | ExceptionGroup: several (2 sub-exceptions)",
    "  +-+---------------- 1 ----------------",
    "    | ValueError: inner",
    "[rank3]: Traceback (most recent call last):",
    "[rank3]: RuntimeError: x",
    "[rank1]:[E302 10:00:00.1 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation timeout",
    "frame #0: c10::Error::Error() + 0x80 (0x7f in /lib/libc10.so)",
    "frame #1: run + 0x1 (0x7f in /lib/libc.so.6)",
    "terminate called after throwing an instance of 'c10::Error'",
    "  what():  CUDA error",
    "Fatal Python error: Aborted",
    "Current thread 0x00007f0000000002 (most recent call first):",
    '  File "/srv/k.py", line 12 in launch',
    "Process 77: sglang::scheduler_TP1",
    'Thread 77 (idle): "MainThread"',
    "    recv (srv/scheduler.py:90)",
    "/a/Index.cu:92: op: block: [0,0,0], thread: [1,0,0] Assertion `i < n` failed.",
    "usage: launch_server.py [-h]",
    "launch_server.py: error: unrecognized arguments: --x",
    "Possible solutions:",
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
    "ptxas fatal   : Ptx assembly aborted due to errors",
    "ray.exceptions.RayTaskError(ValueError): ray::f() (pid=1, ip=1.1.1.1)",
    "multiprocessing.pool.RemoteTraceback:",
    "[2026-03-02 10:00:00] server_args=ServerArgs(model_path='/m', tp_size=2, x=[1, {'a': ",
    "+ python3 -m sglang.launch_server --tp 2 'unclosed",
    "[2026-03-02 10:00:01 TP0] Load weight end. type=AForCausalLM, dtype=torch.bfloat16, avail mem=1.0 GB",
    "plain text",
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(LINES), max_size=60))
def test_any_order_of_lines(tmp_path, lines):
    path = tmp_path / "log"
    path.write_text("\n".join(lines) + "\n")
    if not path.read_text().strip():
        return
    table = scan([path])
    blocks = find_blocks(table)
    assert blocks == find_blocks(table)
    used = [row for b in blocks if b.kind == "traceback" for row in b.rows]
    assert len(used) == len(set(used))
    for block in blocks:
        assert list(block.rows) == sorted(block.rows)
        assert all(r.row in block.rows for r in block.raised)
    rows = np.arange(len(table))
    infer_version(table, rows, collect_facts(table, rows, blocks))
