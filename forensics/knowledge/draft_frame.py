"""What a traceback says where its exception says nothing: the source line of the check, or the function that raised."""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.frozen import frozen

LOOK_BACK = 8
"""Lines above an exception among which its own frame stands, also where another rank speaks in between."""
_BARE = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<type>[A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Failure)):?\s*")
_CHECK = re.compile(r"(?:^|\s)assert\b\s*\(?(?P<asked>.*\S)\s*$")
_FRAME = re.compile(r'File "(?:[^"\n]*/)?(?P<file>[\w.-]+)", line \d+, in (?P<function>[\w<>]+)')
_TAIL = re.compile(r"""(?<!\s)\s*(?:\\|,\s*(?:[frb]{0,2}["'(].*)?|\)\s*)$""")
_LEAST_WORDS = 2


@frozen
class Origin:
    """Where a bare exception comes from: its type, what the check asked (empty where the log does not show it) and a
    pattern for the frame that raised it."""

    type: str
    asked: str
    frame: str


def origin_of(said: str, lines: Sequence[str], at: int) -> Origin | None:
    """The origin of an exception without words on line `at` (from 0); None where it has words, or no frame is near."""
    bare = _BARE.fullmatch(said.strip())
    if bare is None:
        return None
    asked = frame = ""
    for line in reversed(lines[max(0, at - LOOK_BACK) : at]):
        check, place = _CHECK.search(line), _FRAME.search(line)
        if place is not None:
            frame = rf'{re.escape(place["file"])}", line \d+, in {re.escape(place["function"])}'
            break
        if check is not None and not asked:
            asked = _TAIL.sub("", check["asked"])
    words = len(re.findall(r"[A-Za-z_]{3,}", asked))
    return Origin(bare["type"], asked if words >= _LEAST_WORDS else "", frame) if frame or asked else None


def check_pattern(asked: str) -> str:
    """An RE2 pattern for a check's source line: names stay, `self.` may stand there, numbers but 0 and 1 are open."""
    text = re.sub(r"([\\.*+?()\[\]{}|^$])", r"\\\1", asked)
    text = re.sub(r"\bself\\\.", r"(?:self\\.)?", text)
    return re.sub(r"(?<![\w.\\])(?!(?:0|1)\b)\d+(?![\w.])", r"\\d+", text)
