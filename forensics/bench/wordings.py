"""Which wordings of the shipped rules were found in the program that their sources name: the record that
`tools/check_wordings.py` writes.

The record holds, for each rule, a digest of its wordings and sources, for each wording the number of the source
that holds it, and the sides of its alternations that no source holds. A rule whose wordings or sources have changed
since has no wording that counts as found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from forensics.frozen import frozen
from forensics.schema.signal import Rule

RECORD = Path(__file__).parent.parent / "data" / "wordings.json"
NOT_READ = -1
GAP = " … "
"""Stands in the text of a side where the pattern leaves something open."""
PROGRAM = re.compile(r"[\w.-]+/[\w.-]+@[\w.-]+/[\w./-]*(?:\.\w{1,5}|bin/[\w-]+)")
"""A source that is a file of a release of a program: `sgl-project/sglang@v0.5.3/python/sglang/srt/server_args.py`, or
a library or program that comes without its source: `NVIDIA/cuda-nvcc@12.6.85/bin/ptxas`."""


@frozen
class Entry:
    """What the record says of a rule: for each wording the number of the source that holds it (of `program_sources`),
    or NOT_READ, and by number of the wording the sides of its alternations that were not found."""

    numbers: tuple[int, ...]
    missing: dict[int, tuple[str, ...]]


def program_sources(rule: Rule) -> tuple[str, ...]:
    """The sources of a rule that are files of a release."""
    return tuple(s for s in rule.sources if PROGRAM.fullmatch(s))


def recorded(rule: Rule) -> Entry | None:
    """What the record says; None where it does not know the rule as it is now."""
    known = _record().get(rule.id)
    if known is None or known[0] != digest(rule):
        return None
    sides = known[2] if len(known) > 2 else {}
    return Entry(tuple(known[1]), {int(n): tuple(texts) for n, texts in sides.items()})


def in_program(rule: Rule, pattern: str, texts: Iterable[str]) -> bool:
    """Whether a wording, as these lines show it, was found in the program: the pattern was, and the lines show none of
    its sides that were not."""
    entry = recorded(rule)
    if entry is None or pattern not in rule.patterns:
        return False
    number = rule.patterns.index(pattern)
    sides = entry.missing.get(number, ())
    return entry.numbers[number] != NOT_READ and not any(_shows(t.lower(), s.lower()) for t in texts for s in sides)


def _shows(text: str, side: str) -> bool:
    return all(part in text for part in side.split(GAP))


def digest(rule: Rule) -> str:
    """Short fingerprint of what the record speaks of."""
    spoken = json.dumps([rule.patterns, program_sources(rule), rule.wordings], ensure_ascii=False)
    return hashlib.sha256(spoken.encode()).hexdigest()[:12]


def render(found: Mapping[str, Entry], rules: Mapping[str, Rule]) -> str:
    """The record's text, one rule a line; rules that were not looked at keep what is known of them."""
    lines = []
    for name, rule in sorted(rules.items()):
        entry = found.get(name) or recorded(rule)
        if entry is None or all(n == NOT_READ for n in entry.numbers):
            continue
        parts: list[object] = [digest(rule), entry.numbers]
        if entry.missing:
            parts.append({str(n): texts for n, texts in sorted(entry.missing.items())})
        lines.append(f"{json.dumps(name)}:{json.dumps(parts, ensure_ascii=False, separators=(',', ':'))}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def _record() -> dict[str, list[Any]]:
    try:
        found: dict[str, list[Any]] = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
