"""Launch scripts: the server's own command in them, what prepares it, what is left out, and what is refused."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_kit import FAKE, free_port, journal, replay, running, starts, verdict

from forensics.errors import ReplayError
from forensics.replay.base import base_command
from forensics.replay.edits import Change
from forensics.replay.plan import make_plan
from forensics.replay.script import read_script, resolved

SERVER = "python -m sglang.launch_server --model-path /m --tp 8"


@pytest.mark.parametrize(
    ("text", "prologue", "command"),
    [
        (SERVER, "", SERVER),
        (f"{SERVER} > server.log 2>&1 &", "", SERVER),
        (f"{SERVER} 2>&1 | tee server.log", "", SERVER),
        (f"{SERVER} |& tee -a server.log &", "", SERVER),
        (f"nohup {SERVER} &> log & disown", "", f"nohup {SERVER}"),
        (f"nohup {SERVER} < /dev/null >> log 2>> err &\necho $! > pid", "", f"nohup {SERVER}"),
        (f"cd /srv && {SERVER}", "cd /srv && ", SERVER),
        (f"export A=b\n\n{SERVER}\n", "export A=b\n\n", SERVER),
        (f"source venv/bin/activate; {SERVER}", "source venv/bin/activate; ", SERVER),
        (f"# {SERVER} --old\n# don't\n{SERVER}", f"# {SERVER} --old\n# don't\n", SERVER),
        (f"echo {SERVER}\n{SERVER}", f"echo {SERVER}\n", SERVER),
        (f"pkill -f sglang.launch_server\n{SERVER}", "pkill -f sglang.launch_server\n", SERVER),
        (f"if [ -f x ]; then\n. x\nfi\n{SERVER}", "if [ -f x ]; then\n. x\nfi\n", SERVER),
        ("python -m sglang.launch_server \\\n  --model-path '/m m' \\\n  --tp 8\nwait", "",
         "python -m sglang.launch_server \\\n  --model-path '/m m' \\\n  --tp 8"),
        ("A=1 B='x y' exec sglang serve --model-path /m", "", "A=1 B='x y' exec sglang serve --model-path /m"),
    ],
)  # fmt: skip
def test_the_servers_own_command_is_found_and_stays_byte_for_byte(text, prologue, command):
    script = read_script(text, "run.sh")
    assert (script.prologue, script.command) == (prologue, command)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{SERVER} > server.log 2>&1 &", "`> server.log 2>&1 &` is left out"),
        (f"{SERVER} | tee server.log", "`| tee server.log` is left out"),
        (f"{SERVER} &\nPID=$!\nwait $PID", "not run (from line 2 on)"),
    ],
)
def test_what_takes_the_output_and_what_follows_is_said_to_be_left_out(text, said):
    assert any(said in note for note in base_command(None, text).notes)


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("echo 'x", "a quote that does not close", "--launch"),
        ("ls", "no sglang server is started", "--launch-file run.sh"),
        ("python -m sglang_router.launch_router --port 1", "sglang_router.launch_router is started here", "--launch"),
        (f"{SERVER} &\n{SERVER} --port 2 &", "2 servers are started here (lines 1, 2)", "one of them"),
        (f"set -e\nif true; then\n  {SERVER}\nfi", "run.sh:3: the server is started inside a `if` block", "--launch"),
        (f"for i in 1 2; do {SERVER}; done", "inside a `loop` block", "--launch"),
        (f"( cd x; {SERVER} )", "inside a subshell", "--launch"),
        (f"start() {{\n{SERVER}\n}}\nstart", "inside a function or group", "--launch"),
        (f"{SERVER} > log --port 1", "arguments follow a redirection", "behind them"),
        (f"exec > log 2>&1\n{SERVER}", "run.sh:1: `exec` sends all output elsewhere", "take that line out"),
        (f"cat > c.yaml <<EOF\na: b\nEOF\n{SERVER}", "run.sh:1: a here-document cannot be read", "--launch"),
    ],
)
def test_what_cannot_be_run_by_itself_is_refused_with_the_line_and_a_way_out(tmp_path, text, said, hint):
    path = tmp_path / "run.sh"
    path.write_text(text)
    with pytest.raises(ReplayError) as caught:
        base_command(None, file=path)
    assert said.replace("run.sh:", f"{path}:") in caught.value.message and hint in caught.value.hint


def test_the_scripts_variables_are_read_and_the_command_keeps_them():
    script = read_script(f'PORT=${{PORT:-30011}}\nexport M="/data/${{PORT}}"\n{SERVER} --port $PORT --x $Y', "f")
    assert resolved(script.command, script.variables).endswith("--port 30011 --x $Y")
    plan = make_plan(base_command(None, f"PORT=30011\n{SERVER} --port $PORT"), [Change.parse("--dtype=half")])
    assert plan.after.endswith("--port $PORT --dtype half")
    assert plan.fixed.address() == ("127.0.0.1", 30011)


def test_a_variable_that_the_script_exports_with_that_value_already_changes_nothing():
    base = base_command(None, f"export NCCL_DEBUG=INFO\n{SERVER}")
    with pytest.raises(ReplayError, match="leave the command as it is"):
        make_plan(base, [Change.parse("NCCL_DEBUG=INFO")])
    assert make_plan(base, [Change.parse("NCCL_DEBUG=WARN")]).after == f"env NCCL_DEBUG=WARN {SERVER}"


PIECES = ["python -m sglang.launch_server", "--tp 8", "\n", ";", "&&", "|", "&", "(", ")", "if true", "then", "fi", "{", "}", "'", '"', "\\\n",
          "# x", "$A", "$(b)", "`c`", "A=1", "export B=2", "> f", "2>&1", "<<E", "for x in y", "do", "done", "case z in", "esac", "\x00", "é"]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_script_or_a_refusal_and_what_is_kept_is_its_own_text(text):
    try:
        script = read_script(text, "f")
    except ReplayError as error:
        assert error.hint
        return
    assert script.prologue + script.command in text
    assert read_script(script.command, "f").command == script.command
    assert not set(script.command.split()) & {";", "|", "&", ">", "2>&1"} or any(q in script.command for q in "'\"")


def test_a_whole_script_is_replayed_and_its_log_is_followed_not_overwritten(tmp_path):
    (tmp_path / "work" / "model").mkdir(parents=True)
    (tmp_path / "work" / "server.log").write_text("the log of the crash\n")
    (tmp_path / "setup.sh").write_text(f"export PYTHONPATH={FAKE}\n")
    port = free_port()
    (tmp_path / "run.sh").write_text(
        "#!/bin/bash\n# how we serve; don't change\nset -euo pipefail\n"
        f"source {tmp_path}/setup.sh\nexport FAKE_NEEDS='dtype=bfloat16 NCCL_DEBUG=INFO' FAKE_STARTS={tmp_path}/starts\n"
        f"PORT={port}\ncd {tmp_path}/work && ulimit -n 1024\n"
        f"nohup {sys.executable} -m sglang.launch_server \\\n    --model-path ./model --port $PORT \\\n    --dtype float16 \\\n"
        "    2>&1 | tee server.log &\nSERVER=$!\nsleep 600\nwait $SERVER\n"
    )
    fixes = ("--fix", "--dtype=bfloat16", "--fix", "NCCL_DEBUG=INFO")
    done = replay(tmp_path, "--launch-file", "run.sh", *fixes, "--control", "--yes")
    assert verdict(done) == "fixed", done.stdout + done.stderr
    assert "./model is there" in done.stdout
    assert "`2>&1 | tee server.log &` is left out" in done.stdout
    assert (tmp_path / "work" / "server.log").read_text() == "the log of the crash\n"
    assert [line.split()[-1] for line in starts(tmp_path)] == ["float16", "bfloat16"]
    (run,) = (tmp_path / "runs").iterdir()
    assert "The server is fired up" in (run / "fixed.log").read_text()
    ran = journal(tmp_path)["steps"]["fixed"]["argv"]
    assert ran[:2] == ["bash", "-c"] and f"nohup env NCCL_DEBUG=INFO {sys.executable}" in ran[2]
    assert running(tmp_path / "work") == []


def test_a_port_that_only_the_shell_knows_is_refused(tmp_path):
    (tmp_path / "model").mkdir()
    text = f"export PYTHONPATH={FAKE}; {sys.executable} -m sglang.launch_server --model-path {tmp_path}/model --port $P"
    done = replay(tmp_path, "--launch", text, "--fix", "--dtype=bfloat16", "--yes")
    assert done.returncode == 2 and "port: $P is not known here (write the number)" in done.stderr
