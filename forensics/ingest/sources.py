"""Random access to one input as it was at the moment of opening: plain files and spooled streams."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import BinaryIO

_NODE = re.compile(r"(?:^|[^a-z])(?:node|host|worker|machine)[-_.]?(?:rank)?[-_.]?(\d+)(?!\d)", re.IGNORECASE)


@dataclass(slots=True)
class Source:
    """One opened input.

    `name` is the input as the user named it, `size` its decompressed length in bytes when it was opened (a file that
    grows is read up to there). `compression` is gz, zst or None; `node` a hint from the file name (`node1`).
    `rotation` is the age in a rotated set (0 newest). `notes` say what was odd about opening it.
    """

    name: str
    size: int
    handle: BinaryIO
    compression: str | None = None
    node: str | None = None
    rotation: int = 0
    notes: tuple[str, ...] = ()

    def pread(self, offset: int, length: int) -> bytes:
        """Bytes at `offset` of the decompressed stream; fewer than `length` only at the end."""
        wanted = min(length, self.size - offset)
        if wanted <= 0:
            return b""
        data = os.pread(self.handle.fileno(), wanted, offset)
        while len(data) < wanted:
            more = os.pread(self.handle.fileno(), wanted - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def read_into(self, offset: int, memory: memoryview) -> int:
        """Fill `memory` from `offset` on; gives how many bytes were there, fewer than asked for only at the end."""
        if not hasattr(os, "preadv"):
            data = self.pread(offset, len(memory))
            memory[: len(data)] = data
            return len(data)
        wanted, have = min(len(memory), self.size - offset), 0
        while have < wanted:
            more = os.preadv(self.handle.fileno(), [memory[have:wanted]], offset + have)
            if not more:
                break
            have += more
        return have

    def close(self) -> None:
        """Give the file descriptor back (spooled copies vanish with it)."""
        self.handle.close()


def node_hint(name: str) -> str | None:
    """Node named by a file or folder name such as `log.node0.txt` or `node-1/server.log`, as `node0`."""
    found = _NODE.findall(name.replace("\\", "/").rpartition("/")[2]) or _NODE.findall(name)
    return f"node{int(found[-1])}" if found else None
