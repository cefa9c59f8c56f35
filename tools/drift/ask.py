"""What the rules say of a check, rendered as the program would print it: each line by itself, below the check's own frame.

Quicker than the whole analysis, and the same but for what needs a launch around the line (stages, counts, ranks).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from drift.sites import Site
from drift.values import rendered
from forensics.grammar.line import line_grammar
from forensics.rulebook.program import Program, Ready, program_of, takes_kind
from forensics.schema.signal import Rule

TELLING = ("root", "cascade", "warning")
"""Roles of the rules whose loss changes a diagnosis."""
FATAL = ("raise", "assert")


class Asked:
    """Rules that are asked about checks."""

    def __init__(self, rules: Mapping[str, Rule]) -> None:
        self._program: Program = program_of(rules)

    def signals(self, site: Site) -> frozenset[str]:
        """Telling rules that a check satisfies with some plausible values."""
        return frozenset(
            ready.rule.id
            for text in rendered(site.text)
            for kind, line in _lines(site, text)
            for index in self._program.candidates(line)
            if _holds(ready := self._program.ready[index], site, kind, line)
        )


def _lines(site: Site, text: str) -> Iterator[tuple[str, str]]:
    """The lines of a check with their kinds."""
    fatal = site.kind in FATAL
    if fatal:
        yield "frame-source", "    " + site.source
    for number, line in enumerate((_said(site, text) if fatal else text).split("\n")):
        if line.strip():
            kind = line_grammar().read(line).kind
            yield _kind(site, number, kind), line


def _holds(ready: Ready, site: Site, kind: str, line: str) -> bool:
    rule = ready.rule
    if rule.role not in TELLING or not takes_kind(rule, kind):
        return False
    if not any(p.search(line) for p in ready.patterns) or any(p.search(line) for p in ready.absent):
        return False
    frame = f"/x/sglang/{site.file}:321 in {site.function}" if site.type else ""
    if ready.exception is not None and not (site.type and ready.exception.search(site.type)):
        return False
    return all(p is None or p.search(frame) is not None for p in (ready.frames, ready.innermost))


def _said(site: Site, text: str) -> str:
    return f"{site.type}: {text}" if text else site.type


def _kind(site: Site, number: int, read: str) -> str:
    """The kind of a line of a check: the first one of a fatal check is its exception, what the log prints has a header."""
    if site.kind in FATAL:
        return read if number else "exception"
    if site.kind == "refuse":
        return "argparse"
    return "message" if read == "text" and site.kind != "print" else read
