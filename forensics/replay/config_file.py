"""A server's `--config` file: read for its settings, and changed in a copy; the original is never written.

sglang puts the file's settings before the words of the command line, so that the command line wins. That is so in every
release that has `--config` (read in 0.5.3, 0.5.5, 0.5.9, 0.5.13, 0.5.17 and 0.5.23: `merge_config_with_args`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from shlex import quote

import yaml

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.replay.edits import Change, Edit, apply, main_spelling
from forensics.timeline.catalog import catalog

_PLAIN = re.compile(r"[A-Za-z0-9_./+-][A-Za-z0-9_./:+-]*\Z")
MAX_BYTES = 1 << 20


@frozen
class ConfigFile:
    """`path` as the command names it, `text` what the file holds."""

    path: str
    text: str

    def settings(self) -> list[tuple[str, str | None]]:
        """(flag, value) of each setting, in the file's order; None for a switch that is on."""
        found = []
        for key, value in _pairs(self):
            shown = _value(value)
            if shown != "false":
                found.append((_flag(key.value), None if shown == "true" else shown))
        return found

    def words(self) -> str:
        """The settings as words of a command line."""
        shown = (f"{flag} {_quoted(value)}" if value is not None else flag for flag, value in self.settings())
        return " ".join(shown)

    def holds(self, name: str) -> bool:
        """Whether the file states this flag, in any spelling."""
        return any(_main(key.value) == main_spelling(name) for key, _ in _pairs(self))

    def changed(self, changes: Sequence[Change]) -> ConfigFile:
        """The file with each change of a flag that it holds; every other byte stays."""
        text = self.text
        for change in changes:
            edits = list(_edits(ConfigFile(self.path, text), change))
            text = apply(text, edits)
            ConfigFile(self.path, text).settings()
        return ConfigFile(self.path, text)


def _pairs(file: ConfigFile) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    try:
        root = yaml.compose(file.text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ReplayError(
            f"{file.path}{line}: {problem}", hint="mend the file: the server cannot read it, either"
        ) from None
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode) or not all(isinstance(k, yaml.ScalarNode) for k, _ in root.value):
        raise ReplayError(f"{file.path}: not a mapping of settings", hint="write one `flag: value` a line")
    pairs: list[tuple[yaml.ScalarNode, yaml.Node]] = root.value
    return pairs


def _flag(key: str) -> str:
    return "--" + key.replace("_", "-")


def _main(key: str) -> str:
    return main_spelling(_flag(key))


def _value(node: yaml.Node) -> str:
    """A setting's value as sglang gives it to its parser."""
    data = yaml.SafeLoader("").construct_document(node) if not isinstance(node, yaml.ScalarNode) else None
    if isinstance(node, yaml.ScalarNode):
        text = str(node.value)
        return text.lower() if node.tag == "tag:yaml.org,2002:bool" else text
    return " ".join(map(str, data)) if isinstance(data, list) else json.dumps(data)


def _quoted(value: str) -> str:
    return quote(value) if value.startswith("{") else " ".join(map(quote, value.split(" ")))


def _edits(file: ConfigFile, change: Change) -> Iterator[Edit]:
    pairs = [(k, v) for k, v in _pairs(file) if _main(k.value) == main_spelling(change.name)]
    if change.op == "remove":
        for key, value in pairs:
            yield _cut(file, key, value)
    elif pairs:
        value = pairs[-1][1]
        start, end = value.start_mark.index, value.end_mark.index
        held = file.text[start:end]
        stated = _list(change.value) if change.value and _is_list(change) else _scalar(change.value)
        yield Edit(start, start + len(held.rstrip()), ("" if held else " ") + stated)


def _cut(file: ConfigFile, key: yaml.ScalarNode, value: yaml.Node) -> Edit:
    """Whole lines, the comment behind the value with them."""
    text = file.text
    start = text.rfind("\n", 0, key.start_mark.index) + 1
    if text[start : key.start_mark.index].strip():
        raise ReplayError(
            f"{file.path}: {key.value} stands in braces, and is not cut out of there", hint="write one setting a line"
        )
    last = key.start_mark.index + len(text[key.start_mark.index : value.end_mark.index].rstrip())
    end = text.find("\n", last)
    return Edit(start, len(text) if end < 0 else end + 1, "")


def _is_list(change: Change) -> bool:
    value = change.value or ""
    return " " in value and not value.startswith("{") and catalog().takes_several(change.name)


def _list(value: str) -> str:
    return "[" + ", ".join(_scalar(part) for part in value.split()) + "]"


def _scalar(value: str | None) -> str:
    if value is None:
        return "true"
    return value if _PLAIN.match(value) and not value.endswith(":") else json.dumps(value)
