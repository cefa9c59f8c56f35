"""The report as JSON: stable key order, no clock, bounded on request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from json.encoder import encode_basestring
from operator import attrgetter
from typing import Any

from forensics.schema.part import Part, plain
from forensics.schema.report import Report

# Control, format and separator characters beyond ASCII: the same string to a JSON reader, inert on a terminal.
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\uf8ff\ufeff"
    "\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)

_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
Layout = tuple[str, list[str], Callable[[Any], tuple[Any, ...]]]
_LAYOUTS: dict[tuple[type[Part], str], Layout] = {}
_WORDS = {None: "null", True: "true", False: "false"}

# What `--max-bytes` gives up, least important first: (what it is called in `omitted`, path of keys).
_LADDER = (
    "series",
    "lines of context",
    "lanes",
    "unknown grounds",
    "weak grounds",
    "ruled-out hypotheses",
    "facts",
    "cascade failures",
    "risks",
    "attempts",
    "grounds",
    "earlier launches",
)


def render(report: Report, max_bytes: int = 0) -> str:
    """The contract's JSON text with a final newline.

    With `max_bytes` the least important parts are dropped, whole, until the text fits; `omitted` names each with its
    count. The headline, the focus launch, its first failure and its first hypothesis always stay.
    """
    text = _dump(report)
    if not max_bytes or len(text.encode()) <= max_bytes:
        return text
    data = report.model_dump()
    for step in _LADDER:
        count = _drop(data, step)
        if count:
            data["omitted"].append(f"{count:,} {step} (size limit of {max_bytes:,} bytes)")
        text = _dump(data)
        if len(text.encode()) <= max_bytes:
            return text
    data["omitted"].append(f"the report does not fit into {max_bytes} bytes; nothing more can be left out")
    return _dump(data)


def render_error(message: str, **place: Any) -> str:
    """An error under `--format json`: the contract's empty report with one problem."""
    return _dump({"schema": "1", "launches": [], "problems": [{"message": message, **place}]})


def _dump(data: Report | dict[str, Any]) -> str:
    parts: list[str] = []
    _write(data, "\n", parts.append)
    parts.append("\n")
    return "".join(parts)


def _write(value: Any, margin: str, add: Callable[[str], object]) -> None:
    """`json.dumps` with an indent of one, but that lists of numbers stand on one line (and in a fifth of the time: the
    standard library indents in Python, character by character). Pieces of the report need not be dictionaries."""
    kind = type(value)
    if kind is str:
        add(_quoted(value))
    elif kind is dict and value:
        inner = margin + " "
        _members(_leads(value, inner), value.values(), inner, add)
        add(margin + "}")
    elif kind is list and not value:
        add("[]")
    elif (kind is list or kind is tuple) and not _numbers(value):
        inner, mark = margin + " ", "["
        for item in value:
            add(mark + inner)
            _write(item, inner, add)
            mark = ","
        add(margin + "]")
    elif isinstance(value, Part):
        inner, leads, values = _LAYOUTS.get((kind, margin)) or _layout(kind, margin)
        _members(leads, values(value), inner, add)
        add(margin + "}")
    elif value is None or kind is bool:
        add(_WORDS[value])
    else:
        add(_number(value))


def _number(value: Any) -> str:
    """A number, or a list of numbers."""
    try:
        return _PLAIN(value)
    except ValueError:  # some are infinite
        return _PLAIN(plain(value))


def _members(leads: Iterable[str], values: Iterable[Any], margin: str, add: Callable[[str], object]) -> None:
    """The members of an object, each after what leads to it; the commonest kinds of value without a further call."""
    for lead, item in zip(leads, values, strict=True):
        kind = type(item)
        if kind is str:
            add(lead + _quoted(item))
        elif item is None:
            add(lead + "null")
        elif kind is int:
            add(f"{lead}{item}")
        else:
            add(lead)
            _write(item, margin, add)


def _leads(names: Iterable[str], margin: str) -> list[str]:
    """What stands before each value of an object: bracket or comma, and the name."""
    return [f"{',' if n else '{'}{margin}{_quoted(name)}: " for n, name in enumerate(names)]


def _layout(kind: type[Part], margin: str) -> Layout:
    """The margin inside a piece of the report, what stands before each field, and how to read the fields' values."""
    names, inner = kind.__slots__, margin + " "
    # of one name, attrgetter gives no tuple
    values = attrgetter(*names) if len(names) > 1 else lambda piece: (getattr(piece, names[0]),)
    found = _LAYOUTS[kind, margin] = inner, _leads(names, inner), values
    return found


def _quoted(text: str) -> str:
    """A JSON string that a terminal cannot obey."""
    quoted = encode_basestring(text)
    if quoted.isascii() and "\x7f" not in quoted:
        return quoted
    return _HIDDEN.sub(lambda m: json.dumps(m.group())[1:-1], quoted)


def _numbers(items: Sequence[Any]) -> bool:
    return all(type(item) is float or type(item) is int for item in items)


def _drop(data: dict[str, Any], step: str) -> int:
    launches = data["launches"]
    focus = data.get("focus")
    if step == "earlier launches":
        kept = [launch for launch in launches if launch["id"] == focus] or launches[-1:]
        data["launches"] = kept
        return len(launches) - len(kept)
    if step == "attempts":
        count = len(data["attempts"])
        data["attempts"] = []
        return count
    return sum(_drop_in(launch, step) for launch in launches)


def _drop_in(launch: dict[str, Any], step: str) -> int:
    if step == "series":
        return _empty(launch, "series", [])
    if step == "lines of context":
        return _empty(launch, "excerpts", [])
    if step == "lanes":
        return _empty(launch["timeline"], "lanes", []) if launch["timeline"] else 0
    if step == "facts":
        return _empty(launch, "facts", {})
    if step == "risks":
        return _empty(launch, "risks", [])
    if step == "cascade failures":
        return _filter(launch, "failures", lambda f: f["role"] == "root")
    if step == "ruled-out hypotheses":
        return _filter(launch, "hypotheses", lambda h: h["verdict"] != "ruled-out")
    keep = {
        "unknown grounds": lambda g: g["side"] != "unknown",
        "weak grounds": lambda g: g["strength"] != "weak",
        "grounds": lambda g: g["strength"] in ("must", "decisive"),
    }[step]
    return sum(_filter(hypothesis, "grounds", keep) for hypothesis in launch["hypotheses"])


def _filter(holder: dict[str, Any], key: str, keep: Any) -> int:
    before = holder[key]
    holder[key] = [item for item in before if keep(item)]
    return len(before) - len(holder[key])


def _empty(holder: dict[str, Any], key: str, value: Any) -> int:
    count = len(holder[key])
    holder[key] = value
    return count
