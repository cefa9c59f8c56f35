"""A real sglang server on CPU: its environment is built by tests/server/ensure.sh and named by FORENSICS_SERVER."""

import os
import socket
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def server_home() -> Path:
    named = os.environ.get("FORENSICS_SERVER")
    if not named:
        pytest.skip("the server's environment is not built: FORENSICS_SERVER=$(bash tests/server/ensure.sh)")
    return Path(named)


@pytest.fixture
def port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


@pytest.fixture
def launch(server_home, port):
    """A function from flags to a launch command of the tiny or the hot model."""

    def make(*flags: str, model: str = "models-hot", check: bool = True) -> str:
        env = "SGLANG_USE_CPU_ENGINE=1 HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1"
        nan = " SGLANG_ENABLE_NAN_LOGITS_CHECK=1" if check else ""
        return (
            f"{env}{nan} PYTHONPATH={server_home}/stub {server_home}/venv/bin/python -m sglang.launch_server "
            f"--model-path {server_home}/{model} --device cpu --attention-backend torch_native "
            f"--host 127.0.0.1 --port {port} --max-total-tokens 20000 {' '.join(flags)}"
        ).strip()

    return make


def servers() -> list[str]:
    """Command lines of sglang processes that run on this machine."""
    out = subprocess.run(["pgrep", "-fa", "sglang.launch_server|sglang::"], capture_output=True, text=True).stdout
    lines = [line for line in out.splitlines() if "<defunct>" not in line and "pytest" not in line]
    return [line for line in lines if "forensics replay" not in line]
