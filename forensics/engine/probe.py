"""A look at a few places of an input before the scan: what is decided per file must not depend on chunks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.numbers import day_of
from forensics.grammar.header import CLOCK, FULL, MONTH_DAY, headers
from forensics.ingest.sources import Source

PROBES = 8
PROBE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Probe:
    """`slurm`: every line bears a bare `N: `. `outer_time`: no writer stamps its lines, a wrapper does.
    `base_day`: day (since 1970) of the first full date, for stamps without one (0: none). `reversed`: newest first.
    `dateless`: stamps hold no full date, so days have to be counted at midnight."""

    slurm: bool = False
    outer_time: bool = False
    base_day: int = 0
    reversed: bool = False
    dateless: bool = False


def probe(source: Source, forced: str | None = None) -> Probe:
    """Read up to PROBES windows of PROBE_BYTES, spread evenly over the input."""
    numbered = lines = inner = outer = 0
    full = [0, 0]
    base_day = 0
    times: tuple[list[float], list[float]] = ([], [])
    grammar = headers()
    for window in _windows(source):
        for raw in window:
            text = raw.decode("latin-1")
            masked = raw.translate(DIGITS_TO_ZERO).decode("latin-1")
            lines += 1
            numbered += _numbered(masked)
            head = grammar.split(masked, slurm=masked[:6].lstrip(" 0")[:1] == ":", forced=forced)
            inner += head.stamp is not None
            outer += head.outer_stamp is not None
            for which, stamp in enumerate((head.stamp, head.outer_stamp)):
                if stamp is None or stamp.form not in (FULL, CLOCK, MONTH_DAY):
                    continue
                day = day_of(FULL, text[stamp.date_at : stamp.date_at + 10]) if stamp.form == FULL else 0
                full[which] += stamp.form == FULL
                base_day = base_day or day
                times[which].append(day * 86400.0 + _clock(text[stamp.clock_at : stamp.clock_at + 8]))
    seconds = max(times, key=len)
    falls = sum(b < a for a, b in pairwise(seconds))
    rises = sum(b > a for a, b in pairwise(seconds))
    newest_first = falls >= 3 and falls > 4 * rises and seconds[0] > seconds[-1]
    return Probe(
        lines > 0 and numbered * 2 > lines,
        inner == 0 and outer > 0,
        base_day,
        newest_first,
        full[0 if inner else 1] == 0,
    )


def _windows(source: Source) -> list[list[bytes]]:
    if source.size <= PROBES * PROBE_BYTES:
        return [_lines(source.pread(0, source.size))]
    step = (source.size - PROBE_BYTES) // (PROBES - 1)
    return [_lines(source.pread(i * step, PROBE_BYTES), first=i == 0) for i in range(PROBES)]


def _lines(data: bytes, first: bool = True) -> list[bytes]:
    lines = [line[:600] for line in data.split(b"\n")]
    kept = lines[0 if first else 1 :]
    return [line for line in kept[:400] + kept[400::7] if line]


def _numbered(masked: str) -> bool:
    head = masked[:6].lstrip(" ")
    rest = head.lstrip("0")
    return head != rest and rest[:1] == ":" and rest[1:2] in (" ", "[", "")


def _clock(text: str) -> float:
    try:
        return int(text[:2]) * 3600 + int(text[3:5]) * 60 + int(text[6:8])
    except ValueError:
        return 0.0
