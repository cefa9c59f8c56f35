"""Servers that a container client starts: where words go in, what is refused, how the server is reached and stopped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import quote

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.grammar.command import ASSIGNMENT, Command, Word

CONTAINER_CLIENTS = ("docker", "podman", "nerdctl")
_VERBS = ("run", "exec", "create")
_HOST_NETWORK = ("--network=host", "--net=host")


@frozen
class Container:
    """How a container of a launch is found again. `client` are the words that call it (`sudo docker`); `cidfile` holds
    its id, None for `exec`, which starts no container of its own."""

    client: tuple[str, ...]
    cidfile: str | None


def container_client(command: Command) -> int | None:
    """Index of the `docker`/`podman` word that starts the server's container, else None."""
    for index in range(_segment(command), command.program):
        if command.words[index].value.rpartition("/")[2] in CONTAINER_CLIENTS:
            return index
    return None


def _segment(command: Command) -> int:
    """Index of the first word after the last operator before the server."""
    operators = [i for i in range(command.program) if command.words[i].operator]
    return operators[-1] + 1 if operators else 0


def client_words(command: Command, client: int) -> tuple[str, ...]:
    """The words that call the client, with a `sudo` before it."""
    before = [w.value for w in command.words[_segment(command) : client] if not ASSIGNMENT.match(w.value)]
    sudo = before[before.index("sudo") :] if "sudo" in before else []
    return (*sudo, command.words[client].value)


def after_run(command: Command, client: int) -> tuple[int, int]:
    """The place right after `docker run` / `docker exec`, twice. Raises ReplayError where the client does neither."""
    for index in range(client + 1, command.program):
        if command.words[index].value in _VERBS:
            end = command.words[index].end
            return end, end
    raise ReplayError(
        "this container command neither runs nor executes a container", hint="give a docker run or exec command"
    )


def inserted(command: Command, client: int, cidfile: str, mark: str) -> tuple[str, Container]:
    """The words that replay needs right after `run` or `exec`, and how the container is found again.

    A `run` gets an id file, and both get the mark in the environment of what they start. Raises ReplayError for a
    container that cannot be followed: detached, or with a terminal that replay does not give it.
    """
    words = [w.value for w in command.words[client : command.program]]
    calls = client_words(command, client)
    if any(w in ("-d", "--detach", "--detach=true") for w in words) or "d" in _letters(words):
        raise ReplayError("the container is started detached, so its output cannot be followed", hint="remove -d")
    if {"i", "t"} <= _letters(words) or ("--tty" in words and {"--interactive", "-i"} & set(words)):
        raise ReplayError("the container asks for a terminal, and replay gives it none", hint="remove -t (-it)")
    if "run" not in words:
        return f" -e {mark}", Container(calls, None)
    own = _value(words, "--cidfile")
    if own is not None:
        return f" -e {mark}", Container(calls, own)
    rm = "" if "--rm" in words or _value(words, "--name") is None else " --rm"
    return f" -e {mark} --cidfile {quote(cidfile)}{rm}", Container(calls, cidfile)


def asking_words(command: Command, client: int) -> list[Word]:
    """The client's words up to the image or container, for a short program beside the server: without its name, its
    ports and its id file, and gone when it ends."""
    words = command.words[client : command.program]
    before = command.words[_segment(command) : client]
    sudo = next((n for n, w in enumerate(before) if w.value == "sudo"), len(before))
    out = [*before[sudo:], words[0]]
    skip = False
    for word in words[1:]:
        value = word.value
        short = value[:2] == "-p" and value[2:3].isdigit()
        if skip or short or value.startswith(("--name=", "--publish=", "--cidfile=")):
            skip = False
        elif value in ("--name", "-p", "--publish", "--cidfile"):
            skip = True
        else:
            out.append(word)
    return out


def published(command: Command, client: int, port: int) -> int | None:
    """The port of the host behind which the server's `port` is; None where the container publishes it nowhere."""
    words = [w.value for w in command.words[client : command.program]]
    if "run" not in words or any(w in _HOST_NETWORK for w in words):
        return port
    if any(a in ("--network", "--net") and b == "host" for a, b in pairwise(words)):
        return port
    for mapping in _mappings(words):
        host, _, inside = mapping.removesuffix("/tcp").rpartition(":")
        number = host.rpartition(":")[2]
        if inside == str(port) and number.isdigit():
            return int(number)
    return None


def _mappings(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in ("-p", "--publish"):
            yield following
        elif word.startswith("--publish="):
            yield word.partition("=")[2]
        elif word[:2] == "-p" and word[2:3].isdigit():
            yield word[2:]


def _letters(words: Sequence[str]) -> set[str]:
    """Letters of short switches that stand together, `-it`."""
    return {c for w in words if w[:1] == "-" and w[1:].isalpha() and set(w[1:]) <= set("itd") for c in w[1:]}


def _value(words: Sequence[str], name: str) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == name:
            return following
        if word.startswith(name + "="):
            return word.partition("=")[2]
    return None
