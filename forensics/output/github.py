"""GitHub Actions annotations."""

from __future__ import annotations

from forensics.output.clean import clean
from forensics.output.view import places
from forensics.schema.report import Report

_LEVEL = {"error": "error", "warning": "warning", "note": "notice"}
_LIMIT = 10  # per level and step; more are not shown by the service


def render(report: Report) -> str:
    """One workflow command per place, at most ten of a level."""
    count = dict.fromkeys(_LEVEL.values(), 0)
    lines = []
    for _, severity, where, text in places(report):
        level = _LEVEL[severity]
        count[level] += 1
        if count[level] <= _LIMIT:
            title = _property("forensics")
            place = f"file={_property(where.path)},line={where.line},col={where.column},title={title}"
            lines.append(f"::{level} {place}::{_data(text)}")
    return "".join(line + "\n" for line in lines)


def _data(text: str) -> str:
    """Message text: the service reads %, CR and LF as escapes; `clean` leaves no CR or LF."""
    return clean(text, 1000).replace("%", "%25")


def _property(text: str) -> str:
    return clean(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
