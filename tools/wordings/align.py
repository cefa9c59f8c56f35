"""Whether fragments stand in a message of the program, whose variable parts are holes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

HOLE = "\x00"
"""Where the program puts a value: `{self.size}`, `%d`, `<< size <<`."""
LEAST_SHARE = 0.6
LEAST_PART = 0.35
LEAST_LETTERS = 8
"""A fragment may reach into a hole, as the value that stood there; so much of it must be the program's own text."""
LEAST_FILLED = 6
LONGEST_FRAGMENT = 300
LONGEST_MESSAGE = 4000


Printed = Callable[[str], bool]
"""Whether a text stands somewhere in the stated sources: then it may fill a hole."""


def nowhere(text: str) -> bool:
    """For a wording with one message to itself."""
    return False


def holds(message: str, fragments: tuple[str, ...], printed: Printed = nowhere) -> bool:
    """Whether all fragments stand in the message, one after the other. A hole stands for any text of a fragment, as
    long as most of the wording is literal, and for a fragment, or the rest of one, that is `printed` elsewhere."""
    at, own, literal = 0, 0, 0
    for fragment in fragments:
        found = _find(message, fragment, at, printed)
        if found is not None:
            at, own, literal = found[1], own + 1, literal + found[0]
        elif HOLE not in message[max(0, at - 1) :] or not printed(fragment):
            return False
        else:
            literal += len(fragment)
    whole = sum(map(len, fragments))
    return own > 0 and (literal == whole or literal >= max(LEAST_LETTERS, LEAST_SHARE * whole))


def _find(message: str, fragment: str, start: int, printed: Printed) -> tuple[int, int] | None:
    """How much of a fragment is literal at the first place where it stands, and the end of it there; a hole at the end
    stays open for the next fragment."""
    at = message.find(fragment, start)
    if at >= 0:
        return len(fragment), at + len(fragment)
    needed = max(3, int(LEAST_PART * len(fragment)))
    if HOLE not in message or len(fragment) < needed or not _shares_enough(message, fragment, needed, printed):
        return None
    if len(fragment) > LONGEST_FRAGMENT or len(message) > LONGEST_MESSAGE:
        return None
    for begin in range(start, len(message)):
        if message[begin] == HOLE or message.startswith(fragment[:2], begin):
            found = _through(message, fragment, begin, printed)
            if found is not None and found[0] >= needed:
                return found
    return None


def _shares_enough(message: str, fragment: str, needed: int, printed: Printed) -> bool:
    """Whether words of the fragment that the message has, or that may fill its holes, could make up what is needed: a
    quick no for most messages."""
    own = [w for w in words(fragment) if w in message]
    return bool(own) and 2 * sum(len(w) for w in words(fragment) if w in own or printed(w)) >= needed


@cache
def words(fragment: str) -> tuple[str, ...]:
    """Words of a fragment that tell something."""
    return tuple(w for w in re.split(r"\W+", fragment) if len(w) > 2)


def _through(message: str, fragment: str, begin: int, printed: Printed) -> tuple[int, int] | None:
    """How much of a fragment that begins at this place is literal, and its end, with holes for the rest. A value
    that no stated source prints is one word: else a hole would take half of another program's message."""
    cuts = [k for k in range(len(fragment) + 1) if k in (0, len(fragment)) or not fragment[k - 1 : k + 1].isalnum()]

    def filled(j: int, k: int) -> int:
        """Characters of the fragment that a hole takes and that another message prints."""
        return k - j if k - j >= LEAST_FILLED and printed(fragment[j:k]) else 0

    @cache
    def best(i: int, j: int) -> tuple[int, int] | None:
        """Most literal characters that the rest of the fragment (from j) can have from message[i], and the end."""
        if j == len(fragment):
            return 0, i
        if i == len(message):
            rest = filled(j, len(fragment))
            return (rest, i) if rest else None
        if message[i] == HOLE:
            takes = [(k, n) for k in cuts if k >= j and ((n := filled(j, k)) or " " not in fragment[j:k].strip())]
            ways = [(w[0] + n, w[1]) for k, n in takes if k < len(fragment) and (w := best(i + 1, k))]
            return max([*ways, *((n, i) for k, n in takes if k == len(fragment))], default=None)
        if message[i] != fragment[j]:
            return None
        rest_of = best(i + 1, j + 1)
        return (rest_of[0] + 1, rest_of[1]) if rest_of is not None else None

    return best(begin, 0)
