"""Formatting: conditions in their canonical spelling. Nothing else of a file is touched."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types

from forensics.editor.units import Units
from forensics.knowledge.front import split_page
from forensics.knowledge.lint_conditions import canonical
from forensics.rulebook.located import Located, Reader
from forensics.rulebook.problem import Problem


def tidy(name: str, text: str, kind: str, units: Units) -> list[types.TextEdit]:
    """Edits that spell each condition of a finding as the printer does. A condition that does not parse, or that YAML
    would read differently afterwards, stays as it is."""
    if kind != "finding":
        return []
    page = split_page(text, name)
    if isinstance(page, Problem) or page.reader.root is None:
        return []
    lines = text.replace("\r\n", "\n").split("\n")
    return [e for item in _conditions(page.reader) if (e := _edit(item, lines, units)) is not None]


def _conditions(reader: Reader) -> Iterator[Located]:
    fields = reader.root.fields() if reader.root is not None else {}
    groups = [fields.get("applies"), *(fields["grounds"].fields().values() if "grounds" in fields else ())]
    for group in groups:
        yield from group.items() if group is not None else ()


def _edit(item: Located, lines: list[str], units: Units) -> types.TextEdit | None:
    if not isinstance(item.value, str) or item.style in ("|", ">"):
        return None
    wanted = canonical(item.value)
    old = _written(item.value, item.style)
    here = lines[item.line - 1][item.column - 1 :]
    if wanted is None or wanted == item.value or not here.startswith(old):
        return None
    new = _written(wanted, item.style)
    if _read(new) != wanted:
        new = _written(wanted, "'")
        if _read(new) != wanted:
            return None
    return types.TextEdit(units.span(lines, item.line, item.column, len(old)), new)


def _written(text: str, style: str) -> str:
    if style == "'":
        return "'" + text.replace("'", "''") + "'"
    if style == '"':
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text


def _read(text: str) -> object:
    """What YAML makes of a list item."""
    root = Reader("", f"- {text}").root
    items = root.items() if root is not None else ()
    return items[0].value if len(items) == 1 else None
