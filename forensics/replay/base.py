"""The base command of a replay: what the user gives, else what the log shows. The report says which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from shlex import quote

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import Command
from forensics.replay.edits import read_server, settable
from forensics.replay.script import Script, read_script, resolved
from forensics.rulebook.versions import older, version_key
from forensics.schema.report import FactValue, LaunchInfo
from forensics.timeline.catalog import catalog

# Fields that a relaunch chooses for itself, or that hold secrets which the log rightly hides.
_LEFT_OUT = frozenset(
    {
        "random_seed", "nccl_port", "api_key", "admin_api_key", "log_level_http", "ssl_keyfile_password", "node_rank",
        "nnodes", "model_config", "device",
    }
)  # fmt: skip
_OWN_CHOICE = frozenset({"random_seed", "nccl_port", "node_rank", "model_config"})
"""Left-out fields that the server or replay itself fills in: no reader misses them."""
_VENV = re.compile(r"((?!/usr/).*)/lib(?:64)?/python[\d.]+/site-packages/")
_ALWAYS = ("model_path", "tp_size", "dp_size", "pp_size", "ep_size", "host", "port", "device", "nnodes")


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
    good = {name: value for name, value in stated.items() if settable(name) and "[masked]" not in value}
    left = sorted(stated.keys() - good.keys())
    notes = (f"variables that a log may not set are left out: {', '.join(left[:8])}",) if left else ()
    return [f"{name}={quote(value)}" for name, value in good.items()], notes


def _from_server_args(launch: LaunchInfo, python: str) -> Base:
    """A command from the server_args dump: every field that differs from that version's default."""
    stated = {name[5:]: fact for name, fact in launch.facts.items() if name.startswith("args.")}
    args = {dest: fact for dest, fact in stated.items() if not fact.how.startswith("inferred")}
    if "model_path" not in args:
        raise ReplayError("the log shows neither the launch command nor server_args", hint="give it with --launch")
    book = catalog()
    version = launch.version.exact or launch.version.low or launch.version.high or book.newest
    words = [python, "-m", "sglang.launch_server"]
    unknown = []
    left_out = set(_left_out({dest: fact.value for dest, fact in args.items()}))
    for dest in sorted(args, key=lambda d: (_ALWAYS.index(d) if d in _ALWAYS else len(_ALWAYS), d)):
        value = args[dest].value
        flag = _flag_of(dest, version)
        if value is None or dest in left_out or value == [] or value == ():
            continue
        if flag is None:
            unknown.append(dest)
            continue
        if dest != "model_path" and value == _default(flag, version):
            continue
        words += _words(flag, value, book.takes_value(flag))
    where = args["model_path"].where
    place = f"{where.path}:{where.line}" if where else "the log"
    notes = ["values that the server chose at start-up are stated as if they had been given"]
    if unknown:
        notes.append(f"fields without a known flag are left out: {', '.join(unknown[:8])}")
    absent = [d for d in sorted(_LEFT_OUT - _OWN_CHOICE - set(_ALWAYS)) if _given(d, args, version)]
    if absent:
        notes.append(f"fields that the relaunch does not take over: {', '.join(absent)}")
    env, more = _environment(launch)
    text = " ".join([*(["env", *env] if env else []), *words])
    return Base(
        text, f"server_args in the log ({place}) against the defaults of sglang {version}", notes=(*notes, *more)
    )


def _given(dest: str, args: dict[str, FactValue], version: str) -> bool:
    """Whether a field holds more than its default."""
    value = args[dest].value if dest in args else None
    return value not in (None, "", _default("--" + dest.replace("_", "-"), version))


def _default(flag: str, version: str) -> object:
    """A flag's default in a release; the first one where the log's release is guessed too old to have the flag."""
    book = catalog()
    life = book.flag_lifetime(flag)
    first = life.first if life is not None else None
    return book.default(flag, first if first is not None and older(version, first) else version)


def _flag_of(dest: str, version: str) -> str | None:
    """The flag that sets a server_args field in a release: fields and flags were renamed, and not together. Where the
    release is not known well enough, the field's own name tells."""
    book = catalog()
    own = "--" + dest.replace("_", "-")
    names = (own, *(n for n in book.flags if n != own))
    for name in names:
        life = book.flag_lifetime(name)
        if life is not None and _field(name, version) == dest and book.exists(life, version) is not False:
            return name
    return next((n for n in names if dest in _fields(n)), None)


def _fields(name: str) -> list[str]:
    """All fields that a flag ever set."""
    entry = catalog().flags.get(name, {})
    return [str(f) for f in (entry.get("dest"), *(change["value"] for change in entry.get("dest_history", ()))) if f]


def _field(name: str, version: str) -> str | None:
    """The field that a flag sets in a release."""
    entry = catalog().flags[name]
    found: str | None = entry.get("dest")
    at = version_key(version)
    for change in entry.get("dest_history", ()):
        since = version_key(change["since"])
        if at is not None and since is not None and since <= at:
            found = change["value"]
    return found


def _left_out(args: dict[str, object]) -> Iterator[str]:
    """Fields that the relaunch leaves to the server."""
    yield from _LEFT_OUT - set(_ALWAYS)
    for dest in ("served_model_name", "tokenizer_path"):
        if args.get(dest) == args.get("model_path"):
            yield dest
    if args.get("nnodes") in (None, 1):
        yield "dist_init_addr"


def _words(flag: str, value: object, takes: bool | None) -> list[str]:
    if isinstance(value, bool):
        if takes:
            return [flag, str(value)]
        return [flag] if value else []
    if isinstance(value, list | tuple):
        return [flag, *(quote(str(item)) for item in value)]
    return [flag, quote(str(value))]
