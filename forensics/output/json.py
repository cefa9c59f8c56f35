"""The report as JSON: stable key order, no clock, bounded on request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from json.encoder import encode_basestring
from typing import Any

from forensics.schema.part import Part, plain
from forensics.schema.report import Report

# Control, format and separator characters beyond ASCII: the same string to a JSON reader, inert on a terminal.
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\uf8ff\ufeff"
    "\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)

_PLAIN = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
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
            data["omitted"].append(f"{count} {step} (size limit of {max_bytes} bytes)")
        text = _dump(data)
        if len(text.encode()) <= max_bytes:
            return text
    data["omitted"].append(f"the report does not fit into {max_bytes} bytes; nothing more can be left out")
    return _dump(data)


def render_error(message: str, **place: Any) -> str:
    """An error under `--format json`: the contract's empty report with one problem."""
    return _dump({"schema": "1", "launches": [], "problems": [{"message": message, **place}]})


def _dump(data: dict[str, Any] | Report) -> str:
    out = StringIO()
    _write(data, "\n", out.write)
    out.write("\n")
    text = out.getvalue()
    return text if text.isascii() else _HIDDEN.sub(lambda m: json.dumps(m.group())[1:-1], text)


def _write(value: Any, margin: str, write: Callable[[str], object]) -> None:
    """`json.dumps` with an indent of one, but that lists of numbers stand on one line (and in a third of the time: the
    standard library indents in Python, character by character)."""
    kind = type(value)
    if kind is str:
        write(encode_basestring(value))
    elif kind is dict and value:
        inner, mark = margin + " ", "{"
        for key, item in value.items():
            write(f"{mark}{inner}{encode_basestring(key)}: ")
            _write(item, inner, write)
            mark = ","
        write(margin + "}")
    elif isinstance(value, Part):
        _write({name: getattr(value, name) for name in value.__slots__}, margin, write)
    elif kind is tuple:
        _write(list(value), margin, write)
    elif kind is list and value and not _numbers(value):
        inner, mark = margin + " ", "["
        for item in value:
            write(mark + inner)
            _write(item, inner, write)
            mark = ","
        write(margin + "]")
    else:
        write(_WORDS[value] if value is None or kind is bool else _number(value))


def _number(value: Any) -> str:
    """A number, or a list of numbers."""
    try:
        return _PLAIN(value)
    except ValueError:  # some are infinite
        return _PLAIN(plain(value))


def _numbers(items: list[Any]) -> bool:
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
