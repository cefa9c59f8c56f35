"""Runs `forensics replay` against the stand-in server of tests/fake_server."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

FAKE = Path(__file__).parent / "fake_server"
FORENSICS = [sys.executable, "-m", "forensics"]
QUICK = ("--requests", "6", "--tokens", "8", "--settle", "0.5")


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def command(folder: Path, *flags: str, needs: str = "", fails: str = "nan", port: int = 0, env: str = "") -> str:
    """A launch command of the stand-in; the model is a folder that is there."""
    (folder / "model").mkdir(exist_ok=True)
    told = f"FAKE_NEEDS='{needs}' FAKE_FAILS={fails} FAKE_STARTS={folder}/starts {env}".strip()
    words = (
        f"{told} PYTHONPATH={FAKE} {sys.executable} -m sglang.launch_server --model-path {folder}/model --device cpu"
    )
    return f"{words} --port {port or free_port()} {' '.join(flags)}".strip()


def replay(folder: Path, *args: str, quick: bool = True, timeout: float = 120, **more) -> subprocess.CompletedProcess:
    """`forensics replay … --runs runs --db history.db` in `folder`."""
    words = [*FORENSICS, "replay", *args, "--runs", "runs", "--db", "history.db", *(QUICK if quick else ())]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=timeout, **more)


def verdict(done: subprocess.CompletedProcess) -> str:
    found = re.search(r"^Verdict: (\S+)", done.stdout, re.M)
    assert found, done.stdout + done.stderr
    return found.group(1)


def starts(folder: Path) -> list[str]:
    """The arguments of every server that was started, in order."""
    path = folder / "starts"
    return path.read_text().splitlines() if path.exists() else []


def journal(folder: Path) -> dict:
    (run,) = (folder / "runs").iterdir()
    return json.loads((run / "run.json").read_text())


def running(folder: Path) -> list[int]:
    """Processes of the stand-in that serve this folder's model."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if entry.name.isdigit() and b"sglang.launch_server" in words and os.fsencode(f"{folder}/model") in words:
            found.append(int(entry.name))
    return found
