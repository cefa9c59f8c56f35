"""Help with examples for each command, completion of the shell, and a fresh manual page."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from forensics.cli.app import app

ROOT = Path(__file__).parent.parent


def commands(group, path=()):
    context = group.context_class(group, info_name="forensics")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))


ALL = list(commands(typer.main.get_command(app)))


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_every_help_has_a_sentence_and_examples(path, command):
    assert command.help
    if hasattr(command, "list_commands"):
        return
    lines = [line for line in (command.epilog or "").splitlines() if "forensics " in line]
    assert lines, f"forensics {' '.join(path)} --help shows no example"
    assert any(f"forensics {path[0]}" in line for line in lines)


@pytest.mark.parametrize(("path", "command"), ALL, ids=[" ".join(path) for path, _ in ALL])
def test_examples_name_options_that_exist(path, command):
    known = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {"--help", "-h"}
    for line in (command.epilog or "").splitlines():
        _, found, rest = line.partition(f"forensics {' '.join(path)} ")
        if found and line.startswith("  "):
            words = rest.split("'")[0].split(" > ")[0].split()
            assert {w.split("=")[0] for w in words if w.startswith("-") and w != "-"} <= known, line


def test_every_option_is_explained():
    for path, command in ALL:
        for param in command.params:
            if param.param_type_name == "option" and "kb" not in path:
                assert param.help, f"forensics {' '.join(path)} {param.opts}"


def complete(words, shell="bash"):
    variables = {
        **os.environ,
        "_FORENSICS_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    script = Path(sys.executable).parent / "forensics"
    command = [str(script)] if script.exists() else [sys.executable, "-m", "forensics"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    return done.stdout


def test_the_shell_completes_commands_and_options():
    assert complete("forensics an").split() == ["analyze"]
    assert set(complete("forensics co").split()) == {"coverage", "collect"}
    assert "--symptom" in complete("forensics analyze --sy").split()
    assert "lint" in complete("forensics kb li").split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_completion_script_is_bash():
    # the shell that asks is found by itself, so the test must not depend on the one that started it
    command = f"{shlex.quote(sys.executable)} -m forensics --show-completion; true"
    shown = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert "complete -o default -F" in shown.stdout
    assert subprocess.run(["bash", "-n"], input=shown.stdout, text=True).returncode == 0


def test_the_manual_page_is_fresh():
    done = subprocess.run([sys.executable, "tools/build_man.py", "--check"], cwd=ROOT)
    assert done.returncode == 0, "run tools/build_man.py"


@pytest.mark.skipif(shutil.which("man") is None, reason="man is not installed")
def test_the_manual_page_renders():
    done = subprocess.run(
        ["man", "--warnings", "-l", str(ROOT / "docs/forensics.1")],
        capture_output=True, text=True, env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr
    for path, command in ALL:
        if not hasattr(command, "list_commands"):
            assert f"forensics {' '.join(path)}" in done.stdout
