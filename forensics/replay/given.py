"""What a person gave to a server whose log states no command: of a `server_args=` dump, the arguments that are neither
the release's defaults nor the server's own choices, in words that its command line takes back.

The dump is printed after start-up filled in what nobody gave, and in Python's spelling. What is left out is told, with
the reason; a value that cannot be written as it was given is never guessed.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from shlex import quote

from forensics.frozen import frozen
from forensics.replay.start_values import OBJECTS, as_given, chosen, perhaps_chosen
from forensics.rulebook.versions import older, version_key
from forensics.schema.report import LaunchInfo
from forensics.timeline.catalog import catalog

_LEADING = ("model_path", "tp_size", "dp_size", "pp_size", "ep_size", "host", "port", "device", "nnodes")
SECRETS = frozenset({"api_key", "admin_api_key", "ssl_keyfile_password"})
_RELAUNCH = frozenset({"random_seed", "nccl_port", "node_rank", "model_config"})
"""Fields that the server or a relaunch fills in itself: no reader misses them."""
_NOT_TAKEN = SECRETS | {"log_level_http"}
_CUT = "…"
_REPR = re.compile(r"[A-Za-z_][\w.]*\(.*\)|<.*>", re.DOTALL)
_LORA = re.compile(r"lora_name='(?P<name>[^']*)', lora_path='(?P<path>[^']*)'")
_NEGATIVE = re.compile(r"-\d+(?:\.\d*)?|-\.\d+", re.ASCII)
"""What argparse takes for a value although a minus stands before it."""
SHOWN = 60
"""Characters of a value that was left out."""


@frozen
class Argument:
    """One argument: the field, its flag, and the words of the command line, quoted for a shell."""

    dest: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


@frozen
class Given:
    """`arguments` make up the command, `perhaps` are those among them that the server may have chosen itself. Left out:
    `chosen` (the server's own choice), `unwritable` ((field, why)), `unknown` (fields without a flag), `not_taken`
    (secrets and the like). `version`: the release whose defaults were compared."""

    arguments: tuple[Argument, ...]
    perhaps: tuple[Argument, ...]
    chosen: tuple[str, ...]
    unwritable: tuple[tuple[str, str], ...]
    unknown: tuple[str, ...]
    not_taken: tuple[str, ...]
    version: str

    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the command, one sentence a line."""
        told = []
        if self.chosen:
            told.append(f"left out, for the server chooses them at start-up: {', '.join(self.chosen)}")
        if self.perhaps:
            words = ", ".join(map(str, self.perhaps))
            told.append(f"perhaps chosen by the server, stated as if they had been given: {words}")
        told += [f"left out: {dest}, {why}" for dest, why in self.unwritable]
        if self.unknown:
            told.append(f"fields without a known flag are left out: {', '.join(self.unknown[:8])}")
        if self.not_taken:
            told.append(f"fields that the relaunch does not take over: {', '.join(self.not_taken)}")
        return tuple(told)


def given_arguments(launch: LaunchInfo) -> Given | None:
    """The arguments of the launch's dump; None where the log holds no dump that names a model."""
    facts = {name[5:]: fact for name, fact in launch.facts.items() if name.startswith("args.")}
    args = {dest: fact.value for dest, fact in facts.items() if not fact.how.startswith("inferred")}
    if args.get("model_path") is None:
        return None
    return _Selection(launch, args).made()


class _Selection:
    """Goes through the fields of one dump."""

    def __init__(self, launch: LaunchInfo, args: Mapping[str, object]) -> None:
        book, stated = catalog(), launch.version
        self.args = args
        self.version = stated.exact or stated.low or stated.high or book.newest
        ends = (stated.exact,) if stated.exact else (self.version, stated.high or book.newest)
        self.releases = tuple(dict.fromkeys(ends))
        memory = launch.facts.get("gpu.memory_gb")
        self.memory = memory.value if memory is not None and isinstance(memory.value, int | float) else None
        self.arguments: list[Argument] = []
        self.perhaps: list[Argument] = []
        self.chosen: list[str] = []
        self.unwritable: list[tuple[str, str]] = []
        self.unknown: list[str] = []
        self.not_taken: list[str] = []

    def made(self) -> Given:
        """The selection, leading arguments first, then by name."""
        for dest in sorted(self.args, key=lambda d: (_LEADING.index(d) if d in _LEADING else len(_LEADING), d)):
            flag = self._flag(dest)
            if not self._says_nothing(dest, flag):
                self._sort(dest, flag)
        return Given(
            tuple(self.arguments), tuple(self.perhaps), tuple(self.chosen), tuple(self.unwritable),
            tuple(self.unknown), tuple(self.not_taken), self.version,
        )  # fmt: skip

    def _says_nothing(self, dest: str, flag: str | None) -> bool:
        """Whether a field is unset, off, the release's default, or filled in anew by every launch."""
        value = self.args[dest]
        if dest == "model_path":
            return False
        if dest in _RELAUNCH or (dest == "dist_init_addr" and self.args.get("nnodes") in (None, 1)):
            return True
        if _nothing(value):
            return not (value is False and flag is not None and True in self._defaults(flag))
        return flag is not None and any(_equal(value, default) for default in self._defaults(flag))

    def _sort(self, dest: str, flag: str | None) -> None:
        """Put a field that says something where it belongs."""
        value = self.args[dest]
        if dest in _NOT_TAKEN:
            self.not_taken.append(dest)
        elif flag is None:
            self.unknown.append(dest)
        elif dest != "model_path" and chosen(dest, value, self.args, self._defaults(flag), self.memory):
            if value != self.args["model_path"]:  # the names of the model and the tokenizer: nobody misses them
                self.chosen.append(f"{flag} {_shown(value)}".rstrip())
        elif (why := self._refused(dest, flag, value)) is not None:
            self.unwritable.append((flag, why))
        else:
            self.arguments.append(Argument(dest, tuple(self._words(flag, as_given(dest, value, self.args)))))
            if perhaps_chosen(dest, value, self.args):
                self.perhaps.append(self.arguments[-1])

    def _refused(self, dest: str, flag: str, value: object) -> str | None:
        """Why the command line cannot state a value; None where it can."""
        if dest in OBJECTS:
            return "an object that the server builds at start-up; what was given for it cannot be told"
        if isinstance(value, bool):
            off = "no flag of this release switches it off"
            return off if not value and not self._negatable(flag) else None
        if isinstance(value, str) and value.endswith(_CUT):
            return "too long for a report: its end is missing"
        if any(mark in str(value) for mark in ("<redacted>", "[masked]")):
            return "the log hides its value"
        try:
            words = self._words(flag, value)
        except _Unwritable as error:
            return error.why
        known = [self._choices(flag, version) for version in self.releases]
        if all(choices is not None and not set(words[1:]) <= {quote(c) for c in choices} for choices in known):
            return f"{flag} of this release does not take {_shown(value)}"
        return None

    def _words(self, flag: str, value: object) -> list[str]:
        book = catalog()
        if isinstance(value, bool):
            if book.takes_value(flag):
                return [flag, str(value)]
            return [flag if value else f"--no-{flag[2:]}"]
        kind = self._kind(flag)
        if isinstance(value, list | tuple):
            return _list_words(flag, value, kind)
        text = str(value)
        if text[:1] in "{[" or _REPR.fullmatch(text):
            text = _plain(text, lenient="json" not in kind)
        return [flag, quote(_no_option(text))]

    def _kind(self, flag: str) -> str:
        """The type of a flag's values in the release."""
        entry = catalog().flags[flag]
        kind = str(entry.get("type") or "")
        for change in entry.get("type_history", ()):
            if not older(self.version, change["since"]):
                kind = str(change["value"] or "")
        return kind

    def _choices(self, flag: str, version: str) -> frozenset[str] | None:
        return catalog().choices(flag, version)

    def _negatable(self, flag: str) -> bool:
        since = catalog().flags[flag].get("no_form_since")
        return since is not None and any(not older(version, str(since)) for version in self.releases)

    def _defaults(self, flag: str) -> tuple[object, ...]:
        """A flag's defaults in the releases that the log can be of, as far as they have it."""
        life = catalog().flag_lifetime(flag)
        first = life.first if life is not None else None
        versions = (first if first is not None and older(v, first) else v for v in self.releases)
        return tuple(catalog().default(flag, version) for version in dict.fromkeys(versions))

    def _flag(self, dest: str) -> str | None:
        """The flag that sets a field in the release: fields and flags were renamed, and not together. Where the release
        is not known well enough, the field's own name tells."""
        book = catalog()
        own = "--" + dest.replace("_", "-")
        names = (own, *(n for n in book.flags if n != own))
        for name in names:
            life = book.flag_lifetime(name)
            if life is not None and _field(name, self.version) == dest and book.exists(life, self.version) is not False:
                return name
        return next((n for n in names if dest in _fields(n) and self._may_exist(n)), None)

    def _may_exist(self, flag: str) -> bool:
        """Whether some release that the log can be of may have a flag."""
        life = catalog().flag_lifetime(flag)
        if life is None:
            return False
        exact = len(self.releases) == 1
        return not exact or any(catalog().exists(life, version) is not False for version in self.releases)


class _Unwritable(Exception):
    """A value that no command line holds."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _list_words(flag: str, value: list[object] | tuple[object, ...], kind: str) -> list[str]:
    items = []
    for item in value:
        adapter = _LORA.search(str(item)) if flag == "--lora-paths" else None
        text = f"{adapter['name']}={adapter['path']}" if adapter else str(item)
        if text.endswith(_CUT) or isinstance(item, bool):
            raise _Unwritable("not all of its parts can be written on a command line")
        items.append(_plain(text, lenient=True) if text[:1] in "{[" or _REPR.fullmatch(text) else text)
    if "list" in kind:
        return [flag, *map(quote, map(_no_option, items))]
    if "json" in kind:
        return [flag, quote(json.dumps(list(value)))]
    raise _Unwritable("a list, where the flag takes one value")


def _no_option(text: str) -> str:
    """A value as it is. Raises `_Unwritable` for one that the parser would take for an option of its own."""
    if text.startswith("-") and not _NEGATIVE.fullmatch(text):
        raise _Unwritable("a value that the parser would take for an option")
    return text


def _plain(text: str, lenient: bool) -> str:
    """A nested value as JSON. Raises `_Unwritable` for a Python object."""
    try:
        json.loads(text)
        return text
    except (ValueError, RecursionError):
        pass
    try:
        return json.dumps(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    if lenient and text[:1] == "[" and "(" not in text:
        return text
    raise _Unwritable("a Python object, which no command line takes")


def _nothing(value: object) -> bool:
    """Whether a field holds no value, or is off."""
    return value is None or value is False or value in ("", "{}", "[]") or value in ((), [])


def _equal(value: object, default: object) -> bool:
    if isinstance(default, str) and len(default) == 60 and default.endswith("..."):  # the catalog's own cut
        return str(value).startswith(default[:-3])
    if isinstance(value, list | tuple) and isinstance(default, list):
        return list(value) == default
    return value == default or (default is not None and str(value) == str(default))


def _shown(value: object) -> str:
    if value is True:
        return ""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return text if len(text) <= SHOWN else f"({len(text)} characters)"


def _fields(name: str) -> Iterator[str]:
    """All fields that a flag ever set."""
    entry = catalog().flags.get(name, {})
    yield from (str(f) for f in (entry.get("dest"), *(c["value"] for c in entry.get("dest_history", ()))) if f)


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
