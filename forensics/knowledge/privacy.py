"""Secrets and personal data in text that is going to be shared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from ipaddress import AddressValueError, IPv4Address

from forensics.frozen import frozen
from forensics.output.mask import mask
from forensics.rulebook.patterns import Pattern, compiled

HOME = r"/(?:home|Users)/([A-Za-z][\w.-]*)"
"""A home folder; its group is whose."""
_IP = r"\b(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})\b"
NOBODY = frozenset(["user", "ubuntu", "root", "app", "runner", "sglang", "nobody"])
"""Accounts that name no person, in a page as in a log: a page's example is one of them, too."""


@frozen
class Leak:
    """A place in one line: 0-based offset, the text there, what to write instead, and what it is."""

    offset: int
    old: str
    new: str
    what: str
    secret: bool


def leaks(line: str, extra: Sequence[str] = ()) -> Iterator[Leak]:
    """Secrets (by the program's own mask), then user names in paths and public addresses."""
    hidden = mask(line, extra)
    if hidden != line:
        start = next(i for i, (a, b) in enumerate(zip(line, hidden + "\0", strict=False)) if a != b)
        tail = 0
        while tail < min(len(line), len(hidden)) - start and line[-1 - tail] == hidden[-1 - tail]:
            tail += 1
        end, hidden_end = len(line) - tail, len(hidden) - tail
        mail = "@" in line[start:end] and "[masked e-mail]" in hidden
        what = "an e-mail address" if mail else "a secret or user text"
        yield Leak(start, line[start:end], hidden[start:hidden_end], what, not mail)
        return
    for home in _pattern(HOME).finditer(line):
        name = home.group(1) or ""
        if name not in NOBODY:
            yield Leak(home.start(1), name, "user", "a user name in a path", False)
    for address in _pattern(_IP).finditer(line):
        if _public(address.group(1) or ""):
            yield Leak(address.start(1), address.group(1) or "", "192.0.2.1", "a public network address", False)


def without_leaks(line: str, extra: Sequence[str] = ()) -> str:
    """The line as it may be shared: what `leaks` finds is written over, from left to right."""
    line = mask(line, extra)
    done = 0
    while done < 50:
        leak = next(leaks(line, extra), None)
        if leak is None:
            break
        line = line[: leak.offset] + leak.new + line[leak.offset + len(leak.old) :]
        done += 1
    return line


@cache
def _pattern(text: str) -> Pattern:
    return compiled(text)


def _public(text: str) -> bool:
    try:
        return IPv4Address(text).is_global
    except (AddressValueError, ValueError):
        return False
