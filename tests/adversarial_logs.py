"""Logs made to be expensive: each kind aims at one part of the reader. Sizes are bytes; content is deterministic."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

START = b"[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.10 GB\n"
END = b'[2026-03-01 11:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File "/opt/sglang/srt/a.py", line 1, in f\nRuntimeError: CUDA error: an illegal memory access was encountered\nKilled\n'


def _normal(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        yield (
            b"[2026-03-01 10:%02d:%02d TP%d] Decode batch. #running-req: %d, #token: %d, token usage: 0.%02d, cuda graph: True, gen throughput (token/s): %d.10, #queue-req: 0,\n"
            % (i // 60 % 60, i % 60, i % 8, i % 50, i, i % 100, i % 900)
        )


def _long_line(size: int) -> Iterator[bytes]:
    yield b"[2026-03-01 10:00:01 TP0] RuntimeError: "
    for _ in itertools.repeat(None, size >> 16):
        yield b"a" * (1 << 16)
    yield b"\n"


def _long_brackets(size: int) -> Iterator[bytes]:
    for char in b"[({'\"|#0 .-=:/\x1b\r\\":
        yield b"[2026-03-01 10:00:01 TP0] " + bytes([char]) * (size // 18) + b"\n"


def _nested(size: int) -> Iterator[bytes]:
    kinds = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"A(", b")"), (b"{'a': ", b"}"))
    for opening, closing in itertools.cycle(kinds):
        depth = min(20_000, size // 30)
        yield (
            b"[2026-03-01 10:00:01] server_args=ServerArgs(model_path='/m', a="
            + opening * depth
            + closing * depth
            + b", tp_size=8)\n"
        )
        yield b"[2026-03-01 10:00:01] server_args={'model_path': '/m', 'a': " + opening * depth + b"\n"


def _args_flood(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        yield (
            b"[2026-03-01 10:00:01] server_args=ServerArgs("
            + b", ".join(b"x%d='\\'%d\\\\'" % (j, i) for j in range(300))
            + b"\n"
        )


def _shapes(_: int) -> Iterator[bytes]:
    rng = random.Random(3)
    letters = "abcdefghijklmnopqrstuvwxyz"
    while True:
        words = " ".join("".join(rng.choices(letters, k=6)) for _ in range(4))
        yield f"[2026-03-01 10:00:01 TP0] {words}\n".encode()


def _errors(_: int) -> Iterator[bytes]:
    for line in _shapes(0):
        yield line.replace(b"TP0] ", b"TP0] ERROR failed to ")


def _frames(_: int) -> Iterator[bytes]:
    while True:
        yield b"[2026-03-01 10:00:01 TP1] Scheduler hit an exception: Traceback (most recent call last):\n"
        for i in range(10_000):
            yield b'  File "/opt/sglang/srt/a%d.py", line %d, in f%d\n    return f(x)\n' % (i % 7, i, i)
        yield b"RecursionError: maximum recursion depth exceeded\n"


def _chains(_: int) -> Iterator[bytes]:
    while True:
        yield b'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nValueError: x\n\nDuring handling of the above exception, another exception occurred:\n\n'


def _ranks(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        yield b"[2026-03-01 10:00:01 TP%d] Load weight end. elapsed=1 s\n" % i


def _axes(_: int) -> Iterator[bytes]:
    names = ("".join(x) for x in itertools.cycle(itertools.product("ABCDEFGHIJKLMNOPQRSTUVWXYZ", repeat=4)))
    for i, name in enumerate(names):
        yield f"[2026-03-01 10:00:01 {name}{i} TP0 EP3] Load weight end. elapsed=1 s\n".encode()


def _launches(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        yield (
            b"[2026-03-01 10:00:%02d] server_args=ServerArgs(model_path='/m%d', tp_size=1, port=%d)\n[2026-03-01 10:00:59] The server is fired up and ready to roll!\n"
            % (i % 58, i % 3, i)
        )


def _stamps(_: int) -> Iterator[bytes]:
    for stamp in itertools.cycle(
        (
            b"9999-99-99 99:99:99",
            b"0000-00-00 00:00:00",
            b"0001-01-01 00:00:01",
            b"9999-12-31 23:59:59",
            b"2026-03-01 10:00:00",
            b"1970-01-01 00:00:00",
            b"2026-02-30 24:60:60",
            b"1899-12-31 23:59:59",
        )
    ):
        yield b"[" + stamp + b" TP0] Load weight begin. avail mem=1.0 GB\n"


def _asserts(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        yield (
            b"/pytorch/aten/src/ATen/native/cuda/Indexing.cu:1: f: block: [%d,0,0], thread: [%d,0,0] Assertion `index < size` failed.\n"
            % (i, i % 128)
        )


def _wrapped(_: int) -> Iterator[bytes]:
    inner = '{"log":"' + "\\u001b[3m\\\\\\n\\t" * 400 + '\\n","stream":"stderr","time":"2026-03-01T10:00:00Z"}\n'
    while True:
        yield inner.encode()
        yield b"(a pid=1) " * 200 + b"x\n"
        yield b"2026-03-01T10:00:00Z stdout P " * 30 + b"x\n"


def _glued(_: int) -> Iterator[bytes]:
    while True:
        yield b"x[2026-03-01 10:00:01 TP0] a" * 400 + b"\n"
        yield b"\r".join(b" %d%%|x| %d/9 [00:00<00:00, 1.0it/s]" % (i % 100, i) for i in range(400)) + b"\n"


def _batches(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        keys = b", ".join(b"key%d x: %d" % (i * 40 + j, j) for j in range(40))
        yield b"[2026-03-01 10:00:01 TP0] Decode batch. " + keys + b"\n"


def _commands(_: int) -> Iterator[bytes]:
    for i in itertools.count():
        yield b"+ A=1 B='x' python -m sglang.launch_server --model-path /m " + b"--a-%d 'x\" " % i * 300 + b"\n"


def _baits(_: int) -> Iterator[bytes]:
    while True:
        for piece in (
            b"Tried to allocate 1 GiB ",
            b"SeqNum=1, OpType=A, NumelIn=1 ",
            b"sglang version: 1.1.1.1.1",
            b"argument --a",
            b"a.a.a.a",
            b"A=1 ",
            b"x: line 1: ",
            b"GPU 1: a ",
            b"| 1  abcdefgh  ",
            b"self.total_size.available",
            b"'a' = 'b' ",
            b"/a/a/a",
            b"1 Killed",
            b"frame #1: ",
            b"--a=b ",
            b"RayTaskError(",
            b"serving_a",
        ):
            yield b"[2026-03-01 10:00:01 TP0] ERROR " + piece * (60_000 // len(piece)) + b"\n"


def _binary(_: int) -> Iterator[bytes]:
    rng = random.Random(5)
    while True:
        yield b"[2026-03-01 10:00:01 TP0] " + bytes(rng.choice(b"\x80\xff\xc3\xe2abc ") for _ in range(200)) + b"\n"


LOGS: dict[str, Callable[[int], Iterator[bytes]]] = {
    "normal": _normal,
    "one long line": _long_line,
    "lines of one character": _long_brackets,
    "nested server_args": _nested,
    "server_args flood": _args_flood,
    "distinct shapes": _shapes,
    "distinct errors": _errors,
    "recursive tracebacks": _frames,
    "exception chains": _chains,
    "a million ranks": _ranks,
    "axes": _axes,
    "launches": _launches,
    "absurd times": _stamps,
    "assert flood": _asserts,
    "wrappers": _wrapped,
    "glued lines": _glued,
    "batch keys": _batches,
    "commands": _commands,
    "pattern baits": _baits,
    "broken bytes": _binary,
}
SMALL: dict[str, int] = {
    "one long line": 20 << 20,
    "distinct shapes": 2 << 20,
    "server_args flood": 200_000,
    "launches": 400_000,
}
"""Bytes that tests use where the default of 1 MiB would miss the limit that is aimed at, or take long."""


def write(name: str, path: Path, size: int) -> None:
    """Write about `size` bytes of one kind, between the start and the crash of a launch."""
    written = 0
    with path.open("wb") as file:
        file.write(START)
        for part in LOGS[name](size):
            file.write(part)
            written += len(part)
            if written >= size:
                break
        file.write(END if part.endswith(b"\n") else b"\n" + END)
