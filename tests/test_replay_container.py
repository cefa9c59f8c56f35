"""Servers in containers: where words go, what is refused, and that the container is stopped by its id in every way out."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from replay_kit import FAKE, FORENSICS, free_port, replay, running, verdict

from forensics.errors import ReplayError
from forensics.replay.base import base_command
from forensics.replay.container import published
from forensics.replay.edits import Change, change_command
from forensics.replay.facts import server_python
from forensics.replay.plan import Relaunch

INNER = "python3 -m sglang.launch_server --model-path /m"


def prepared(text: str):
    return Relaunch(base_command(None, text), text).prepared("", "/runs/x.cid", "MARK=1")


@pytest.mark.parametrize(
    ("before", "client"),
    [
        ("docker run --rm --gpus all image:1", ("docker",)),
        ("podman run --rm image", ("podman",)),
        ("sudo -E docker run --rm image", ("sudo", "-E", "docker")),
        ("A=1 nohup /usr/bin/docker run --rm image", ("/usr/bin/docker",)),
    ],
)
def test_mark_and_id_file_go_right_behind_run(before, client):
    text, container = prepared(f"{before} {INNER}")
    assert text == f"{before} {INNER}".replace(" run ", " run -e MARK=1 --cidfile /runs/x.cid ")
    assert (container.client, container.cidfile) == (client, "/runs/x.cid")


def test_an_id_file_of_the_users_own_is_used_and_a_name_makes_the_container_go_away():
    text, container = prepared(f"docker run --cidfile /my/id --rm image {INNER}")
    assert text == f"docker run -e MARK=1 --cidfile /my/id --rm image {INNER}" and container.cidfile == "/my/id"
    assert prepared(f"docker run --name s image {INNER}")[0].startswith(
        "docker run -e MARK=1 --cidfile /runs/x.cid --rm --name s"
    )
    text, container = prepared(f"docker exec s {INNER}")
    assert text == f"docker exec -e MARK=1 s {INNER}" and container.cidfile is None


@pytest.mark.parametrize("switch", ["-d", "--detach", "-id", "-it", "-ti", "-i -t", "--interactive --tty"])
def test_a_container_that_cannot_be_followed_is_refused(switch):
    with pytest.raises(ReplayError, match=r"detached|terminal") as caught:
        prepared(f"docker run {switch} image {INNER}")
    assert "remove" in caught.value.hint


@pytest.mark.parametrize(
    ("options", "port"),
    [
        ("-p 30001:30000", 30001), ("-p30001:30000", 30001), ("--publish=127.0.0.1:30001:30000/tcp", 30001),
        ("-p 9000:9000", None), ("", None), ("--network host", 30000), ("--net=host -p 30001:30000", 30000),
    ],
)  # fmt: skip
def test_the_port_of_the_host_is_the_published_one(options, port):
    command = base_command(None, f"docker run {options} image {INNER}").command()
    assert published(command, 0, 30000) == port


@pytest.mark.parametrize(
    "stated", ["-e NCCL_DEBUG=WARN", "--env NCCL_DEBUG=WARN", "--env=NCCL_DEBUG=WARN", "-e 'NCCL_DEBUG=WARN'"]
)
def test_a_variable_that_the_client_sets_already_is_changed_there(stated):
    text = f"docker run --rm {stated} image {INNER}"
    after = change_command(text, [Change.parse("NCCL_DEBUG=INFO")])
    assert base_command(None, after).command().env[0].value == "INFO" and after.count("NCCL_DEBUG") == 1
    assert after.replace("INFO", "WARN").replace("'", "") == text.replace("'", "")
    bare = f"docker run --rm image {INNER}"
    assert change_command(text, [Change.parse("unset NCCL_DEBUG")]) == bare
    with pytest.raises(ReplayError, match="cannot be taken out of a container") as caught:
        change_command(bare, [Change.parse("unset NCCL_DEBUG")])
    assert "by hand" in caught.value.hint


def test_the_servers_python_is_asked_in_the_same_image():
    base = base_command(None, f"docker run --name s -p 1:30000 --gpus all -e A=1 image {INNER}")
    assert server_python(base, "-c", "x") == [
        "docker",
        "run",
        "--rm",
        "--gpus",
        "all",
        "-e",
        "A=1",
        "image",
        "python3",
        "-c",
        "x",
    ]
    assert server_python(base_command(None, f"docker exec s {INNER}"), "-c", "x") == [
        "docker",
        "exec",
        "s",
        "python3",
        "-c",
        "x",
    ]


@pytest.fixture
def engine(tmp_path):
    """A folder with a `docker` on the path; `.state` is the engine's."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "model").mkdir()
    client = tmp_path / "bin" / "docker"
    client.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).parent}/fake_docker.py "$@"\n')
    client.chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    return tmp_path, {**os.environ, "PATH": path, "FAKE_DOCKER": str(tmp_path / "state"), "FAKE_IMAGE": str(FAKE)}


def calls(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "state" / "docker.log").read_text().splitlines()]


def serve(folder: Path, options: str, port: int, *flags: str) -> str:
    needs = "-e 'FAKE_NEEDS=dtype=bfloat16 NCCL_DEBUG=INFO'"
    return f"docker run {options} {needs} image:1 {INNER.replace('/m', f'{folder}/model')} --device cpu --port {port} {' '.join(flags)}"


def test_a_server_in_a_container_is_replayed_through_its_published_port(engine):
    folder, env = engine
    inside, outside = free_port(), free_port()
    launch = serve(folder, f"--name serving -p {outside}:{inside}", inside, "--dtype float16")
    fixes = ("--fix", "--dtype=bfloat16", "--fix", "NCCL_DEBUG=INFO")
    dry = replay(folder, "--launch", launch, *fixes, env=env)
    assert (
        "+-e FORENSICS_REPLAY_ID=forensics-RUN --cidfile forensics-RUN/fixed.cid --rm -e NCCL_DEBUG=INFO+" in dry.stdout
    )
    done = replay(folder, "--launch", launch, *fixes, "--control", "--yes", env=env)
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert f"port: {outside} is free" in done.stdout
    runs = [c for c in calls(folder) if c[0] == "run" and "sglang.launch_server" in c]
    assert [c[-1] for c in runs] == ["float16", "bfloat16"]
    stopped = [c for c in calls(folder) if c[0] == "stop"]
    assert len(stopped) == 2 and len({c[-1] for c in stopped}) == 2, "each stopped by its id"
    assert all(re.fullmatch(r"[0-9a-f]{12,}", c[-1]) for c in stopped), stopped
    assert running(folder) == [] and not list((folder / "state").glob("*.json"))


def until_started(folder: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while not any("server_args" in p.read_text() for p in folder.glob("runs/*/fixed.log")):
        assert process.poll() is None and time.monotonic() < deadline, "it never started"
        time.sleep(0.1)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_container_is_left_after_ctrl_c_or_after_kill_9_and_cleanup(engine, how):
    folder, env = engine
    port = free_port()
    launch = serve(folder, "--rm --network host -e FAKE_FAILS=hang", port)
    command = [
        *FORENSICS,
        "replay",
        "--launch",
        launch,
        "--fix",
        "--dtype=half",
        "--yes",
        "--runs",
        "runs",
        "--db",
        "h.db",
    ]
    process = subprocess.Popen(
        command, cwd=folder, env=env, stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    until_started(folder, process)
    assert running(folder)
    process.send_signal(how)
    # Python ends itself by the signal, which a shell calls 130, too, where Ctrl-C fell into an import
    assert process.wait(60) in ((130, -2) if how == signal.SIGINT else (-9,))
    if how == signal.SIGKILL:
        done = subprocess.run(
            [*FORENSICS, "replay", "--cleanup", "--runs", "runs"], cwd=folder, env=env, capture_output=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    deadline = time.monotonic() + 10
    while running(folder) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert running(folder) == []
    assert any(c[0] == "stop" for c in calls(folder))


def test_a_container_without_a_published_port_is_refused_before_anything_starts(engine):
    folder, env = engine
    done = replay(folder, "--launch", serve(folder, "--rm", 30000), "--fix", "--dtype=half", "--yes", env=env)
    assert done.returncode == 2 and "publishes the server's port nowhere" in done.stderr
    assert not any("sglang.launch_server" in c for c in calls(folder))
