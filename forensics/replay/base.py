"""The base command of a replay: what the user gives, else what the log shows. The report says which."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from forensics.errors import ReplayError
from forensics.grammar.command import Command
from forensics.replay.edits import read_server
from forensics.schema.report import LaunchInfo
from forensics.timeline.catalog import catalog

# Fields that a relaunch chooses for itself, or that hold secrets which the log rightly hides.
_LEFT_OUT = frozenset(
    {
        "random_seed", "nccl_port", "api_key", "admin_api_key", "served_model_name", "tokenizer_path", "log_level_http",
        "ssl_keyfile_password", "dist_init_addr", "node_rank", "nnodes", "base_gpu_id", "model_config", "device",
    }
)  # fmt: skip
_ALWAYS = ("model_path", "tp_size", "dp_size", "pp_size", "ep_size", "host", "port", "device", "nnodes")


@dataclass(frozen=True, slots=True)
class Base:
    """`text` is the command; `origin` says in words where it comes from. `shell`: run it through bash, because the user
    gave it with shell syntax (never for a command out of a log). `notes` are what the reader must know about it."""

    text: str
    origin: str
    shell: bool = False
    notes: tuple[str, ...] = ()

    def command(self) -> Command:
        """The parsed command. Raises ReplayError where it starts no sglang server."""
        return read_server(self.text)


def base_command(
    launch: LaunchInfo | None, given: str | None = None, file: Path | None = None, python: str = "python3"
) -> Base:
    """Choose the base command. Raises ReplayError where neither the user nor the log gives one."""
    if given is not None and file is not None:
        raise ReplayError("--launch and --launch-file are both given", hint="give one of them")
    if file is not None:
        return _from_user(_read(file), f"{file}")
    if given is not None:
        return _from_user(given, "the command line (--launch)")
    if launch is None:
        raise ReplayError("the log holds no launch", hint="give the command with --launch or --launch-file")
    return _from_log(launch, python)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayError(f"cannot read {file}: {error}", hint="name a readable shell script") from None


def _from_user(text: str, origin: str) -> Base:
    command = read_server(text.strip())
    plain = not any(word.operator for word in command.words) and "\n" not in text.strip().replace("\\\n", "")
    return Base(text.strip(), origin, shell=not plain or "$" in text or "~" in text)


def _from_log(launch: LaunchInfo, python: str) -> Base:
    stated = launch.facts.get("launch.command")
    if stated is not None and isinstance(stated.value, str):
        place = f"{stated.where.path}:{stated.where.line}" if stated.where else "the log"
        text = stated.value.lstrip("+$ \t")
        command = read_server(text)
        if any(word.operator for word in command.words):
            raise ReplayError(
                f"the launch command at {place} holds shell syntax, and nothing from a log is given to a shell",
                hint="give the command yourself with --launch",
            )
        if "[masked]" in text:
            raise ReplayError(f"the launch command at {place} holds a masked secret", hint="give it with --launch")
        return Base(text, f"the launch command in the log ({place})")
    return _from_server_args(launch, python)


def _from_server_args(launch: LaunchInfo, python: str) -> Base:
    """A command from the server_args dump: every field that differs from that version's default."""
    args = {name[5:]: fact for name, fact in launch.facts.items() if name.startswith("args.")}
    if "model_path" not in args:
        raise ReplayError("the log shows neither the launch command nor server_args", hint="give it with --launch")
    book = catalog()
    version = launch.version.exact or launch.version.low or launch.version.high or book.newest
    words = [python, "-m", "sglang.launch_server"]
    unknown = []
    for dest in sorted(args, key=lambda d: (_ALWAYS.index(d) if d in _ALWAYS else len(_ALWAYS), d)):
        value = args[dest].value
        flag = book.by_dest.get(dest)
        if value is None or dest in _LEFT_OUT - set(_ALWAYS) or value == [] or value == ():
            continue
        if flag is None:
            unknown.append(dest)
            continue
        if dest != "model_path" and value == book.default(flag, version):
            continue
        words += _words(flag, value, book.takes_value(flag))
    where = args["model_path"].where
    place = f"{where.path}:{where.line}" if where else "the log"
    notes = ["values that the server chose at start-up are stated as if they had been given"]
    if unknown:
        notes.append(f"fields without a known flag are left out: {', '.join(unknown[:8])}")
    env = [
        f"{n[4:]}={quote(str(f.value))}"
        for n, f in sorted(launch.facts.items())
        if n.startswith("env.") and f.how == "stated"
    ]
    text = " ".join([*(["env", *env] if env else []), *words])
    return Base(text, f"server_args in the log ({place}) against the defaults of sglang {version}", notes=tuple(notes))


def _words(flag: str, value: object, takes: bool | None) -> list[str]:
    if isinstance(value, bool):
        if takes:
            return [flag, str(value)]
        return [flag] if value else []
    if isinstance(value, list | tuple):
        return [flag, *(quote(str(item)) for item in value)]
    return [flag, quote(str(value))]
