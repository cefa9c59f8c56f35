"""The part of replay that runs where the GPUs are: one file, standard library only, Python 3.8 or newer.

It reads one JSON object a line on standard input and answers one a line on standard output. It starts at most one
server at a time, in a session of its own, with a mark in its environment by which the whole tree can be found again.
The server lives on a lease: when the input ends, or no line comes for `lease` seconds, the tree is ended. Nothing that
the agent did not start is ever touched.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

MARK = "FORENSICS_REPLAY_ID"
READ_MAX = 1 << 20
PRIVATE = 0o700
"""Of the replay's folder: a server's raw log may hold keys and prompts."""


class Server:
    """The one server that this agent started."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.mark = str(request["mark"])
        self.cidfile = request.get("cidfile")
        self.client = request.get("client") or []
        self.stopped = False
        env = dict(os.environ)
        for key, value in (request.get("env") or {}).items():
            if value is None:
                env.pop(key, None)
            else:
                env[key] = str(value)
        env[MARK] = self.mark
        self.log = request["log"]
        os.makedirs(os.path.dirname(self.log) or ".", mode=PRIVATE, exist_ok=True)
        if self.cidfile and os.path.dirname(self.cidfile) == os.path.dirname(self.log) and os.path.exists(self.cidfile):
            os.unlink(self.cidfile)  # our own, of an earlier try: a client refuses an id file that is there
        open(self.log, "wb").close()  # words of an earlier, interrupted try are not this server's
        out = open(self.log, "ab", buffering=0)  # noqa: SIM115
        try:
            self.process = subprocess.Popen(
                request["argv"],
                cwd=request.get("cwd") or None,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        finally:
            out.close()

    def alive(self) -> bool:
        return self.process.poll() is None or bool(marked(self.mark))

    def stop(self, grace: float) -> None:
        """End the tree: container first, then SIGTERM, then SIGKILL until nothing with the mark is left."""
        if self.stopped:
            return
        stop_container(self.client, self.cidfile)
        self.signal_all(signal.SIGTERM)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and self.alive():
            time.sleep(0.1)
        for _ in range(100):
            if not self.alive():
                break
            self.signal_all(signal.SIGKILL)
            time.sleep(0.1)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.stopped = True

    def signal_all(self, number: int) -> None:
        with suppress(OSError):
            if self.process.poll() is None:
                os.killpg(self.process.pid, number)
        signal_marked(self.mark, number)


def signal_marked(mark: str, number: int) -> None:
    """A signal to every process that carries this mark."""
    for pid in marked(mark):
        with suppress(OSError):
            os.kill(pid, number)


def stop_container(client: list[str], cidfile: str | None) -> bool:
    """Stop the container whose id the client wrote; whether there was one."""
    if not cidfile or not client:
        return False
    try:
        with open(cidfile) as file:
            container = file.read().strip()
        if not container:
            return False
        null = subprocess.DEVNULL
        subprocess.run([*client, "stop", "-t", "10", container], stdin=null, stdout=null, stderr=null, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def marked(mark: str) -> list[int]:
    """Processes that carry this mark."""
    return holding((MARK + "=" + mark).encode() + b"\0")


def holding(needle: bytes) -> list[int]:
    """Process ids (not our own) whose environment holds these bytes; zombies do not count."""
    found: list[int] = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                if needle not in file.read() + b"\0":
                    continue
            with open("/proc/%s/stat" % name) as file:
                if file.read().rpartition(")")[2].split()[0] in ("Z", "X"):
                    continue
        except (OSError, IndexError):
            continue
        found.append(int(name))
    return sorted(found)


class Agent:
    """Answers requests one after the other; a load runs in threads of its own."""

    def __init__(self, lease: float) -> None:
        self.lease = lease
        self.server: Server | None = None
        self.load: Load | None = None
        self.last = time.monotonic()
        self.gone = False

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.last = time.monotonic()
        name = request.get("op", "")
        method = getattr(self, "op_" + name, None) if name.isidentifier() else None
        if method is None:
            return {"ok": False, "error": "unknown request %r" % name}
        try:
            result: dict[str, Any] = method(request)
            result.setdefault("ok", True)
            return result
        except Exception as error:
            return {"ok": False, "error": "%s: %s" % (type(error).__name__, error)}

    def op_hello(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("lease"):
            self.lease = float(request["lease"])
        return {"python": sys.version.split()[0], "pid": os.getpid(), "host": socket.gethostname(), "cwd": os.getcwd()}

    def op_ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a short program (the server's own Python with a script of ours); it ends when nobody waits any more."""
        env = dict(os.environ)
        env.update({k: str(v) for k, v in (request.get("env") or {}).items() if v is not None})
        pipe = subprocess.PIPE
        until = time.monotonic() + float(request.get("timeout", 120))
        try:
            process = subprocess.Popen(
                request["argv"], stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=env,
                cwd=request.get("cwd") or None, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return {"code": 127, "out": "", "err": str(error)}
        while True:
            try:
                out, err = process.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                if self.gone or time.monotonic() > until:
                    os.killpg(process.pid, signal.SIGKILL)
                    return {"code": 124, "out": "", "err": "no answer in time"}
        return {
            "code": process.returncode,
            "out": out[-READ_MAX:].decode("utf-8", "replace"),
            "err": err[-20000:].decode("utf-8", "replace"),
        }

    def op_exists(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"exists": os.path.exists(os.path.expandvars(os.path.expanduser(request["path"])))}

    def op_get(self, request: dict[str, Any]) -> dict[str, Any]:
        """The text of a small file; none where it cannot be read."""
        try:
            with open(os.path.expandvars(os.path.expanduser(request["path"])), "rb") as file:
                return {"text": file.read(READ_MAX).decode("utf-8")}
        except (OSError, UnicodeDecodeError) as error:
            return {"text": None, "why": str(error)}

    def op_put(self, request: dict[str, Any]) -> dict[str, Any]:
        """Write a file of the replay's own folder there."""
        os.makedirs(os.path.dirname(request["path"]) or ".", mode=PRIVATE, exist_ok=True)
        with open(request["path"], "w", encoding="utf-8", newline="") as file:
            file.write(request["text"])
        return {}

    def op_clear(self, request: dict[str, Any]) -> dict[str, Any]:
        """Remove files that this replay wrote here, and their folder when nothing else is in it."""
        for path in request["paths"]:
            with suppress(OSError):
                os.unlink(path)
        with suppress(OSError):
            os.rmdir(request["folder"])
        return {}

    def op_ours(self, request: dict[str, Any]) -> dict[str, Any]:
        """Processes that any replay started here."""
        return {"pids": holding((MARK + "=forensics-").encode())}

    def op_free(self, request: dict[str, Any]) -> dict[str, Any]:
        folder = request["path"]
        os.makedirs(folder, exist_ok=True)
        return {"bytes": shutil.disk_usage(folder).free}

    def op_port(self, request: dict[str, Any]) -> dict[str, Any]:
        """Whether nobody listens on the port, tried as the server would: by binding it."""
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind((request.get("host") or "0.0.0.0", int(request["port"])))
            except OSError as error:
                return {"free": False, "why": error.strerror or str(error)}
        return {"free": True}

    def op_start(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.server is not None and self.server.alive():
            return {"ok": False, "error": "a server of this replay is already running"}
        self.server = Server(request)
        return {"pid": self.server.process.pid}

    def op_read(self, request: dict[str, Any]) -> dict[str, Any]:
        """New bytes of the server's log from `offset` on, and whether it still runs."""
        server = self.server
        log = request.get("log") or (server.log if server else None)
        data = b""
        if log and os.path.exists(log):
            with open(log, "rb") as file:
                file.seek(int(request.get("offset", 0)))
                data = file.read(min(int(request.get("max", READ_MAX)), READ_MAX))
        code = server.process.poll() if server else None
        return {"data": base64.b64encode(data).decode(), "alive": bool(server and server.alive()), "code": code}

    def op_stop(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.server is not None:
            self.server.stop(float(request.get("grace", 10)))
        return {"left": marked(self.server.mark) if self.server else []}

    def op_kill_marked(self, request: dict[str, Any]) -> dict[str, Any]:
        """End what an earlier replay left behind: its container, and only processes that carry exactly this mark."""
        stop_container(request.get("client") or [], request.get("cidfile"))
        for number in (signal.SIGTERM, signal.SIGKILL):
            signal_marked(request["mark"], number)
            deadline = time.monotonic() + (10 if number == signal.SIGTERM else 5)
            while time.monotonic() < deadline and marked(request["mark"]):
                time.sleep(0.1)
        return {"left": marked(request["mark"])}

    def op_http(self, request: dict[str, Any]) -> dict[str, Any]:
        return fetch(request)

    def op_load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Begin many requests at a fixed concurrency; `op_load_poll` tells how far they got."""
        self.load = Load(self, request)
        return {}

    def op_load_poll(self, request: dict[str, Any]) -> dict[str, Any]:
        """Whether the load ended, how many requests did, and all results once it has."""
        load = self.load
        if load is None:
            return {"ok": False, "error": "no load was begun"}
        ended = load.ended()
        return {"ended": ended, "done": load.done(), "results": load.results if ended else None}


class Load:
    """Requests at a fixed concurrency; stops early when the server dies or the controller is gone."""

    def __init__(self, agent: Agent, request: dict[str, Any]) -> None:
        self.agent = agent
        self.todo = list(enumerate(request["requests"]))
        self.results: list[dict[str, Any] | None] = [None] * len(self.todo)
        self.port = request["port"]
        self.host = request.get("host")
        self.until = time.monotonic() + float(request.get("seconds", 600))
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work) for _ in range(max(1, int(request.get("concurrency", 1))))]
        for thread in self.threads:
            thread.daemon = True
            thread.start()

    def work(self) -> None:
        while not self.agent.gone and time.monotonic() < self.until:
            server = self.agent.server
            if server is None or server.process.poll() is not None:
                return
            with self.lock:
                if not self.todo:
                    return
                number, one = self.todo.pop(0)
            self.results[number] = fetch(dict(one, port=self.port, host=self.host))

    def ended(self) -> bool:
        return not any(thread.is_alive() for thread in self.threads)

    def done(self) -> int:
        return sum(result is not None for result in self.results)


def fetch(request: dict[str, Any]) -> dict[str, Any]:
    """One HTTP request to the server on this host."""
    host = request.get("host") or "127.0.0.1"
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    began = time.monotonic()
    connection = http.client.HTTPConnection(host, int(request["port"]), timeout=float(request.get("timeout", 60)))
    try:
        body = request.get("body")
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        headers.update(request.get("headers") or {})
        connection.request(request.get("method", "GET"), request["path"], data, headers)
        reply = connection.getresponse()
        text = reply.read(READ_MAX).decode("utf-8", "replace")
        return {"status": reply.status, "text": text, "seconds": time.monotonic() - began}
    except (OSError, http.client.HTTPException) as error:
        return {"status": 0, "text": "%s: %s" % (type(error).__name__, error), "seconds": time.monotonic() - began}
    finally:
        connection.close()


def serve(lease: float) -> None:
    """Answer until the input ends or the lease runs out; then end the server, whatever happens."""
    agent = Agent(lease)
    inbox: list[bytes] = []
    arrived = threading.Condition()

    def read() -> None:
        while True:
            line = sys.stdin.buffer.readline()
            with arrived:
                agent.last = time.monotonic()
                inbox.append(line)
                arrived.notify()
            if not line:
                agent.gone = True
                return

    reader = threading.Thread(target=read)
    reader.daemon = True
    reader.start()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        while True:
            with arrived:
                while not inbox:
                    if time.monotonic() - agent.last > agent.lease:
                        return
                    arrived.wait(1.0)
                line = inbox.pop(0)
            if not line:
                return
            try:
                request = json.loads(line.decode("utf-8"))
            except ValueError:
                request = {}
            if request.get("op") == "beat":
                continue  # its arrival has kept the lease
            reply = agent.answer(request)
            reply["id"] = request.get("id")
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        return
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if agent.server is not None:
            agent.server.stop(10.0)


if __name__ == "__main__":
    serve(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
    os._exit(0)  # the reading thread may still hold standard input, at which an ordinary exit would abort
