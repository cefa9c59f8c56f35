"""The base command of a replay: what the user gives, else what the log shows. The report says which."""

from __future__ import annotations

import re
from dataclasses import field
from pathlib import Path
from shlex import quote

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import Command
from forensics.replay.edits import read_server, settable
from forensics.replay.given import given_arguments
from forensics.replay.script import Script, read_script, resolved
from forensics.schema.report import LaunchInfo

_VENV = re.compile(r"((?!/usr/).*)/lib(?:64)?/python[\d.]+/site-packages/")


@frozen
class Base:
    """`text` is the server's own command; `origin` says in words where it comes from. `script`: the user's script
    around it, run by bash before the command (never anything out of a log). `notes` are what the reader must know."""

    text: str
    origin: str
    notes: tuple[str, ...] = ()
    script: Script | None = None
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def shell(self) -> bool:
        """Whether bash runs it: only what the user gave."""
        return self.script is not None and self.script.needs_shell

    @property
    def prologue(self) -> str:
        """What stands before the command in the user's script, byte for byte."""
        return self.script.prologue if self.script else ""

    def command(self) -> Command:
        """The parsed command. Raises ReplayError where it starts no sglang server."""
        return read_server(self.text)

    def reads(self, text: str) -> Command:
        """A command on this base with the script's variables put in: to read values, never to run it."""
        return read_server(resolved(text, self.variables))


def base_command(
    launch: LaunchInfo | None,
    given: str | None = None,
    file: Path | None = None,
    python: str = "python3",
    dumped: str | None = None,
    env: bool = False,
) -> Base:
    """Choose the base command; `dumped` is a crash dump's `launch_command`, used where the log shows no command. `env`:
    the variables that the log states go before a command of the log. Raises ReplayError where nobody gives one."""
    if given is not None and file is not None:
        raise ReplayError("--launch and --launch-file are both given", hint="give one of them")
    if file is not None:
        return _from_user(_read(file), f"{file}")
    if given is not None:
        return _from_user(given, "the command line (--launch)")
    if dumped and (launch is None or "launch.command" not in launch.facts):
        return _from_dump(dumped, python)
    if launch is None:
        raise ReplayError("the log holds no launch", hint="give the command with --launch or --launch-file")
    return _from_log(launch, python, env)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayError(f"cannot read {file}: {error}", hint="name a readable shell script") from None


def _from_user(text: str, origin: str) -> Base:
    name = origin if " " not in origin else "--launch"
    script = read_script(text.strip() + ("\n" if "\n" in text.strip() else ""), name)
    return Base(script.command, origin, notes=script.left_out, script=script, variables=script.variables)


def _from_dump(text: str, python: str) -> Base:
    """A crash dump's `launch_command` is `sys.argv` joined by blanks: a file or `sglang serve`, then the arguments."""
    program, _, arguments = text.strip().partition(" ")
    if program.startswith("--"):
        program, arguments = "launch_server.py", text.strip()
    if program.endswith("launch_server.py"):
        own = _VENV.match(program)
        by = f"{own.group(1)}/bin/python3" if own and python == "python3" else python
        words = f"{by} -m sglang.launch_server {arguments}"
    else:
        words = text.strip()
    _check_plain(words, "the crash dump's launch_command")
    note = "blanks inside arguments are lost there, and so is the environment"
    return Base(words, "the crash dump's launch_command", notes=(note,))


def _from_log(launch: LaunchInfo, python: str, with_env: bool) -> Base:
    stated = launch.facts.get("launch.command")
    if stated is not None and isinstance(stated.value, str):
        place = f"{stated.where.path}:{stated.where.line}" if stated.where else "the log"
        text = stated.value.lstrip("+$ \t")
        _check_plain(text, f"the launch command at {place}")
        env, notes = _environment(launch) if with_env else ([], ())
        words = " ".join([*(["env", *env] if env else []), _with_python(text, python)])
        return Base(words, f"the launch command in the log ({place})", notes=notes)
    return _from_server_args(launch, python)


def _with_python(text: str, python: str) -> str:
    """The log's command under the Python that the user names, where it starts with a Python of its own."""
    program = read_server(text).words[0]
    named = python != "python3" and "python" in program.value.rpartition("/")[2]
    return quote(python) + text[program.end :] if named else text


def _check_plain(text: str, what: str) -> None:
    """Nothing from a log or a dump is given to a shell, so it must be words and nothing else."""
    command = read_server(text)
    if any(word.operator for word in command.words) or re.search(r"[$`]", text):
        raise ReplayError(
            f"{what} holds shell syntax, and nothing from a log is given to a shell",
            hint="give the command yourself with --launch",
        )
    if "[masked]" in text:
        raise ReplayError(f"{what} holds a masked secret", hint="give it with --launch")


def _environment(launch: LaunchInfo) -> tuple[list[str], tuple[str, ...]]:
    """Variables that the log states, as words, and a note about those that a log may not set."""
    stated = {
        n[4:]: str(f.value) for n, f in sorted(launch.facts.items()) if n.startswith("env.") and f.how == "stated"
    }
    good = {
        name: value
        for name, value in stated.items()
        if settable(name) and "[masked]" not in value and not value.endswith("…")
    }
    left = sorted(stated.keys() - good.keys())
    notes = (f"variables that a log may not set are left out: {', '.join(left[:8])}",) if left else ()
    return [f"{name}={quote(value)}" for name, value in good.items()], notes


def _from_server_args(launch: LaunchInfo, python: str) -> Base:
    """A command of what a person gave, by the server_args dump."""
    given = given_arguments(launch)
    if given is None:
        raise ReplayError("the log shows neither the launch command nor server_args", hint="give it with --launch")
    if all(argument.dest != "model_path" for argument in given.arguments):
        why = next(
            (why for flag, why in given.unwritable if flag in ("--model-path", "--model")), "it cannot be stated"
        )
        raise ReplayError(f"the model of server_args is not taken over: {why}", hint="give the command with --launch")
    where = launch.facts["args.model_path"].where
    place = f"{where.path}:{where.line}" if where else "the log"
    env, more = _environment(launch)
    words = [*(["env", *env] if env else []), python, "-m", "sglang.launch_server", *map(str, given.arguments)]
    origin = f"server_args in the log ({place}) against the defaults of sglang {given.version}"
    return Base(" ".join(words), origin, notes=(*given.notes(), *more))
