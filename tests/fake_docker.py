"""A stand-in for a container client and its engine: `run`, `exec` and `stop` with real processes.

What it starts is, as with a real engine, no child of the client, has only the environment that the client was told, and
outlives a client that is killed. State lies in the folder `FAKE_DOCKER`; `docker.log` there holds every call.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

STATE = Path(os.environ["FAKE_DOCKER"])
INSIDE = {"PATH": os.environ["PATH"], "PYTHONPATH": os.environ["FAKE_IMAGE"]}
VALUED = (
    "-e",
    "--env",
    "--name",
    "--cidfile",
    "-p",
    "--publish",
    "-v",
    "--network",
    "--gpus",
    "--shm-size",
    "--ipc",
    "-w",
)


def options(words):
    """(options with values, the rest from the image or container on)."""
    found, at = [], 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, value = words[at].partition("=")
        if not equals and name in VALUED:
            at += 1
            value = words[at]
        found.append((name, value))
        at += 1
    return found, words[at:]


def launch(env, command):
    """The first process of the container: started by a parent that ends at once. Gives (pid, its output)."""
    read, write = os.pipe()
    told, tell = os.pipe()
    if os.fork() == 0:
        process = subprocess.Popen(
            [sys.executable if w == "python3" else w for w in command[:1]] + command[1:],
            env={**INSIDE, **env}, stdin=subprocess.DEVNULL, stdout=write, stderr=write, start_new_session=True,
        )  # fmt: skip
        os.write(tell, str(process.pid).encode())
        os._exit(0)
    os.wait()
    os.close(write)
    os.close(tell)
    return int(os.read(told, 20)), read


def follow(pid, output):
    """Pass the output on until the container's process is gone; signals go on to it, as the real client does."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os.kill(pid, signal.SIGTERM))
    while True:
        data = os.read(output, 65536)
        if not data:
            return
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def forward(outside, inside):
    def pump(a, b):
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)

    def serve(listener):
        while True:
            client, _ = listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", inside))
            except OSError:
                client.close()
                continue
            for pair in ((client, server), (server, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    listener = socket.create_server(("127.0.0.1", outside))
    threading.Thread(target=serve, args=(listener,), daemon=True).start()


def run(words):
    found, (image, *command) = options(words)
    named = dict(found)
    identity = os.urandom(32).hex()
    if "--name" in named and any(
        json.loads(p.read_text()).get("name") == named["--name"] for p in STATE.glob("*.json")
    ):
        sys.exit(
            f'docker: Error response from daemon: Conflict. The container name "/{named["--name"]}" is already in use'
        )
    if "-it" in named:
        sys.exit("the input device is not a TTY")
    if "--cidfile" in named:
        if os.path.exists(named["--cidfile"]):
            sys.exit(
                f"docker: container ID file found, make sure the other container isn't running or delete {named['--cidfile']}"
            )
        Path(named["--cidfile"]).write_text(identity)
    for name, value in found:
        if name in ("-p", "--publish"):
            forward(*map(int, value.split(":")))
    pid, output = launch(dict(v.split("=", 1) for n, v in found if n in ("-e", "--env")), command)
    state = STATE / f"{identity}.json"
    state.write_text(json.dumps({"pid": pid, "name": named.get("--name"), "image": image}))
    follow(pid, output)
    if "--rm" in named:
        state.unlink()


def execute(words):
    found, (container, *command) = options(words)
    assert any(json.loads(p.read_text())["name"] == container for p in STATE.glob("*.json")), container
    follow(*launch(dict(v.split("=", 1) for n, v in found if n in ("-e", "--env")), command))


def stop(words):
    _, (identity,) = options([w for w in words if w not in ("-t", "10")])
    pid = json.loads((STATE / f"{identity}.json").read_text())["pid"]
    os.killpg(pid, signal.SIGTERM)
    time.sleep(0.2)


if __name__ == "__main__":
    with open(STATE / "docker.log", "a") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    {"run": run, "exec": execute, "stop": stop}[sys.argv[1]](sys.argv[2:])
