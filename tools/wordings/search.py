"""Where in the unpacked releases a wording stands, for a rule that states no source for it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from wordings.check import Shelf, shown
from wordings.pattern import TooMany, take_apart

MOST = 6


def places(pattern: str, shelf: Shelf) -> Iterator[str]:
    """Files that hold an expansion of the pattern, as sources; a few of them."""
    try:
        taken = take_apart(pattern)
    except (TooMany, re.error):
        return
    longest = sorted({max(e.fragments, key=len) for e in taken.expansions}, key=len, reverse=True)[:20]
    command = ["grep", "-rlF", "--include=*.py", "--include=*.c*", "--include=*.h*", "--include=*.rs", "--include=*.go"]
    command += ["--include=strings.txt"]
    for text in longest:
        command += ["-e", max(text.strip().split("\n"), key=len)]
    found = subprocess.run([*command, "-R", str(shelf.folder)], capture_output=True, text=True, check=False)
    told = 0
    for name in sorted(found.stdout.splitlines()):
        path = shelf.folder / name.removeprefix(str(shelf.folder) + "/")
        source = path.relative_to(shelf.folder).as_posix()
        if shown(taken.expansions, shelf, source, taken.fold):
            yield source
            told += 1
            if told == MOST:
                return
