"""Facts of the launch command, the environment and the `server_args=` dump."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from forensics.grammar.command import (
    ASSIGNMENT,
    SKIPPED,
    Assignment,
    Command,
    Flag,
    read_command,
    read_exports,
    split_words,
)
from forensics.grammar.server_args import read_server_args
from forensics.schema.facts import Value
from forensics.timeline.catalog import catalog
from forensics.timeline.facts_sheet import Sheet

MAX_CONTINUED = 60
WRAPPERS = frozenset({
    "nohup", "exec", "time", "timeout", "sudo", "env", "docker", "podman", "nerdctl", "apptainer",
    "singularity", "kubectl", "srun", "mpirun", "torchrun", "numactl", "taskset", "bash", "sh", "nsys", "ncu",
    "stdbuf", "setsid", "export", "cd", "conda", "uv", "source", "ulimit", "nice", "xvfb-run",
    "compute-sanitizer", "cuda-gdb", "py-spy", "rocprof", "set",
})  # fmt: skip
"""Programs and shell words that may stand before the server on a command line."""
_COMMAND_KINDS = ("command", "shell", "text", "message")


def add_server_args(sheet: Sheet) -> None:
    """Every field of the launch's `server_args=` dump as `args.<field>`."""
    for kind, text, row in sheet.first_rows():
        if kind != "server-args" and "server_args=" not in text:
            continue
        dump = read_server_args(sheet.table.text(row))
        if dump is None or not dump.arguments:
            continue
        place = sheet.placer(row)
        for argument in dump.arguments:
            sheet.put(f"args.{argument.name}", argument.value, place(argument.start, argument.end))
        _aliases(sheet)
        return


def _aliases(sheet: Sheet) -> None:
    """Today's field name of a field that an older release printed under another name."""
    for old, new in _renamed():
        fact = sheet.facts.get(f"args.{old}")
        if fact is not None and new not in sheet.facts:
            sheet.put(new, fact.value, fact.where, f"inferred: this release calls the field {old}")


@cache
def _renamed() -> tuple[tuple[str, str], ...]:
    """Names that fields had, and the facts of today's fields."""
    return tuple(
        (str(old["value"]), f"args.{entry['dest']}")
        for entry in catalog().flags.values()
        for old in entry.get("dest_history", ())
    )


def add_command(sheet: Sheet) -> None:
    """The launch command, its environment, and where no dump is printed its flags as `args.<field>`."""
    dumped = any(name.startswith("args.") for name in sheet.facts)
    for row, text in _commands(sheet):
        exports = read_exports(text) if "=" in text else ()
        command = read_command(text, catalog()) if "sglang" in text or "launch_" in text else None
        _environment(sheet, row, text, exports)
        if command is None or not _typed(command):
            continue
        _environment(sheet, row, text, command.env, command)
        if "launch.command" in sheet.facts or command.module.rpartition(".")[2].startswith("bench"):
            continue
        first = command.words[command.program]
        last = max((f.last for f in command.flags), default=command.program)
        sheet.put("launch.command", text[first.start : command.words[last].end],
                  sheet.place(row, first.start, min(command.words[last].end, len(sheet.table.text(row)))))  # fmt: skip
        if "router" in command.module:
            sheet.put("launch.role", "router", sheet.table.span(row))
        elif not dumped:
            _flags(sheet, row, command)


def _commands(sheet: Sheet) -> Iterator[tuple[int, str]]:
    """Rows that may hold a command or an assignment, with backslash continuations joined."""
    for kind, text, row in sheet.first_rows():
        if kind not in _COMMAND_KINDS or not _telling(kind, text):
            continue
        full = sheet.table.text(row)
        following = row
        while full.endswith("\\") and following - row < MAX_CONTINUED and following + 1 < len(sheet.table):
            following += 1
            full = full[:-1] + " " + sheet.table.text(following).strip()
        yield row, full


def _telling(kind: str, text: str) -> bool:
    if kind == "command" or "sglang" in text or "launch_server" in text:
        return True
    head = text.lstrip("+$# ")
    return head.startswith(("export ", "declare -x ")) or (text.startswith("+") and "=" in text)


def _typed(command: Command) -> bool:
    """Whether a shell ran the line: prose that names a command starts with other words."""
    first = next((w for w in command.words if w.value not in SKIPPED), None)
    if first is None or any(f.startswith("<") and f.endswith(">") for f in (w.value for w in command.words)):
        return False
    if first is command.words[command.program] or ASSIGNMENT.match(first.value):
        return True
    return first.value.rpartition("/")[2] in WRAPPERS


def _environment(
    sheet: Sheet, row: int, text: str, found: tuple[Assignment, ...], command: Command | None = None
) -> None:
    words = command.words if command else split_words(text) if found else ()
    for item in found:
        if item.value.startswith("="):
            continue  # a pinned package (`sglang==0.5.9`)
        word = words[item.word]
        sheet.put(f"env.{item.name}", item.value, sheet.place(row, word.start, word.end))


def _flags(sheet: Sheet, row: int, command: Command) -> None:
    for flag in command.flags:
        if not flag.name.startswith("--"):
            continue
        words = command.words
        where = sheet.place(row, words[flag.first].start, words[flag.last].end)
        name = f"args.{catalog().dest(flag.name)}"
        sheet.facts.pop(name, None)
        sheet.put(name, flag_value(flag), where)
    if command.positionals and "args.model_path" not in sheet.facts:
        word = command.words[command.positionals[0]]
        sheet.put("args.model_path", word.value, sheet.place(row, word.start, word.end))


def flag_value(flag: Flag) -> Value:
    """The typed value of a command-line flag, by its type in the catalog; texts where the flag is unknown."""
    if not flag.values:
        return True
    found = catalog().flag(flag.name)
    kind = str(found[1].get("type") or "") if found else ""
    if kind.startswith("list") or len(flag.values) > 1:
        return tuple(_scalar(v, kind.removeprefix("list[").removesuffix("]")) for v in flag.values)
    return _scalar(flag.values[0], kind)


def _scalar(text: str, kind: str) -> Value:
    try:
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text)
    except ValueError:
        return text
    if kind == "bool" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    return text
