"""Launch commands: shell words with their places, the server inside them, its flags and environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Protocol

from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from forensics.frozen import frozen
from forensics.grammar.build import make_parser

ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*$")
MODULE = re.compile(
    r"(?:sglang\.(?:launch_\w+|bench_\w+|srt\.[\w.]+|cli(?:\.\w+)*|compile_deep_gemm)|sglang_router\.\w+|sglang)$"
)
SCRIPT = re.compile(r"(?:.*/)?(?:launch_server|launch_router|bench_\w+)\.py$")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$")
ENV_OPTIONS = ("-e", "--env", "--environment")
SKIPPED = frozenset({"+", "++", "+++", "$", "#", ">", ">>>", "%"})


@frozen
class Word:
    """One shell word. `value` has its quotes taken off; `start`/`end` delimit it in the text in code points, and
    `byte_start`/`byte_end` in its UTF-8 bytes. `operator`: `;`, `&&`, `|`, a redirection …"""

    value: str
    start: int
    end: int
    byte_start: int
    byte_end: int
    operator: bool = False


@frozen
class Flag:
    """One option of the server. `name` as written (without `=value`). `values` are its value words' texts: none for a
    switch, several for a list. `first`/`last` are the word indexes that it covers."""

    name: str
    values: tuple[str, ...]
    first: int
    last: int

    @property
    def value(self) -> str | None:
        """The single value, None for a switch; a list's values joined by blanks."""
        return " ".join(self.values) if self.values else None


@frozen
class Assignment:
    """`NAME=value` set for the server; `word` is the word index. `by`: prefix, env, export, container."""

    name: str
    value: str
    word: int
    by: str


@frozen
class Command:
    """A launch command. `program` is the index of the word that starts the server (its python or `sglang`), `arguments`
    that of the first word after the module or sub-command; `module` names what is started. `positionals` are words
    that belong to no flag. A flag given twice stands twice in `flags`: the last one counts."""

    text: str
    words: tuple[Word, ...]
    program: int
    arguments: int
    module: str
    flags: tuple[Flag, ...]
    env: tuple[Assignment, ...]
    positionals: tuple[int, ...] = ()

    def flag(self, *names: str) -> Flag | None:
        """The last flag with one of these names."""
        return next((f for f in reversed(self.flags) if f.name in names), None)


class FlagTypes(Protocol):
    """What the reader must know about flags: whether a value follows (None: unknown flag)."""

    def takes_value(self, name: str) -> bool | None: ...


@cache
def _parser() -> Lark:
    text = (Path(__file__).parent / "command.lark").read_text(encoding="utf-8")
    return make_parser(text, parser="lalr", propagate_positions=True)


def split_words(text: str) -> tuple[Word, ...]:
    """Shell words of a text with their places; empty where the text is no shell at all. Nothing is expanded."""
    try:
        tree = _parser().parse(text)
    except LarkError:
        return ()
    words = []
    at = at_byte = 0
    for node in tree.children:
        if isinstance(node, Token):
            if node.type == "BLANK":
                continue
            value, start, end, operator = str(node), node.start_pos, node.end_pos, True
        else:
            value, start, end, operator = _joined(node), node.meta.start_pos, node.meta.end_pos, False
        assert start is not None and end is not None
        before = at_byte + len(text[at:start].encode())
        at, at_byte = end, before + len(text[start:end].encode())
        words.append(Word(value, start, end, before, at_byte, operator))
    return tuple(words)


def _joined(word: Tree[Token]) -> str:
    return "".join(_unquoted(t) for t in word.children if isinstance(t, Token))


def _unquoted(token: Token) -> str:
    match token.type:
        case "SINGLE":
            return token[1:-1] if token.endswith("'") and len(token) > 1 else token[1:]
        case "DOUBLE":
            body = token[1:-1] if token.endswith('"') and len(token) > 1 else token[1:]
            return re.sub(r'\\(["\\$`])', r"\1", body).replace("\\\n", "")
        case "ESCAPED":
            return token[1:]
        case _:
            return str(token)


def read_command(text: str, types: FlagTypes | None = None) -> Command | None:
    """The launch command in a text (a shell line, with or without prompt), None where it starts no sglang program."""
    if "sglang" not in text and "launch_server" not in text and "launch_router" not in text:
        return None
    words = split_words(text)
    found = _server(words)
    if found is None:
        return None
    program, arguments, module = found
    flags, positionals = _flags(words, arguments, types)
    return Command(text, words, program, arguments, module, flags, tuple(_assignments(words, program)), positionals)


def read_exports(text: str) -> tuple[Assignment, ...]:
    """Variables that an `export A=1 B=2` line sets (also `declare -x`, and a line of assignments alone)."""
    words = [(i, w) for i, w in enumerate(split_words(text)) if w.value not in SKIPPED and not w.operator]
    if not words:
        return ()
    if words[0][1].value in ("export", "declare", "typeset", "setenv"):
        words = words[1:]
    elif not all(ASSIGNMENT.match(w.value) for _, w in words):
        return ()
    found = [(i, ASSIGNMENT.match(w.value)) for i, w in words]
    return tuple(Assignment(m.group(1), m.group(2), i, "export") for i, m in found if m)


def _server(words: tuple[Word, ...]) -> tuple[int, int, str] | None:
    """Index of the starting word, index of the first argument, and what is started."""
    for i, word in enumerate(words):
        if word.operator:
            continue
        if PYTHON.match(word.value):
            found = _python(words, i)
            if found:
                return found
        name = word.value.rpartition("/")[2]
        following = words[i + 1].value if i + 1 < len(words) else ""
        if name == "sglang" and following in ("serve", "generate", "router"):
            return i, i + 2, f"sglang {following}"
        if name in ("sglang-router", "sgl-router", "launch_router"):
            return i, i + 1, name
        if SCRIPT.match(word.value) and (i == 0 or words[i - 1].value in SKIPPED):
            return i, i + 1, word.value
    return None


def _python(words: tuple[Word, ...], at: int) -> tuple[int, int, str] | None:
    """The module or script that a python word runs, if it is one of sglang's."""
    i = at + 1
    while i < len(words) and not words[i].operator:
        value = words[i].value
        if value == "-m":
            module = words[i + 1].value if i + 1 < len(words) else ""
            if not MODULE.match(module):
                return None
            serves = module == "sglang" and i + 2 < len(words) and words[i + 2].value == "serve"
            return at, i + (3 if serves else 2), module
        if SCRIPT.match(value):
            return at, i + 1, value
        if not value.startswith("-"):
            return None
        i += 2 if value in ("-X", "-W") else 1
    return None


def _flags(words: tuple[Word, ...], start: int, types: FlagTypes | None) -> tuple[tuple[Flag, ...], tuple[int, ...]]:
    flags: list[Flag] = []
    positionals: list[int] = []
    i = start
    while i < len(words) and not words[i].operator:
        value = words[i].value
        if not _is_flag(value):
            positionals.append(i)
            i += 1
            continue
        name, equals, inline = value.partition("=")
        last = i if equals else _last_value(words, i, name, types)
        values = (inline,) if equals else tuple(w.value for w in words[i + 1 : last + 1])
        flags.append(Flag(name, values, i, last))
        i = last + 1
    return tuple(flags), tuple(positionals)


def _last_value(words: tuple[Word, ...], at: int, name: str, types: FlagTypes | None) -> int:
    takes = types.takes_value(name) if types else None
    if takes is False:
        return at
    last = at
    while last + 1 < len(words) and not words[last + 1].operator and not _is_flag(words[last + 1].value):
        last += 1
    return last


def _is_flag(value: str) -> bool:
    return value.startswith("-") and len(value) > 1 and not NUMBER.match(value) and not value.startswith("-{")


def _assignments(words: tuple[Word, ...], program: int) -> Iterator[Assignment]:
    """Variables that the words before the server set, nearest context only (after the last `;`, `&&` or `|`)."""
    start = next((i + 1 for i in range(program - 1, -1, -1) if words[i].operator and words[i].value in ";|&&||"), 0)
    by = "prefix"
    for i in range(start, program):
        value = words[i].value
        if value.rpartition("/")[2] == "env":
            by = "env"
        inline = next((o for o in ENV_OPTIONS[1:] if value.startswith(o + "=")), "")
        body = value[len(inline) + 1 :] if inline else value
        found = ASSIGNMENT.match(body)
        if not found:
            continue
        container = bool(inline) or (i > start and words[i - 1].value in ENV_OPTIONS)
        if container or by == "env" or not value.startswith("-"):
            yield Assignment(found.group(1), found.group(2), i, "container" if container else by)
