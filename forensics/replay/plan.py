"""From hypothesis to changed command: which steps replay can apply, what the diff is, what will be verified."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import Command
from forensics.replay.base import Base
from forensics.replay.config_file import ConfigFile
from forensics.replay.container import Container, after_run, container_client, inserted, published
from forensics.replay.edits import Change, Edit, apply, change_command, main_spelling, read_server, settable
from forensics.schema.report import HypothesisInfo
from forensics.timeline.catalog import catalog

_DEFAULT = ("127.0.0.1", 30000)


@frozen
class Plan:
    """`before` and `after` are the server's own commands. `config` is the `--config` file as it is, where it was read,
    and `changed` the copy that the changed command is given. `by_hand` are steps that replay does not do."""

    base: Base
    changes: tuple[Change, ...]
    before: str
    after: str
    by_hand: tuple[str, ...] = ()
    finding: str | None = None
    title: str = ""
    verify: tuple[str, ...] = ()
    config: ConfigFile | None = None
    changed: ConfigFile | None = None

    def diff(self, after: str | None = None) -> list[tuple[str, str]]:
        """Word-level diff as (`=`, `+` or `-`, text) pieces; joining `=` and `+` gives `after` byte for byte."""
        old, new = _pieces(self.before), _pieces(self.after if after is None else after)
        out: list[tuple[str, str]] = []
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag == "equal":
                out.append(("=", "".join(old[a:b])))
            else:
                out += [(sign, "".join(part)) for sign, part in (("-", old[a:b]), ("+", new[c:d])) if part]
        return out

    def reads(self) -> Command:
        """The changed command as the server reads it, its file's settings before its own words. Never run."""
        return reads(self.base, self.after, self.changed or self.config)

    @property
    def control(self) -> Relaunch:
        """The unchanged command."""
        return Relaunch(self.base, self.before, self.config)

    @property
    def fixed(self) -> Relaunch:
        """The changed command."""
        return Relaunch(self.base, self.after, self.changed or self.config, self.changed is not None)


@frozen
class Relaunch:
    """One command to launch: `config` is what its `--config` file holds, written to a copy first where `copied`."""

    base: Base
    text: str
    config: ConfigFile | None = None
    copied: bool = False

    @property
    def key(self) -> str:
        """Tells equal launches: the whole text, and a digest of the copied file."""
        digest = hashlib.sha256(self.config.text.encode()).hexdigest()[:16] if self.config and self.copied else ""
        return self.base.prologue + self.text + (f"  # config {digest}" if digest else "")

    def prepared(self, copy: str, cidfile: str, mark: str) -> tuple[str, Container | None]:
        """The command as it is run: with the path of the copied file, and in a container with an id file and a mark."""
        text = change_command(self.text, [Change("flag", "set", "--config", copy)]) if self.copied else self.text
        command = read_server(text)
        client = container_client(command)
        if client is None:
            return text, None
        words, container = inserted(command, client, cidfile, mark)
        return apply(text, [Edit(*after_run(command, client), words)]), container

    def address(self) -> tuple[str, int | None]:
        """Host and port at which the server is reached from its host; no port where a container publishes none."""
        command = reads(self.base, self.text, self.config)
        host, port = server_address(command)
        client = container_client(command)
        return (host, port) if client is None else ("127.0.0.1", published(command, client, port))


def server_address(command: Command) -> tuple[str, int]:
    """Host and port that the server will listen on."""
    host, port = _DEFAULT
    for flag in command.flags:
        name = main_spelling(flag.name)
        if name == "--host" and flag.value:
            host = flag.value
        if name == "--port" and flag.value and flag.value.isdigit():
            port = int(flag.value)
    return host, port


def reads(base: Base, text: str, config: ConfigFile | None) -> Command:
    """A command with the script's variables and the settings of its `--config` file put in: to read values."""
    command = base.reads(text)
    if config is None:
        return command
    at = command.words[command.arguments - 1].end
    return read_server(f"{command.text[:at]} {config.words()}{command.text[at:]}")


def _pieces(text: str) -> list[str]:
    """Words of a command and the blanks between them, so that joining gives the text again."""
    cuts = [0, *(at for word in read_server(text).words for at in (word.start, word.end)), len(text)]
    return [text[a:b] for a, b in pairwise(cuts) if b > a]


def make_plan(
    base: Base,
    changes: Sequence[Change],
    *,
    by_hand: Iterable[str] = (),
    hypothesis: HypothesisInfo | None = None,
    allowed_env: Iterable[str] = (),
    config: ConfigFile | None = None,
) -> Plan:
    """The plan for these changes, as one. Raises ReplayError where a change is refused or nothing would change."""
    for change in changes:
        check_allowed(change, allowed_env)
        _check_taken(base, change)
    on_line, in_file = _places(base, changes, config)
    after = change_command(base.text, on_line)
    changed = config.changed(in_file) if config is not None and in_file else None
    if after == base.text and (changed is None or config is None or changed.text == config.text):
        raise ReplayError(
            "these changes leave the command as it is", hint="the launch has them already; try another fix"
        )
    return Plan(
        base, tuple(changes), base.text, after, tuple(by_hand),
        hypothesis.finding if hypothesis else None,
        hypothesis.title if hypothesis else "",
        tuple(hypothesis.verify) if hypothesis else (),
        config, changed,
    )  # fmt: skip


def _places(base: Base, changes: Sequence[Change], config: ConfigFile | None) -> tuple[list[Change], list[Change]]:
    """(changes of the command line, changes of the `--config` file). A flag is set where it stands; the command line
    wins over the file, so a flag in both, or in a file that cannot be read from here, is set on the command line."""
    command = base.command()
    stated = {main_spelling(flag.name) for flag in command.flags}
    on_line, in_file = [], []
    for change in changes:
        there = change.kind == "flag" and config is not None and config.holds(change.name)
        here = change.kind == "flag" and main_spelling(change.name) in stated
        if there and (change.op == "remove" or not here):
            in_file.append(change)
        if change.op == "remove" and change.kind == "flag" and not here and not there:
            change = _without(command, change, config)
        if here or not there:
            on_line.append(change)
    exported = [c for c in on_line if c.kind == "env" and c.op == "set" and base.variables.get(c.name) == c.value]
    return [c for c in on_line if c not in exported], in_file


def _without(command: Command, change: Change, config: ConfigFile | None) -> Change:
    """A flag to be removed that may stand in a file which cannot be read: it is set to its default instead."""
    path = config_path(command)
    if path is None or config is not None:
        return change
    default = catalog().default(change.name, catalog().newest)
    if isinstance(default, (str, int, float)) and not isinstance(default, bool):
        return Change("flag", "set", change.name, str(default))
    raise ReplayError(
        f"{change.name} is not on the command line; it may stand in {path}, which cannot be read from here",
        hint="take it out of that file by hand, or set it to another value with --fix 'set …'",
    )


def config_path(command: Command) -> str | None:
    """The file that `--config` names. `--config=file` does not count: sglang looks for the word by itself."""
    found = [f for f in command.flags if command.words[f.first].value == "--config" and f.values]
    return found[-1].value if found else None


def read_config(base: Base, read: Callable[[str], str | None]) -> ConfigFile | None:
    """The `--config` file of a base command; None without one, or where it cannot be read (inside a container)."""
    command = base.reads(base.text)
    path = config_path(command)
    cwd = base.script.cwd if base.script else ""
    if path is None or container_client(command) is not None or (cwd is None and not path.startswith("/")):
        return None
    text = read(posixpath.join(cwd or "", path))
    return None if text is None else ConfigFile(path, text)


def _check_taken(base: Base, change: Change) -> None:
    """Refuse to give a flag of the router to a server: its parser does not know it."""
    router = change.kind == "flag" and change.op == "set" and change.name.startswith("--router-")
    if router and "router" not in base.command().module:
        raise ReplayError(
            f"{change.name} is a flag of the router, and this command starts a server without one",
            hint="replay starts no router: add it to the router's command by hand",
        )


def check_allowed(change: Change, allowed_env: Iterable[str] = ()) -> None:
    """Raise ReplayError for an environment variable that a fix may not touch."""
    if change.kind != "env" or change.name in set(allowed_env):
        return
    if not settable(change.name):
        raise ReplayError(
            f"{change.name} is not on the list of variables that a fix may set",
            hint=f"if you trust it, allow it with --allow-env {change.name}",
        )
