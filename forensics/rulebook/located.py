"""YAML in which every value knows its line and column, and a reader that collects problems instead of stopping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from forensics.frozen import frozen
from forensics.rulebook.problem import Edit, Problem
from forensics.schema.facts import Value
from forensics.schema.span import Span

if TYPE_CHECKING:
    import yaml

Plain: TypeAlias = "bool | int | float | str | None"
MAX_BYTES = 1 << 20


@frozen
class Located:
    """One YAML value. `value` is a scalar, a tuple of items or a dict of fields; `line` and `column` (1-based) are
    where it starts, `style` is its quoting (`'`, `"`, `|`, `>` or empty). `key_at` places the keys of a mapping."""

    value: Plain | tuple[Located, ...] | dict[str, Located]
    line: int
    column: int
    style: str = ""
    key_at: dict[str, tuple[int, int]] = field(default_factory=dict)

    def items(self) -> tuple[Located, ...]:
        """Items of a sequence, else nothing."""
        return self.value if isinstance(self.value, tuple) else ()

    def fields(self) -> dict[str, Located]:
        """Fields of a mapping, else nothing."""
        return self.value if isinstance(self.value, dict) else {}

    def plain(self) -> Value:
        """The value without places (mappings: None)."""
        if isinstance(self.value, tuple):
            return tuple(item.plain() for item in self.value)
        return None if isinstance(self.value, dict) else self.value

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of the character at `offset` of a scalar's text (exact for scalars on one line)."""
        if self.style in ("|", ">"):
            return self.line, self.column
        return self.line, self.column + offset + (1 if self.style in ("'", '"') else 0)


class Reader:
    """Reads one YAML text with strict keys; every fault becomes a Problem with its place."""

    def __init__(self, path: str, text: str, first_line: int = 1, whole: str | None = None) -> None:
        self.path = path
        self.lines = (text if whole is None else whole).split("\n")
        self.problems: list[Problem] = []
        self.root = self._compose(text, first_line)

    def _compose(self, text: str, first_line: int) -> Located | None:
        if len(text) > MAX_BYTES:
            self.add("K001", "the file is larger than 1 MiB", first_line, 1, "split it: one rule or finding per file")
            return None
        # An unchanged knowledge base comes from the cache: then nothing needs this library.
        import yaml

        try:
            node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            return None if node is None else _locate(node, first_line - 1, self, set())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (mark.line + first_line, mark.column + 1) if mark else (first_line, 1)
            said = " ".join(x for x in (error.context, error.problem) if x)
            self.add("K001", f"not YAML: {said}", line, column, "quote texts that hold `: `, `#`, `{` or `*`")
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            self.add("K001", f"not YAML: {error}".split("\n")[0], first_line, 1)
        return None

    def add(
        self,
        code: str,
        message: str,
        line: int,
        column: int,
        hint: str = "",
        edit: Edit | None = None,
        severity: str = "error",
    ) -> None:
        """Note a problem at a place of this file."""
        excerpt = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        span = Span(self.path, line, column)
        self.problems.append(Problem(code, message, span, hint, excerpt, severity, edit))

    def fault(self, code: str, message: str, at: Located, hint: str = "", edit: Edit | None = None) -> None:
        """Note a problem at a value."""
        self.add(code, message, at.line, at.column, hint, edit)

    def span(self, at: Located) -> Span:
        return Span(self.path, at.line, at.column)

    def keys(self, mapping: Located, known: Iterable[str], required: Iterable[str], what: str) -> dict[str, Located]:
        """Fields of a mapping; unknown and missing keys become problems."""
        if not isinstance(mapping.value, dict):
            self.fault("K002", f"{what} must be a mapping of keys", mapping, f"write `{next(iter(known))}: …`")
            return {}
        names = sorted(known)
        meant = [self._unknown_key(mapping, key, names, what) for key in mapping.value if key not in names]
        for key in required:
            if key not in mapping.value and key not in meant:
                self.fault("K004", f"{what} lacks the key `{key}`", mapping, f"add `{key}: …`")
        return mapping.value

    def _unknown_key(self, mapping: Located, key: str, names: list[str], what: str) -> str:
        """Note an unknown key; gives the one that is meant, if any is near."""
        line, column = mapping.key_at.get(key, (mapping.line, mapping.column))
        near = nearest(key, [n for n in names if n not in mapping.fields()])
        hint = f"did you mean `{near}`?" if near else "known keys: " + ", ".join(names)
        edit = Edit(line, column, key, near) if near else None
        self.add("K003", f"unknown key `{key}` in {what}", line, column, hint, edit)
        return near

    def text(self, at: Located | None, default: str = "") -> str:
        """A scalar as text; sequences and mappings are problems."""
        if at is None:
            return default
        if isinstance(at.value, (tuple, dict)) or at.value is None:
            self.fault("K002", "a text is expected here", at, "write one value, in quotes if it holds odd characters")
            return default
        return at.value if isinstance(at.value, str) else _spelled(self.lines, at)

    def texts(self, at: Located | None) -> tuple[str, ...]:
        """A sequence of texts."""
        return tuple(self.text(item) for item in self.sequence(at))

    def sequence(self, at: Located | None) -> Iterator[Located]:
        """Items of a sequence; a lone value is a problem."""
        if at is None:
            return iter(())
        if not isinstance(at.value, tuple):
            self.fault("K002", "a list is expected here", at, "write `[a, b]` or one `- item` per line")
        return iter(at.items())

    def choice(self, at: Located | None, allowed: Iterable[str], default: str) -> str:
        """One of the allowed words; another one is a problem with the nearest word as proposal."""
        if at is None:
            return default
        text = self.text(at)
        if text in allowed:
            return text
        said = next((w for w in _MEANT.get(text.lower(), ()) if w in allowed), "")
        near = said or ("" if _opposite(text, allowed) else nearest(text, sorted(allowed)))
        line, column = at.at(0)
        hint = f"did you mean `{near}`?" if near else "one of: " + ", ".join(sorted(allowed))
        self.fault("K005", f"`{text}` is not allowed here", at, hint, Edit(line, column, text, near) if near else None)
        return default

    def whole(self, at: Located | None, default: int, least: int = 0) -> int:
        """An integer of at least `least`."""
        if at is None:
            return default
        if isinstance(at.value, bool) or not isinstance(at.value, int) or at.value < least:
            self.fault("K002", f"a whole number of at least {least} is expected here", at)
            return default
        return at.value

    def flag(self, at: Located | None, default: bool) -> bool:
        """true or false."""
        if at is None:
            return default
        if not isinstance(at.value, bool):
            self.fault("K002", "true or false is expected here", at)
            return default
        return at.value


_MEANT = {
    "unset": ("remove",), "delete": ("remove",), "drop": ("remove",), "add": ("set",), "upgrade": ("at-least",),
    "downgrade": ("below",), "fault": ("root", "error"), "guess": ("suspected",), "proved": ("confirmed",),
}  # fmt: skip
"""Words of everyday speech for words of the vocabularies; a likeness in letters would often mean the opposite."""


def _opposite(word: str, allowed: Iterable[str]) -> bool:
    """Whether a word negates an allowed one: `unset` is no slip of `set`."""
    return any(word.lower() in (f"un{a}", f"non-{a}", f"not-{a}", f"no-{a}", f"dis{a}", f"in{a}") for a in allowed)


LIKE = 40.0


def nearest(word: str, words: Iterable[str], least: float = 75.0) -> str:
    """The most similar word, or nothing. A short word inside a long one is no likeness."""
    from rapidfuzz import fuzz, process

    found = process.extractOne(word, list(words), score_cutoff=least)
    return str(found[0]) if found and fuzz.ratio(word, found[0]) >= LIKE else ""


def _spelled(lines: list[str], at: Located) -> str:
    """A number or bool as the author wrote it (`0.10` stays `0.10`)."""
    line = lines[at.line - 1] if at.line <= len(lines) else ""
    word = line[at.column - 1 :].split("#")[0].strip()
    for stop in (",", "}", "]"):
        word = word.split(stop)[0].strip()
    return word or str(at.value)


def _locate(node: Any, shift: int, reader: Reader, open_nodes: set[int]) -> Located:
    line, column = node.start_mark.line + 1 + shift, node.start_mark.column + 1
    if id(node) in open_nodes or len(open_nodes) > 40:
        raise ValueError("anchors that contain themselves, or nesting deeper than 40")
    if node.id == "scalar":
        return Located(_scalar(node), line, column, node.style or "")
    inside = open_nodes | {id(node)}
    if node.id == "sequence":
        return Located(tuple(_locate(x, shift, reader, inside) for x in node.value), line, column)
    fields: dict[str, Located] = {}
    key_at: dict[str, tuple[int, int]] = {}
    for key, value in node.value:
        name = str(key.value) if key.id == "scalar" else "?"
        place = (key.start_mark.line + 1 + shift, key.start_mark.column + 1)
        if name in fields:
            reader.add("K006", f"the key `{name}` stands twice", *place, "keep one of them")
            continue
        key_at[name] = place
        fields[name] = _locate(value, shift, reader, inside)
    return Located(fields, line, column, "", key_at)


def _scalar(node: yaml.ScalarNode) -> Plain:
    """Only JSON's scalar types; dates and the like stay text."""
    kind, text = node.tag.rpartition(":")[2], str(node.value)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    try:
        if kind == "int":
            return int(text.replace("_", ""), 0) if text.lower().startswith(("0x", "0o", "0b")) else int(text)
        if kind == "float":
            return float(text)
    except ValueError:
        return text
    return text
