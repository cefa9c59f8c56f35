"""Streams without random access (stdin, gz, zst) are spooled to an unnamed temporary file, with a bound."""

from __future__ import annotations

import gzip
import io
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, BinaryIO, cast

import zstandard

from forensics.errors import InputError

MAX_SPOOL = 64 << 30
"""Most bytes that one stream may unfold to."""
MAX_RATIO = 1000
"""Most times that a compressed file may grow (checked beyond 256 MB); logs reach 10 to 60."""
_RATIO_FLOOR = 256 << 20
_STEP = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


def compression_of(head: bytes) -> str | None:
    """`gz`, `zst` or None from the first bytes: the content decides, not the name."""
    if head.startswith(GZIP_MAGIC):
        return "gz"
    return "zst" if head.startswith(ZSTD_MAGIC) else None


def unfolded(head: bytes) -> bytes:
    """What the first bytes of a compressed log unfold to, bounded."""
    try:
        if compression_of(head) == "gz":
            return zlib.decompressobj(31).decompress(head, _STEP)
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(io.BytesIO(head))
        return bytes(reader.read(_STEP))
    except (zlib.error, zstandard.ZstdError):
        return b""


def spool(stream: IO[bytes], name: str, compressed_size: int | None = None) -> tuple[BinaryIO, int, tuple[str, ...]]:
    """Copy a stream to a temporary file.

    Gives the file, its size and notes. A damaged tail keeps what was readable before it; more than the bounds raises
    InputError (a decompression bomb must not fill the disk).
    """
    target = cast(BinaryIO, tempfile.TemporaryFile(prefix="forensics-"))  # noqa: SIM115 (lives as long as the source)
    size = 0
    notes: list[str] = []
    try:
        for block in _blocks(stream, notes):
            size += len(block)
            _check(name, size, compressed_size)
            target.write(block)
        target.flush()
    except BaseException:
        target.close()
        raise
    return target, size, tuple(notes)


def _blocks(stream: IO[bytes], notes: list[str]) -> Iterator[bytes]:
    # read1 gives what is there: a damaged tail does not take readable bytes before it along.
    read = getattr(stream, "read1", stream.read)
    while True:
        try:
            block = read(_STEP)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as problem:
            notes.append(f"compressed data ends early or is damaged ({problem}); read up to there")
            return
        if not block:
            return
        yield block


def _check(name: str, size: int, compressed: int | None) -> None:
    if size > MAX_SPOOL:
        raise InputError(
            f"{name}: unfolds to more than {MAX_SPOOL >> 30} GiB", hint="cut the part of interest out of it first"
        )
    if compressed is not None and size > _RATIO_FLOOR and size > MAX_RATIO * max(compressed, 1):
        raise InputError(
            f"{name}: unfolds to more than {MAX_RATIO} times its size: this looks like a decompression bomb",
            hint="if it is a real log, decompress it yourself and pass the plain file",
        )


def unpack(raw: BinaryIO, name: str, size: int, kind: str) -> tuple[BinaryIO, int, tuple[str, ...]]:
    """Spool what a gz or zst stream of `size` bytes unfolds to; gives the same as `spool`."""
    if kind == "gz":
        with gzip.GzipFile(fileobj=raw) as unpacked:
            return spool(cast(IO[bytes], unpacked), name, size)
    reader = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(
        raw, read_across_frames=True, closefd=False
    )
    with reader:
        return spool(cast(IO[bytes], reader), name, size)
