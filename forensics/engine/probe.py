"""A look at a few places of an input before the scan: what is decided per file must not depend on chunks."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from forensics.engine.mask import DIGITS_TO_ZERO, HEX_WORD
from forensics.engine.numbers import day_of
from forensics.frozen import frozen
from forensics.grammar.header import CLOCK, FULL, MONTH_DAY, SLURM, Stamp, headers
from forensics.ingest.sources import Source

PROBES = 8
_HEADER = "[0000-00-00 00:00:00"
_TRACEBACK = "Traceback (most recent call last):"
LEAST_LINES = 4
_LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")
ANY_LEVEL = "(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_ZEROS = re.compile("0+")
PROBE_BYTES = 64 << 10


@frozen
class Probe:
    """`preamble`: pattern of what stands before most lines (find_preamble). `outer_time`: no writer stamps its lines, a
    wrapper does. `base_day`: day (since 1970) of the first full date, for stamps without one (0: none). `reversed`:
    newest first. `dateless`: stamps hold no full date, so days have to be counted at midnight."""

    preamble: str | None = None
    outer_time: bool = False
    base_day: int = 0
    reversed: bool = False
    dateless: bool = False


def probe(source: Source, forced: str | None = None) -> Probe:
    """Read up to PROBES windows of PROBE_BYTES, spread evenly over the input."""
    raws = [raw for window in _windows(source) for raw in window]
    masked = [raw.translate(DIGITS_TO_ZERO).decode("latin-1") for raw in raws]
    preamble = find_preamble(masked, forced)
    seen = _Stamps()
    grammar = headers()
    for raw, mask in zip(raws, masked, strict=True):
        head = grammar.split(mask, preamble, forced)
        for which, stamp in enumerate((head.stamp, head.outer_stamp)):
            if stamp is not None:
                seen.add(which, stamp, raw.decode("latin-1"))
    inner, outer = seen.count
    return Probe(preamble, inner == 0 and outer > 0, seen.base_day, seen.falling(), seen.full[0 if inner else 1] == 0)


def find_preamble(masked: list[str], forced: str | None) -> str | None:
    """Pattern of what stands before most lines where no known wrapper does: the bare `0: ` of Slurm, or whatever a
    supervisor, pdsh or stern puts before the log header, found by what stands between line start and header."""
    if forced is not None:
        return SLURM if forced == "slurm" else None
    if sum(_numbered(mask) for mask in masked) * 2 > len(masked):
        return SLURM
    grammar = headers()
    found: Counter[str] = Counter()
    for mask in masked:
        at = mask.find(_HEADER, 1, 160)
        if at <= 0:
            continue
        head = grammar.split(mask)
        # a bare stamp says nothing of the writer; a header that ends here is a launcher's around the server's own
        if head.header in ("", "H_BRACKETS") or head.body_at == at:
            found[_LEVEL.sub(ANY_LEVEL, _pattern(mask[:at]))] += 1
    frequent = sorted(pattern for pattern, count in found.items() if count >= 3 and count * 20 >= len(masked))
    if not frequent:
        return _before_traceback(masked)
    pattern = "|".join(frequent)
    matches = re.compile(pattern, re.ASCII).match
    return pattern if sum(matches(mask) is not None for mask in masked) * 2 > len(masked) else None


def _before_traceback(masked: list[str]) -> str | None:
    """What stands before nearly every line of a log without any log header (a start that died in its imports or in
    its arguments), found by the one text that Python begins a report with."""
    if sum(mask.startswith(">") for mask in masked) * 10 >= len(masked) * 9 and len(masked) >= LEAST_LINES:
        return "> ?"  # quoted in a report
    for mask in masked:
        at = mask.find(_TRACEBACK, 1, 160)
        if at <= 0 or headers().split(mask).body_at >= at:  # the second: a wrapper that is known
            continue
        prefix = mask[:at]
        held = sum(other.startswith(prefix) for other in masked)
        if prefix.strip() and len(masked) >= LEAST_LINES and held * 5 >= len(masked) * 4:
            return _pattern(prefix)
    return None


def _pattern(prefix: str) -> str:
    """Pattern of a masked prefix. An id in it (of a pod, of a log stream) is masked as a whole where a line is looked
    up without its ids, so that its letters must not be asked for."""
    parts, at = [], 0
    for word in HEX_WORD.finditer(prefix):
        parts += [_ZEROS.sub(r"\\d+", re.escape(prefix[at : word.start()])), "[0-9a-fA-F]+"]
        at = word.end()
    return "".join(parts) + _ZEROS.sub(r"\\d+", re.escape(prefix[at:]))


class _Stamps:
    """Timestamps of the sampled lines: the writers' own (0) and those of wrappers (1)."""

    def __init__(self) -> None:
        self.count = [0, 0]
        self.full = [0, 0]
        self.base_day = 0
        self.times: tuple[list[float], list[float]] = ([], [])

    def add(self, which: int, stamp: Stamp, text: str) -> None:
        self.count[which] += 1
        if stamp.form not in (FULL, CLOCK, MONTH_DAY):
            return
        day = day_of(FULL, text[stamp.date_at : stamp.date_at + 10]) if stamp.form == FULL else 0
        self.full[which] += stamp.form == FULL
        self.base_day = self.base_day or day
        self.times[which].append(day * 86400.0 + _clock(text[stamp.clock_at : stamp.clock_at + 8]))

    def falling(self) -> bool:
        """Whether the newest line comes first."""
        seconds = max(self.times, key=len)
        falls = sum(b < a for a, b in pairwise(seconds))
        rises = sum(b > a for a, b in pairwise(seconds))
        return falls >= 3 and falls > 4 * rises and seconds[0] > seconds[-1]


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
