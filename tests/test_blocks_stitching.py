"""Blocks of several writers are put together again, each from its own lines."""

from __future__ import annotations

from functools import partial

import pytest
from block_kit import lines_of, read_blocks


@pytest.fixture
def blocks(tmp_path):
    return partial(read_blocks, tmp_path)


HEAD = "[2026-03-02 10:00:0{n} TP{n}] Scheduler hit an exception: Traceback (most recent call last):"


def test_chained_exceptions_are_oldest_first(blocks):
    _, found = blocks(
        """[2026-03-02 10:00:00 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/srv/runner.py", line 10, in capture
    self.run()
RuntimeError: stream is capturing

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/srv/scheduler.py", line 20, in init
    self.capture()
ValueError: capture failed

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/scheduler.py", line 30, in run
    self.init()
Exception: Capture cuda graph failed: stream is capturing
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
2. disable CUDA graph by --disable-cuda-graph.

[2026-03-02 10:00:01] Received sigquit from a child process. It usually means the child failed.
"""
    )
    block = found[0]
    assert [(r.type, r.link) for r in block.raised] == [
        ("RuntimeError", ""),
        ("ValueError", "cause"),
        ("Exception", "context"),
    ]
    assert str(block.rank) == "TP1"
    assert not block.truncated
    assert block.raised[0].frames[-1].function == "capture"
    assert block.raised[2].message == "Capture cuda graph failed: stream is capturing"
    assert [b.kind for b in found] == ["traceback", "capture-advice"]


def test_a_lone_capture_wrapper_gives_its_inner_exception_first(blocks):
    _, found = blocks(
        """Traceback (most recent call last):
  File "/srv/scheduler.py", line 30, in run
Exception: Capture cuda graph failed: AttributeError: 'Layer' object has no attribute 'scale'
"""
    )
    assert [(r.type, r.message) for r in found[0].raised] == [
        ("AttributeError", "'Layer' object has no attribute 'scale'"),
        ("Exception", "Capture cuda graph failed: AttributeError: 'Layer' object has no attribute 'scale'"),
    ]


def test_headers_of_other_ranks_inside_a_traceback(blocks):
    table, found = blocks(
        f"""{HEAD.format(n=0)}
  File "/srv/a.py", line 1, in outer
    inner()
[2026-03-02 10:00:00 TP3] Prefill batch, #new-seq: 1, #new-token: 5, #cached-token: 0, token usage: 0.0, #running-req: 0, #queue-req: 0
  File "/srv/a.py", line 2, in inner
    work()
ValueError: first
"""
    )
    assert len(found) == 1
    assert str(found[0].rank) == "TP0"
    assert [f.function for f in found[0].frames] == ["outer", "inner"]
    assert found[0].raised[0].message == "first"
    assert table.text(found[0].raised[0].row) == "ValueError: first"


def test_two_tracebacks_line_by_line_follow_their_frame_path(blocks):
    table, found = blocks(
        f"""{HEAD.format(n=0)}
{HEAD.format(n=1)}
  File "/srv/a.py", line 1, in outer
    return middle(x)
  File "/srv/a.py", line 1, in outer
    return middle(x)
  File "/srv/a.py", line 2, in middle
    return inner(x)
  File "/srv/a.py", line 2, in middle
    return inner(x)
  File "/srv/a.py", line 3, in inner
    raise ValueError
  File "/srv/a.py", line 3, in inner
    raise ValueError
ValueError: boom
ValueError: boom
"""
    )
    assert [str(b.rank) for b in found] == ["TP0", "TP1"]
    for block in found:
        assert [f.function for f in block.frames] == ["outer", "middle", "inner"]
        assert [r.type for r in block.raised] == ["ValueError"]
    assert {r for b in found for r in lines_of(table, b)} == set(range(1, 17)) - set()
    assert all("," in b.rank_by for b in found)


def test_a_second_head_before_the_first_traceback_ends(blocks):
    _, found = blocks(
        f"""{HEAD.format(n=0)}
  File "/srv/a.py", line 1, in outer
    return middle(x)
{HEAD.format(n=1)}
  File "/srv/a.py", line 1, in outer
    return middle(x)
  File "/srv/a.py", line 2, in middle
    return inner(x)
KeyError: 'b'
  File "/srv/a.py", line 2, in middle
    return inner(x)
KeyError: 'b'
"""
    )
    assert [[f.function for f in b.frames] for b in found] == [["outer", "middle"], ["outer", "middle"]]
    assert [b.truncated for b in found] == [False, False]


def test_every_line_with_its_own_header(blocks):
    _, found = blocks(
        """[2026-03-02 10:00:00 TP0] Traceback (most recent call last):
[2026-03-02 10:00:00 TP1] Traceback (most recent call last):
[2026-03-02 10:00:00 TP0]   File "/srv/a.py", line 1, in outer
[2026-03-02 10:00:00 TP1]   File "/srv/b.py", line 1, in outer
[2026-03-02 10:00:00 TP1]     g()
[2026-03-02 10:00:00 TP0]     f()
[2026-03-02 10:00:00 TP0] ValueError: zero
[2026-03-02 10:00:00 TP1] KeyError: one
[2026-03-02 10:00:01 TP1] Gracefully exiting
"""
    )
    assert [(str(b.rank), b.raised[0].type, len(b.rows)) for b in found] == [
        ("TP0", "ValueError", 4),
        ("TP1", "KeyError", 4),
    ]
    assert [b.frames[0].file for b in found] == ["/srv/a.py", "/srv/b.py"]
    assert all(b.rank_by == "header" for b in found)


def test_torchrun_prefixes_keep_ranks_apart(blocks):
    _, found = blocks(
        """[rank3]: Traceback (most recent call last):
[rank2]: Traceback (most recent call last):
[rank3]:   File "/srv/a.py", line 1, in <module>
[rank2]:   File "/srv/a.py", line 1, in <module>
[rank2]:     main()
[rank3]:     main()
[rank2]: torch.OutOfMemoryError: CUDA out of memory.
[rank3]: torch.distributed.DistBackendError: NCCL error
[rank3]: Last error:
"""
    )
    assert [(b.global_rank, b.raised[0].type) for b in found] == [
        (3, "torch.distributed.DistBackendError"),
        (2, "torch.OutOfMemoryError"),
    ]
    assert found[0].raised[0].message.endswith("Last error:")


def test_watchdog_reports_interleaved_by_frame_number(blocks):
    text = (
        "[rank{r}]:[E302 10:00:00.1 ProcessGroupNCCL.cpp:2068] [PG ID 2 PG GUID 3 Rank {r}] Process group watchdog thread "
        "terminated with exception: CUDA error: an illegal memory access was encountered\n"
    )
    _, found = blocks(
        text.format(r=1)
        + "frame #0: c10::Error::Error() + 0x80 (0x7f in /lib/libc10.so)\n"
        + text.format(r=5)
        + "frame #0: c10::Error::Error() + 0x80 (0x7f in /lib/libc10.so)\n"
        + "frame #1: c10d::Watchdog::run() + 0x10 (0x7f in /lib/libtorch_cuda.so)\n"
        + "frame #2: clone + 0x1 (0x7f in /lib/libc.so.6)\n"
    )
    assert [(b.kind, b.global_rank, b.rank) for b in found] == [("pg-watchdog", 1, None), ("pg-watchdog", 5, None)]
    assert found[1].frames[-1].function == "c10::Error::Error()"
    assert found[1].frames[0].file == "/lib/libc.so.6"
