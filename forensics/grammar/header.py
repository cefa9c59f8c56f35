"""Wrappers and log headers: `header.lark` says what they are, `Headers.split` applies its terminals to one line.

Input is text decoded as latin-1 (one character per byte), digits masked as `0` or not: the grammar is digit-blind.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from forensics.frozen import frozen
from forensics.grammar.build import make_parser
from forensics.grammar.payload import json_payload, logfmt_payload

FULL, CLOCK, MONTH_DAY, COMPACT, LONG_COMPACT, MONTH_NAME, EPOCH_US = 1, 2, 3, 4, 5, 6, 7
"""Forms of a timestamp: date and time; time alone; MM-DD; MMDD (glog); YYYYMMDD (glog); `Nov 30`; microseconds."""

SLURM = r" *\d{1,4}: ?"
"""Preamble of `srun --label`: counts only where the file shows that its lines have it (forensics/engine/probe.py)."""
_STAMPS = re.compile(
    r"(?P<full>\d{4}[-/]\d\d[-/]\d\d)[ T](?P<t1>\d\d:\d\d:\d\d)(?:[.,](?P<f1>\d{1,9}))?"
    r"|(?P<month>(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d) "
    r"(?P<t2>\d\d:\d\d:\d\d)(?:[.,](?P<f2>\d{1,9}))?"
    r"|(?P<long>\d{8}) (?P<t3>\d\d:\d\d:\d\d)(?:[.,](?P<f3>\d{1,9}))?"
    r"|(?P<md>\d\d-\d\d) (?P<t4>\d\d:\d\d:\d\d)(?:[.,](?P<f4>\d{1,9}))?"
    r"|(?P<mmdd>(?<!\d)\d{3,4}) (?P<t5>\d\d:\d\d:\d\d)(?:[.,](?P<f5>\d{1,9}))?"
    r"|(?P<clock>)(?P<t6>\d\d:\d\d:\d\d)(?:[.,](?P<f6>\d{1,9}))?",
    re.ASCII,
)
_FORMS = (
    (FULL, "full", "t1", "f1"),
    (MONTH_NAME, "month", "t2", "f2"),
    (LONG_COMPACT, "long", "t3", "f3"),
    (MONTH_DAY, "md", "t4", "f4"),
    (COMPACT, "mmdd", "t5", "f5"),
    (CLOCK, "clock", "t6", "f6"),
)
_AXIS = re.compile(r"(?<=[\[ ])([A-Z][A-Z_]*?)(\d+)(?=[ \]])", re.ASCII)
_OLD_GPU = re.compile(r"gpu(?:_id)?[= ](\d+)", re.ASCII)
_LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b")
_LEVELS = {
    "DEBUG": "debug",
    "INFO": "info",
    "WARNING": "warning",
    "WARN": "warning",
    "ERROR": "error",
    "CRITICAL": "error",
    "FATAL": "error",
}
# Headers that stay part of the message, because what follows them is read by them: c10 and glog lines, NCCL, Rust.
_SELF_STAMPED = re.compile(
    r"(?:\[rank\d+\]:)?\[?[IWEF](?=(?:\d{3,4}|\d{8}) \d\d:\d\d:\d\d)"
    r"|(?:\x1b\[[0-9;]*m)*(?=\d{4}-\d\d-\d\d[T ][\d:.]+Z?)|\[(?=\d{4}-\d\d-\d\d [\d:.,]+\] )",
    re.ASCII,
)


@frozen
class Stamp:
    """Where a timestamp stands: its form, offsets of the date and of `HH:MM:SS`, and the digits of the fraction."""

    form: int
    date_at: int
    clock_at: int
    fraction_at: int = 0
    fraction_width: int = 0


@frozen
class Axis:
    """One axis of a rank prefix with the place of its number."""

    name: str
    at: int
    width: int


@frozen
class Head:
    """What stands before the message. Offsets count from the start of the text given to `split`.

    `wrappers` and `header` are names of the grammar's terminals. `stamp` is the writer's own timestamp,
    `outer_stamp` that of a wrapper. `payload`: the message is a JSON string that ends at `end` and needs unescaping.
    `partial`: the message goes on in the next line (CRI `P`, docker JSON without a newline).
    """

    body_at: int
    wrappers: tuple[str, ...] = ()
    header: str = ""
    stamp: Stamp | None = None
    outer_stamp: Stamp | None = None
    axes: tuple[Axis, ...] = ()
    level: str = ""
    end: int | None = None
    payload: bool = False
    partial: bool = False


def stamp_in(text: str, start: int, end: int) -> Stamp | None:
    """First timestamp in text[start:end]."""
    match = _STAMPS.search(text, start, end)
    if match is None:
        return None
    for form, date, clock, fraction in _FORMS:
        if match[date] is not None:
            width = len(match[fraction]) if match[fraction] else 0
            return Stamp(form, match.start(date), match.start(clock), match.start(fraction) if width else 0, width)
    return None


class Headers:
    """The terminals of header.lark in the lexer's own order, joined to one pattern per position."""

    def __init__(self) -> None:
        self.source = (Path(__file__).with_name("header.lark")).read_text(encoding="utf-8")
        self.lark = make_parser(self.source, parser="lalr", lexer="contextual", g_regex_flags=re.ASCII)
        terminals = sorted(
            (t for t in self.lark.terminals if t.name[:2] in ("W_", "H_")),
            key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
        )
        self._known = _joined([(t.name, t.pattern.to_regexp()) for t in terminals])

    def split(self, text: str, preamble: str | None = None, forced: str | None = None) -> Head:
        """Take wrappers and header off one line. `preamble`: pattern of what stands before the lines of this
        input (found from the whole of it); `forced` admits one wrapper only."""
        if text[:1] == "{" and forced in (None, "docker-json", "journald-json", "json"):
            head = json_payload(text)
        elif text[:1] in ("t", "l") and "=" in text[:10] and forced in (None, "json"):
            head = logfmt_payload(text)
        else:
            head = None
        if head is not None:
            at, end, stamp_at, stamp_end, epoch, partial = head
            stamp = (
                Stamp(EPOCH_US, stamp_at, stamp_at, 0, stamp_end - stamp_at)
                if epoch
                else (stamp_in(text, stamp_at, stamp_end) if stamp_end else None)
            )
            inner = self.plain(text, at, preamble, forced)
            return Head(
                inner.body_at,
                ("W_JSON", *inner.wrappers),
                inner.header,
                inner.stamp,
                stamp,
                inner.axes,
                inner.level,
                end,
                True,
                partial,
            )
        return self.plain(text, 0, preamble, forced)

    def plain(self, text: str, at: int, preamble: str | None = None, forced: str | None = None) -> Head:
        """The same for a line that is no JSON object, from offset `at` on."""
        pattern = self._known
        wrappers: list[str] = []
        outer: Stamp | None = None
        partial = False
        before = _preamble(preamble).match(text, at) if preamble else None
        if before is not None and before.end() > at:
            wrappers.append("W_SLURM" if preamble == SLURM else "W_PREAMBLE")
            at = before.end()
        while True:
            match = pattern.match(text, at)
            if match is None or match.end() == at:
                break
            name = str(match.lastgroup)
            if name[0] == "H":
                return self._headed(text, match, name, tuple(wrappers), outer, partial)
            if len(wrappers) >= 6 or not _admitted(name, forced):
                break
            if name != "W_ANSI":
                wrappers.append(name)
            if name in ("W_CRI", "W_JOURNAL", "W_STAMP") and outer is None:
                outer = stamp_in(text, at, match.end())
            if name == "W_CRI":
                partial = match[0].rstrip(" ").endswith("P")
            at = match.end()
        own = _SELF_STAMPED.match(text, at)
        stamp = stamp_in(text, own.end(), min(len(text), own.end() + 40)) if own else None
        return Head(at, tuple(wrappers), "H_SELF" if stamp else "", stamp, outer, partial=partial)

    @staticmethod
    def _headed(
        text: str, match: re.Match[str], name: str, wrappers: tuple[str, ...], outer: Stamp | None, partial: bool
    ) -> Head:
        start, end = match.span()
        stamp = None if name in ("H_OLD", "H_RANKONLY") else stamp_in(text, start, end)
        close = text.find("]", start, end)
        axes = (
            tuple(Axis(m[1], m.start(2), len(m[2])) for m in _AXIS.finditer(text, start, close + 1))
            if close > 0
            else ()
        )
        if name == "H_OLD":
            old = _OLD_GPU.search(text, start, end)
            axes = (Axis("TP", old.start(1), len(old[1])),) if old else ()
        level = _LEVEL.search(text, start, end)
        while text.startswith("\x1b[", end) and (m := re.compile(r"\x1b\[[0-9;?]*[A-Za-z]").match(text, end)):
            end = m.end()
        return Head(end, wrappers, name, stamp, outer, axes, _LEVELS[level[1]] if level else "", partial=partial)


_FORCED = {
    "compose": "W_COMPOSE",
    "cri": "W_CRI",
    "kubectl": "W_POD",
    "journald": "W_JOURNAL",
    "ray": "W_RAY",
    "torchrun": "W_TORCHRUN",
    "gcp": "W_STAMP",
    "loki": "W_STAMP",
}
WRAPPER_NAMES = {
    "W_COMPOSE": "compose",
    "W_CRI": "cri",
    "W_JOURNAL": "journald",
    "W_RAY": "ray",
    "W_TORCHRUN": "torchrun",
    "W_RANK": "rank",
    "W_POD": "kubectl",
    "W_SLURM": "slurm",
    "W_PREAMBLE": "preamble",
    "W_STAMP": "timestamp",
    "W_JSON": "json",
    "W_ESCAPED": "json",
}
WRAPPERS = ("none", "docker-json", "journald-json", "json", "slurm", *_FORCED)
"""Values of `--wrapper`."""


def _admitted(name: str, forced: str | None) -> bool:
    return forced is None or name in ("W_ANSI", "W_RANK", _FORCED.get(forced))


def _joined(terminals: list[tuple[str, str]]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in terminals), re.ASCII)


@cache
def _preamble(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


@cache
def headers() -> Headers:
    """The one compiled grammar of this process."""
    return Headers()
