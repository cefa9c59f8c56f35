"""What argparse says about the release: its option list, the choices that it offers, the options that it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.frozen import frozen
from forensics.schema.span import Span
from forensics.timeline.catalog import catalog, first_build_after
from forensics.timeline.facts_sheet import Sheet
from forensics.timeline.lookup import within
from forensics.timeline.version_fields import MIN_FIELDS, option_bounds

MAX_USAGE = 4000
_OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]+)")
_CHOICES = re.compile(
    r"argument (--[a-z][a-z0-9-]{1,80})\S{0,80}: invalid choice: .{0,200}? \(choose from (.{1,4000})\)"
)
_REFUSED = re.compile(r"error: unrecognized arguments: (.+)")


@frozen
class Evidence:
    """One ground: the release lies in [low, high]. `weight` orders grounds from the surest on (0 is stated)."""

    reason: str
    where: Span | None
    low: str | None
    high: str | None
    weight: int


def usage_evidence(sheet: Sheet) -> Iterator[Evidence]:
    """Bounds from the usage text and from the error line below it."""
    yield from _usage(sheet)
    for _, masked, row in sheet.first_rows():
        if "invalid choice:" in masked:
            yield from _choices(sheet, row)
        if "unrecognized arguments:" in masked:
            yield from _refused(sheet, row)


def _choices(sheet: Sheet, row: int) -> Iterator[Evidence]:
    """The offered values are those of some of the read releases; others lie outside their bracket."""
    known = catalog()
    found = _CHOICES.search(sheet.table.text(row)[:20000])
    if found is None:
        return
    offered = frozenset(value.strip(" '\"") for value in found.group(2).split(","))
    fits = [i for i, release in enumerate(known.read) if known.choices(found.group(1), release) == offered]
    if not fits or fits[-1] - fits[0] + 1 != len(fits):
        return
    low = first_build_after(known.read[fits[0] - 1]) if fits[0] else None
    high = known.before(known.read[fits[-1] + 1]) if fits[-1] + 1 < len(known.read) else None
    if low or high:
        yield Evidence(f"the choices of {found.group(1)}", sheet.place(row, *found.span()), low, high, 2)


def _refused(sheet: Sheet, row: int) -> Iterator[Evidence]:
    """An option that is still in the newest release came later; one that was there from the oldest on is gone."""
    known = catalog()
    found = _REFUSED.search(sheet.table.text(row)[:20000])
    for name in _OPTION.findall(found.group(1)) if found else ():
        life = known.flag_lifetime(name)
        if life is None or life.first is None:
            continue
        where = sheet.table.span(row)
        if life.last is None and life.low:
            yield Evidence(f"{name} is refused", where, None, known.before(life.first), 2)
        elif life.last is not None and life.low is None:
            yield Evidence(f"{name} is refused", where, first_build_after(life.last), None, 2)


def _usage(sheet: Sheet) -> Iterator[Evidence]:
    """The option list that argparse prints before an error: it holds every option of the release."""
    start = next((r for k, m, r in sheet.first_rows() if m.startswith("usage: ") and "sglang" in m + k), None)
    start = start if start is not None else _usage_start(sheet)
    if start is None:
        return
    rows = within(sheet.table.rows_of_kind("argparse", "text", "message"), sheet.rows)
    options: dict[str, int] = {}
    for row in rows[rows >= start][:MAX_USAGE].tolist():
        text = sheet.table.text(row)[:2000]
        if row > start and not text[:1].isspace():
            break
        for name in _OPTION.findall(text):
            options.setdefault(name, row)
    if len(options) < MIN_FIELDS:
        return
    for bound, lower in zip(option_bounds(options), (True, False), strict=True):
        if bound is not None:
            row = options.get(bound.field, start)
            text = f"usage {'has' if bound.present else 'lacks'} {bound.field}"
            low, high = (bound.release, None) if lower else (None, bound.release)
            yield Evidence(text, sheet.table.span(row), low, high, 1)


def _usage_start(sheet: Sheet) -> int | None:
    return next((r for _, m, r in sheet.first_rows() if m.startswith("usage: ") and "launch_server" in m), None)
