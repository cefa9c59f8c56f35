"""A launch script of the user: the server's own command, what prepares it, and what takes its output.

Preparation (`export`, `source`, `cd`, …) is kept byte for byte and run by bash before the command. Redirections, pipes
and `&` behind the command are left out, and so is all that follows: replay keeps the server's output itself, and the
log that is being diagnosed must not be overwritten by the relaunch.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import ASSIGNMENT, Command, read_command, split_words
from forensics.grammar.script import Simple, simple_commands
from forensics.timeline.catalog import catalog

_NO_SERVER = re.compile(r"router|bench|generate|compile")
_SETS_UP = frozenset(
    {
        "export", "declare", "source", ".", "cd", "set", "module", "conda", "mamba", "micromamba", "ulimit", "unset",
        "umask", "eval",
    }
)  # fmt: skip
_BUILTINS = frozenset({"exec", "time", "command", "builtin"})
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^{}]*))?\})")
_BY_ITSELF = "give the server's own command with --launch"


@frozen
class Script:
    """`prologue` is what stands before `command`, byte for byte. `asking` holds the lines of it that prepare an
    environment: enough to ask the server's Python. `left_out` are sentences about what is not run."""

    prologue: str
    command: str
    asking: str
    left_out: tuple[str, ...]
    variables: dict[str, str]
    cwd: str | None

    @property
    def needs_shell(self) -> bool:
        """Whether the words alone do not say what is run."""
        first = split_words(self.command)[:1]
        builtin = bool(first) and first[0].value in _BUILTINS
        return bool(self.prologue.strip()) or builtin or bool(re.search(r"[$`~*?]", self.command))


def read_script(text: str, origin: str) -> Script:
    """Find the one server that a script starts. Raises ReplayError, with the line, where there is none, more than one,
    or one in a place that cannot be run by itself."""
    if "<<" in text and re.search(r"<<-?\s*[\"'\w]", text):
        line = text.count("\n", 0, text.index("<<")) + 1
        raise ReplayError(f"{origin}:{line}: a here-document cannot be read", hint=_BY_ITSELF)
    commands = simple_commands(text)
    if commands is None:
        raise ReplayError(f"{origin}: this is no shell command (a quote that does not close?)", hint=_BY_ITSELF)
    at = _the_server(text, commands, origin)
    server = commands[at]
    if server.inside:
        where = {"(": "a subshell", "{": "a function or group"}.get(server.inside, f"a `{server.inside}` block")
        raise ReplayError(f"{origin}:{server.line}: the server is started inside {where}", hint=_BY_ITSELF)
    _check_output(text, commands[:at], origin)
    end = _end_of_words(text, server, origin)
    before = [c for c in commands[:at] if not c.inside]
    variables = dict(_variables(text, before))
    return Script(
        prologue=text[: server.start].lstrip(),
        command=text[server.start : end],
        asking="".join(text[c.start : c.end] + "\n" for c in before if _sets_up(text, c)),
        left_out=tuple(_left_out(text, server, commands[at + 1 :], end)),
        variables=variables,
        cwd=_cwd(text, before, variables),
    )


def _the_server(text: str, commands: Sequence[Simple], origin: str) -> int:
    found = [(n, c, read) for n, c in enumerate(commands) if (read := _server(text[c.start : c.end])) is not None]
    servers = [(n, c) for n, c, read in found if not _NO_SERVER.search(read.module)]
    if len(servers) > 1:
        lines = ", ".join(str(c.line) for _, c in servers)
        raise ReplayError(
            f"{origin}: {len(servers)} servers are started here (lines {lines})",
            hint="a replay is about one of them: " + _BY_ITSELF,
        )
    if servers:
        return servers[0][0]
    if found:
        raise ReplayError(f"{origin}: {found[0][2].module} is started here, and no sglang server", hint=_BY_ITSELF)
    raise ReplayError(
        f"{origin}: no sglang server is started by this command",
        hint="give the command with --launch 'python -m sglang.launch_server …' or --launch-file run.sh; "
        "a command inside quotes (bash -c '…') must be given without them",
    )


def _server(text: str) -> Command | None:
    found = read_command(text, catalog())
    return found if found is not None and _starts(found) else None


def _starts(command: Command) -> bool:
    """Whether the words run the server; `echo python -m sglang.launch_server` and `pgrep -f …` only name it."""
    first = next((w.value for w in command.words if not ASSIGNMENT.match(w.value)), "")
    return first.rpartition("/")[2] not in ("echo", "printf", "pgrep", "pkill", "grep", "which", "alias")


def _check_output(text: str, before: Sequence[Simple], origin: str) -> None:
    """`exec > file` sends all later output away from replay."""
    for one in before:
        words = [text[a:b] for a, b in one.words]
        if words[:1] == ["exec"] and one.redirects:
            raise ReplayError(
                f"{origin}:{one.line}: `exec` sends all output elsewhere", hint="take that line out of a copy"
            )


def _end_of_words(text: str, server: Simple, origin: str) -> int:
    """Where the last argument ends; redirections may only follow it."""
    if not server.redirects:
        return server.words[-1][1]
    first = server.redirects[0][0]
    targets = sum(1 for a, b in server.redirects if not text[a:b].rstrip("-").endswith(tuple("0123456789")))
    behind = [w for w in server.words if w[0] > first]
    if len(behind) > targets:
        raise ReplayError(
            f"{origin}:{server.line}: arguments follow a redirection", hint="write the redirection behind them"
        )
    return max(b for a, b in server.words if a < first)


def _left_out(text: str, server: Simple, after: Sequence[Simple], end: int) -> Iterator[str]:
    piped = [c for c in after if c.by and c.start >= server.end]
    stop = server.end
    by = server.by
    for one in piped:
        if by not in ("|", "|&"):
            break
        stop, by = one.end, one.by
        after = after[1:]
    taken = re.sub(r"\\\r?\n", " ", text[end:stop]).strip() + (" &" if by == "&" else "")
    if taken.strip():
        yield f"`{' '.join(taken.split())}` is left out: replay keeps the server's output itself and ends the server"
    if after:
        line = min(c.line for c in after)
        yield "what follows the server's command is not run" + (f" (from line {line} on)" if line > server.line else "")


def _sets_up(text: str, one: Simple) -> bool:
    words = [text[a:b] for a, b in one.words]
    return bool(words) and not one.redirects and (words[0] in _SETS_UP or all(ASSIGNMENT.match(w) for w in words))


def _variables(text: str, before: Sequence[Simple]) -> Iterator[tuple[str, str]]:
    """Variables with a value that can be read without a shell."""
    known: dict[str, str] = {}
    for one in before:
        words = split_words(text[one.start : one.end])
        if words and words[0].value in ("export", "declare"):
            words = words[1:]
        elif not all(ASSIGNMENT.match(w.value) for w in words):
            continue
        for word in words:
            found = ASSIGNMENT.match(word.value)
            if found and "$(" not in found.group(2) and "`" not in found.group(2):
                known[found.group(1)] = substitute(found.group(2), known)
    yield from known.items()


def substitute(text: str, variables: dict[str, str]) -> str:
    """`$NAME`, `${NAME}` and `${NAME:-default}` with what the script gives them; an unknown one stays."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(2)
        known = variables.get(name)
        if known:
            return known
        return match.group(3) if match.group(3) is not None else match.group()

    return _VARIABLE.sub(value, text)


def resolved(text: str, variables: dict[str, str]) -> str:
    """A command as its words read once the script's variables are put in; for reading it, never for running it."""
    if not variables and "$" not in text:
        return text
    out, at = [], 0
    for word in split_words(text):
        raw = text[word.start : word.end]
        out += [text[at : word.start], raw if raw.startswith("'") or "$" not in raw else substitute(raw, variables)]
        at = word.end
    return "".join([*out, text[at:]])


def _cwd(text: str, before: Sequence[Simple], variables: dict[str, str]) -> str | None:
    """The folder that `cd` leads to, empty for the starting one; None where it cannot be told."""
    folder = ""
    for one in before:
        words = [w.value for w in split_words(text[one.start : one.end])]
        if words[:1] in (["pushd"], ["popd"]) or (words[:1] == ["cd"] and len(words) != 2):
            return None
        if words[:1] == ["cd"]:
            target = substitute(words[1], variables)
            if "$" in target or "`" in target or target == "-":
                return None
            folder = posixpath.join(folder, target)
    return folder
