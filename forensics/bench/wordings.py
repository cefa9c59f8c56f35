"""Which wordings of the shipped rules were found in the program that their sources name: the record that
`tools/check_wordings.py` writes.

The record holds, for each rule, a digest of its wordings and sources, and for each wording the number of the source
that holds it. A rule whose wordings or sources have changed since has no wording that counts as found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from forensics.schema.signal import Rule

RECORD = Path(__file__).parent.parent / "data" / "wordings.json"
NOT_READ = -1
PROGRAM = re.compile(r"[\w.-]+/[\w.-]+@[\w.-]+/[\w./-]+\.\w{1,5}")
"""A source that is a file of a release of a program: `sgl-project/sglang@v0.5.3/python/sglang/srt/server_args.py`."""


def program_sources(rule: Rule) -> tuple[str, ...]:
    """The sources of a rule that are files of a release."""
    return tuple(s for s in rule.sources if PROGRAM.fullmatch(s))


def recorded(rule: Rule) -> tuple[int, ...]:
    """For each wording the number of the source that holds it, or NOT_READ; empty where the record does not know the
    rule as it is now."""
    known = _record().get(rule.id)
    return tuple(known[1]) if known is not None and known[0] == digest(rule) else ()


def found_in_program(rule: Rule) -> frozenset[str]:
    """The wordings of a rule that were found in the program."""
    return frozenset(p for p, n in zip(rule.patterns, recorded(rule), strict=False) if n != NOT_READ)


def digest(rule: Rule) -> str:
    """Short fingerprint of what the record speaks of."""
    spoken = json.dumps([rule.patterns, program_sources(rule), rule.wordings], ensure_ascii=False)
    return hashlib.sha256(spoken.encode()).hexdigest()[:12]


def render(found: Mapping[str, Sequence[int]], rules: Mapping[str, Rule]) -> str:
    """The record's text, one rule a line; rules that were not looked at keep what is known of them."""
    lines = []
    for name in sorted(rules):
        numbers = list(found[name]) if name in found else list(recorded(rules[name]))
        if any(n != NOT_READ for n in numbers):
            lines.append(f'"{name}":["{digest(rules[name])}",{json.dumps(numbers, separators=(",", ":"))}]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def _record() -> dict[str, tuple[str, list[int]]]:
    try:
        found: dict[str, tuple[str, list[int]]] = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
