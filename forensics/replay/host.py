"""Where the server runs: this machine or one behind OpenSSH. Both speak to the same agent."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from forensics.errors import ReplayError
from forensics.frozen import frozen

LEASE_S = 60.0
"""Seconds without a word from here after which the agent ends the server by itself."""
_BEAT_S = 15.0
_CLOSING_S = 90.0
"""Seconds for the agent to stop a container and its processes."""


@frozen
class Address:
    """`host`: `local`, or what OpenSSH is to connect to; `port` only where the URL names one."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        """`local` or `ssh://[user@]host[:port]`. Raises ReplayError for anything else."""
        if text == "local":
            return cls("local")
        parts = urlsplit(text)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme != "ssh" or not parts.hostname or parts.path.strip("/") or port == -1:
            raise ReplayError(f"--host {text}: not a host", hint="write local or ssh://user@host[:port]")
        if parts.hostname.startswith("-") or (parts.username or "").startswith("-"):
            raise ReplayError(f"--host {text}: a name must not start with a dash", hint="write ssh://user@host")
        return cls(parts.hostname, parts.username, port)

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port else ""
        return "local" if self.host == "local" else f"ssh://{user}{self.host}{port}"


class Host:
    """A started agent. Use as a context manager: leaving it ends the server and the agent."""

    def __init__(self, address: Address, ssh_options: tuple[str, ...] = ()) -> None:
        self.address = address
        self.process = subprocess.Popen(
            self._command(ssh_options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C goes to the controller alone, which then ends the server in order
            start_new_session=True,
        )
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._number = 0
        self._closed = threading.Event()
        try:
            self.about = self.ask("hello", lease=LEASE_S)
        except ReplayError:
            self.process.kill()
            self.process.wait()
            raise ReplayError(
                f"cannot reach {address}", hint="it needs a key, no password, and python3: try `ssh HOST python3 -V`"
            ) from None
        self._beat = threading.Thread(target=self._beats, daemon=True)
        self._beat.start()

    def _command(self, ssh_options: tuple[str, ...]) -> list[str]:
        source = Path(__file__).with_name("agent.py").read_bytes()
        if self.address.host == "local":
            return [sys.executable, "-u", str(Path(__file__).with_name("agent.py")), str(LEASE_S)]
        # The agent travels inside the command, so that nothing has to be installed or left behind there.
        code = base64.b64encode(source).decode()
        run = f"exec(compile(base64.b64decode('{code}'),'agent.py','exec'))"
        loader = f"import base64,sys;sys.argv=['agent','{LEASE_S}'];{run}"
        target = f"{self.address.user}@{self.address.host}" if self.address.user else self.address.host
        port = ["-p", str(self.address.port)] if self.address.port else []
        alive = ["-o", "BatchMode=yes", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"]
        return ["ssh", "-T", *alive, *ssh_options, *port, "--", target, f"python3 -u -c {shlex.quote(loader)}"]

    def ask(self, op: str, **request: Any) -> dict[str, Any]:
        """One request and its answer. Raises ReplayError when the agent refuses or the connection is lost."""
        with self._lock:
            self._number += 1
            stdout = self.process.stdout
            assert stdout is not None
            try:
                self._send({"id": self._number, "op": op, **request})
                reply = self._answer(stdout)
            except (OSError, ValueError):
                reply = None
        if reply is None:
            raise ReplayError(
                f"the connection to {self.address} was lost",
                hint=f"the server ends by itself within {LEASE_S:.0f} s; `forensics replay --cleanup` makes sure, "
                "--resume RUN goes on",
            )
        if not reply.get("ok"):
            raise ReplayError(f"{self.address}: {reply.get('error', 'refused')}")
        return reply

    def _send(self, request: dict[str, Any]) -> None:
        stdin = self.process.stdin
        assert stdin is not None
        with self._writing:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()

    def _answer(self, stdout: IO[bytes]) -> dict[str, Any] | None:
        """The answer to the last request; those to requests that Ctrl-C cut off are passed over. None at the end."""
        while line := stdout.readline():
            reply: dict[str, Any] = json.loads(line)
            if reply.get("id") == self._number:
                return reply
        return None

    def read_log(self, log: str, offset: int) -> tuple[bytes, bool, int | None]:
        """New bytes of a log there from `offset` on, whether the server still runs, and its exit code."""
        reply = self.ask("read", log=log, offset=offset)
        return base64.b64decode(reply["data"]), bool(reply["alive"]), reply["code"]

    def _beats(self) -> None:
        """Keep the lease, also while an answer is waited for; a beat itself has none."""
        while not self._closed.wait(_BEAT_S):
            try:
                self._send({"op": "beat"})
            except (OSError, ValueError):
                return

    def close(self) -> None:
        """End the server (if one runs) and the agent. Safe to call twice."""
        if self._closed.is_set():
            return
        self._closed.set()
        # the end of its input makes the agent end whatever it started, also a program that it still waits for
        if self.process.stdin:
            with suppress(OSError):  # what was still to be sent has no reader any more
                self.process.stdin.close()
        try:
            self.process.wait(_CLOSING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
