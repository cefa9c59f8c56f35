"""Whether fragments stand in a message of the program, whose variable parts are holes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

HOLE = "\x00"
"""Where the program puts a value: `{self.size}`, `%d`, `<< size <<`."""
LEAST_SHARE = 0.65
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
    long as most of it is literal, and for a whole fragment, or the rest of one, that is `printed` elsewhere."""
    at, own = 0, 0
    for fragment in fragments:
        end = _find(message, fragment, at, printed)
        if end is not None:
            at, own = end, own + 1
        elif HOLE not in message[max(0, at - 1) :] or not printed(fragment):
            return False
    return own > 0


def _find(message: str, fragment: str, start: int, printed: Printed) -> int | None:
    """End of the first place where a fragment stands; a hole at the end stays open for the next fragment."""
    at = message.find(fragment, start)
    if at >= 0:
        return at + len(fragment)
    needed = max(LEAST_LETTERS, int(LEAST_SHARE * len(fragment)))
    if len(fragment) < needed or not _shares_enough(message, fragment, needed):
        return None
    if len(fragment) > LONGEST_FRAGMENT or len(message) > LONGEST_MESSAGE:
        return None
    for begin in range(start, len(message)):
        if message[begin] == HOLE or message.startswith(fragment[:2], begin):
            end = _through(message, fragment, begin, needed, printed)
            if end is not None:
                return end
    return None


def _shares_enough(message: str, fragment: str, needed: int) -> bool:
    """Whether words of the fragment that the message has could make up what is needed: a quick no for most messages."""
    return 2 * sum(len(w) for w in words(fragment) if w in message) >= needed


@cache
def words(fragment: str) -> tuple[str, ...]:
    """Words of a fragment that tell something."""
    return tuple(w for w in re.split(r"\W+", fragment) if len(w) > 2)


def _through(message: str, fragment: str, begin: int, needed: int, printed: Printed) -> int | None:
    """End of a fragment that begins at this place of the message, with holes for what is not the program's text."""
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
            ways = [(w[0] + filled(j, k), w[1]) for k in cuts if j <= k < len(fragment) and (w := best(i + 1, k))]
            return max([*ways, (filled(j, len(fragment)), i)])
        if message[i] != fragment[j]:
            return None
        rest_of = best(i + 1, j + 1)
        return (rest_of[0] + 1, rest_of[1]) if rest_of is not None else None

    found = best(begin, 0)
    return found[1] if found is not None and found[0] >= needed else None
