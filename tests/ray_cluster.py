"""A real Ray cluster on loopback: a head without cores and worker nodes, each a process tree of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


def _ray() -> str:
    return str(Path(sys.executable).with_name("ray"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def tree(pid: int) -> list[int]:
    """A process and everything below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found += tree(int(child))
    return found


@dataclass
class Cluster:
    address: str
    folder: Path
    nodes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What nodes and drivers of this cluster run with: Ray's authentication is on, with a token made for this
        cluster alone."""
        return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}

    def start(self, *arguments: str) -> None:
        """Start one node and keep its process in hand."""
        command = [_ray(), "start", "--block", "--disable-usage-stats", "--object-store-memory=80000000", *arguments]
        with (self.folder / f"node{len(self.nodes)}.txt").open("wb") as said:
            self.nodes.append(subprocess.Popen(command, stdout=said, stderr=said, env=self.environment))

    def told(self) -> str:
        """The last words of every node, for a test that fails."""
        return "\n".join(p.read_text(errors="replace")[-800:] for p in sorted(self.folder.glob("node*.txt")))

    def join(self) -> None:
        """Start a worker node and wait until it is up; a busy machine may need a second try."""
        for _ in range(3):
            self.start(f"--address={self.address}", "--num-cpus=1", "--node-ip-address=127.0.0.1")
            node, said = self.nodes[-1], self.folder / f"node{len(self.nodes) - 1}.txt"
            while node.poll() is None:
                if "Ray runtime started" in said.read_text(errors="replace"):
                    return
                time.sleep(0.1)
            self.nodes.pop()
        raise TimeoutError(f"no node joins the cluster: {said.read_text(errors='replace')[-800:]}")

    def kill(self, node: int) -> None:
        """End a node at once, workers and all, as a lost host would."""
        for pid in reversed(tree(self.nodes[node].pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.nodes[node].wait()

    def close(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.poll() is None:
                self.kill(number)


@contextlib.contextmanager
def cluster(workers: int) -> Iterator[Cluster]:
    """A head and `workers` worker nodes with one core each, ended by id at the end."""
    folder = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    port = _free_port()
    made = Cluster(f"127.0.0.1:{port}", folder)
    try:
        made.start(
            "--head",
            f"--port={port}",
            "--num-cpus=0",
            "--include-dashboard=false",
            f"--temp-dir={folder}/ray",
            "--node-ip-address=127.0.0.1",
        )
        _wait_for(port)
        for _ in range(workers):
            made.join()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise TimeoutError("the head of the cluster did not come up")
