"""Typed edits of a launch command: only sglang's own arguments and environment; every other byte stays.

An edit is a replacement of a range of the command's text, so that a diff can show exactly what was inserted.
"""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import ENV_OPTIONS, Assignment, Command, Flag, read_command
from forensics.replay.container import after_run, container_client
from forensics.timeline.catalog import catalog

_OPPOSITE = "--no-"
_ROUTER_LISTS = frozenset({"--worker-urls"})
"""Flags of the router that take any number of values: the catalog holds the server's alone."""
SAFE_ENV_PREFIXES = (
    "SGLANG_", "SGL_", "NCCL_", "GLOO_", "TORCH_", "PYTORCH_", "CUDA_", "FLASHINFER_", "TRITON_", "NVSHMEM_", "UCX_",
    "MC_", "DG_", "VLLM_", "OMP_", "MKL_", "HF_", "TRANSFORMERS_", "TOKENIZERS_", "DEEPEP_", "MOONCAKE_",
)  # fmt: skip
"""Variables of the server's own stack. Others must be allowed by name: a fix may not set, say, LD_PRELOAD or PATH."""
_UNSAFE_ENV = frozenset({"HF_TOKEN", "HF_HOME", "HF_ENDPOINT", "TORCH_EXTENSIONS_DIR", "TRITON_CACHE_DIR", "CUDA_HOME"})


def settable(name: str) -> bool:
    """Whether a fix may set this environment variable without being allowed by name."""
    return name.startswith(SAFE_ENV_PREFIXES) and name not in _UNSAFE_ENV


@frozen
class Change:
    """One variable of the launch. `kind` flag or env; `op` set or remove; `value` None for a switch."""

    kind: str
    op: str
    name: str
    value: str | None = None

    def __str__(self) -> str:
        if self.op == "remove":
            return f"remove {self.name}"
        if self.value is None:
            return f"set {self.name}"
        return f"set {self.name}={self.value}"

    @classmethod
    def parse(cls, text: str) -> Change:
        """`set --flag=value`, `set --switch`, `remove --flag`, `set NAME=value`, `unset NAME`; `set` may be left out.

        Raises ReplayError for anything else.
        """
        words = text.strip().split(None, 1)
        named = bool(words) and words[0] in ("set", "remove", "unset")
        op = words[0] if named else "set"
        body = (words[1].strip() if len(words) > 1 else "") if named else text.strip()
        name, equals, value = body.partition("=")
        if not equals and " " in name:
            name, value = name.split(None, 1)
            equals = " "
        kind = "flag" if name.startswith("--") else "env"
        valid = name[2:].replace("-", "_").isidentifier() if kind == "flag" else name.isidentifier()
        if not valid or (kind == "env" and op == "set" and not equals):
            raise ReplayError(
                f"--fix {text!r}: not a change",
                hint="e.g. 'set --dtype=bfloat16', 'remove --quantization', 'set NAME=1'",
            )
        if op != "set":
            return cls(kind, "remove", name)
        return cls(kind, "set", name, value.strip() if equals else None)


@frozen
class Edit:
    """Replace `[start, end)` (code points) by `text`."""

    start: int
    end: int
    text: str


def apply(text: str, edits: list[Edit]) -> str:
    """The text after all edits, which must not overlap."""
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def change_command(text: str, changes: Iterable[Change]) -> str:
    """The command with every change applied, one after the other; every spelling of a flag is the same flag.

    Raises ReplayError where the text starts no sglang server.
    """
    for change in changes:
        command = read_server(text)
        if change.kind == "flag":
            edits = _flag_edits(command, change)
        else:
            edits = _env_edits(command, change)
        text = apply(text, edits)
        _check_stated(text, change)
    return text


def _check_stated(text: str, change: Change) -> None:
    """Refuse an edit that the shell would not read as meant (a quote that never closes swallows what follows)."""
    command = read_command(text, catalog())
    if command is not None and change.kind == "flag":
        main = main_spelling(change.name)
        if any(main_spelling(f.name) == main for f in command.flags) == (change.op == "set"):
            return
    elif command is not None:
        values = [a.value for a in command.env if a.name == change.name]
        if values[-1:] == [change.value or ""] if change.op == "set" else not values:
            return
    raise ReplayError(
        f"the command cannot be edited so that it states `{change}`",
        hint="a quote that does not close, or an odd word; give the command with --launch or --launch-file",
    )


def read_server(text: str) -> Command:
    """The launch command in `text`. Raises ReplayError where there is none."""
    command = read_command(text, catalog())
    if command is None:
        raise ReplayError(
            "no sglang server is started by this command",
            hint="give the command with --launch 'python -m sglang.launch_server …' or --launch-file run.sh; "
            "a command inside quotes (bash -c '…') must be given without them",
        )
    return command


def main_spelling(name: str) -> str:
    """The main name of a flag given by an alias or an unambiguous prefix; an unknown name stays."""
    found = catalog().flag(name)
    return found[0] if found else name


def _flag_edits(command: Command, change: Change) -> list[Edit]:
    main = main_spelling(change.name)
    present = [f for f in command.flags if main_spelling(f.name) == main]
    opposite = [f for f in command.flags if f.name == _OPPOSITE + main[2:] or _OPPOSITE + f.name[2:] == main]
    if change.op == "remove":
        return [_cut(command, f.first, f.last) for f in present]
    gone = [_cut(command, f.first, f.last) for f in opposite]
    if not present:
        end = command.words[_last_argument(command)].end
        return [*gone, Edit(end, end, " " + flag_text(change))]
    # argparse lets the last one win, so earlier repeats may stay as they are
    return [*gone, *_replace(command, present[-1], change)]


def _replace(command: Command, flag: Flag, change: Change) -> list[Edit]:
    word = command.words[flag.first]
    if change.value is None:
        return [_cut(command, flag.first + 1, flag.last)] if flag.last > flag.first else []
    if flag.last == flag.first:
        inline = "=" in command.text[word.start : word.end]
        joint = "=" if inline else " "
        return [Edit(word.start, word.end, f"{flag.name}{joint}{_quoted(change)}")]
    start, end = command.words[flag.first + 1].start, command.words[flag.last].end
    return [Edit(start, end, _quoted(change))]


def _last_argument(command: Command) -> int:
    last = command.arguments - 1
    for flag in command.flags:
        last = max(last, flag.last)
    return max([last, *command.positionals])


def flag_text(change: Change) -> str:
    """A flag as it is inserted."""
    return change.name if change.value is None else f"{change.name} {_quoted(change)}"


def _quoted(change: Change) -> str:
    """The value as words of a command line: several for a flag that takes a list, else one, whatever it holds."""
    value = change.value or ""
    several = change.name in _ROUTER_LISTS or catalog().takes_several(change.name)
    if value.startswith("{") or not several:
        return quote(value)
    return " ".join(quote(part) for part in value.split()) or "''"


def _env_edits(command: Command, change: Change) -> list[Edit]:
    present = [a for a in command.env if a.name == change.name]
    if change.op == "remove":
        return _env_removal(command, change, present)
    text = f"{change.name}={quote(change.value or '')}"
    if present:
        word = command.words[present[-1].word]
        prefix = command.text[word.start : word.end].split(change.name, 1)[0].strip("'\"")
        return [Edit(word.start, word.end, f"{prefix}{text}")]
    client = container_client(command)
    if client is not None:
        return [Edit(*after_run(command, client), f" -e {text}")]
    program = command.words[command.program]
    follows = any(a.word == command.program - 1 and a.by != "container" for a in command.env)  # of another assignment
    return [Edit(program.start, program.start, f"{text} " if follows else f"env {text} ")]


def _env_removal(command: Command, change: Change, present: list[Assignment]) -> list[Edit]:
    if present:
        return [_cut(command, a.word - (command.words[a.word - 1].value in ENV_OPTIONS), a.word) for a in present]
    if container_client(command) is not None:
        raise ReplayError(
            f"{change.name} cannot be taken out of a container's environment", hint="remove its -e by hand"
        )
    program = command.words[command.program]
    return [Edit(program.start, program.start, f"env -u {change.name} ")]


def _cut(command: Command, first: int, last: int) -> Edit:
    """Remove words `first` to `last` with the blanks before them."""
    start = command.words[first - 1].end if first > 0 else command.words[first].start
    return Edit(start, command.words[last].end, "")
