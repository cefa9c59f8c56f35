"""Raw lines around the places that a report names, so that a reader sees them without opening the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from forensics.engine.table import TextSource
from forensics.schema.report import HypothesisInfo, LineText, Where

AROUND = 3
"""Lines shown before and after the first failure."""
NEAR = 2
"""Lines shown before and after a ground."""
MAX_TEXT = 300
MAX_LINES = 1500
"""Lines of context in one launch of a report."""
_WINDOW = 1 << 16
_ANSI = re.compile(r"\x1b\[[0-9;:?]*[A-Za-z]")
# A line of nothing but base64 may be the body of a key whose head is not shown.
_BASE64 = re.compile(r"[A-Za-z0-9+/=]{40,}")
_SECRET = "[masked]"

Mask = Callable[[str], str]


def lines_around(source: TextSource, where: Where, count: int, mask: Mask) -> list[Where]:
    """The raw line of `where` with `count` lines before and after it (fewer at the ends of the input), masked and cut.

    A line whose head lies further away than 64 KiB is left out, and so are those before it.
    """
    start = max(0, where.byte_start - _WINDOW)
    before = source.pread(start, where.byte_start - start)
    after = source.pread(where.byte_start, _WINDOW)
    # `byte_start` of the later part of a glued line is not where the line begins.
    lead = before.rpartition(b"\n")[2]
    whole = before[: len(before) - len(lead)].split(b"\n")[:-1]
    if start > 0:
        whole = whole[1:]
    earlier = whole[max(0, len(whole) - count) :]
    rest = (lead + after).split(b"\n")
    if len(rest) > 1 and not rest[-1]:
        rest.pop()
    at = where.byte_start - len(lead) - sum(len(raw) + 1 for raw in earlier)
    found = []
    for number, raw in enumerate((*earlier, *rest[: count + 1]), where.line - len(earlier)):
        found.append(Where(path=where.path, line=number, byte_start=at, byte_end=at + len(raw), text=_safe(raw, mask)))
        at += len(raw) + 1
    return found


def excerpts(
    sources: Sequence[TextSource], first: Where | None, hypotheses: Iterable[HypothesisInfo], mask: Mask
) -> list[LineText]:
    """Lines around the first failure and around the first two places of every ground, each once, in file order."""
    by_name = {source.name: source for source in sources}
    found: dict[tuple[str, int], LineText] = {}
    wanted = [(first, AROUND)] if first else []
    wanted += [(w, NEAR) for h in hypotheses for g in h.grounds for w in g.where[:2]]
    done: set[tuple[str, int]] = set()
    for where, count in wanted:
        key = (where.path, where.line)
        if key in done or where.path not in by_name or not where.byte_end or len(found) > MAX_LINES:
            continue
        done.add(key)
        for row in lines_around(by_name[where.path], where, count, mask):
            found.setdefault((row.path, row.line), LineText(path=row.path, line=row.line, text=row.text or ""))
    return [found[key] for key in sorted(found)]


def _safe(raw: bytes, mask: Mask) -> str:
    """What a terminal would show of the line, without secrets: of a progress bar its last state."""
    text = _ANSI.sub("", raw.decode("utf-8", "replace")).rstrip("\r").rpartition("\r")[2]
    text = _SECRET if _BASE64.fullmatch(text.strip()) else mask(text)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
