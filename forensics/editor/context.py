"""Where the cursor stands in front matter or a rule: the keys around it, the word before it."""

from __future__ import annotations

import re

from forensics.frozen import frozen

_KEY = re.compile(r"^(\s*)(?:- )?([A-Za-z_]+):(.*)$")
_FLOW_KEY = re.compile(r"[{,]\s*([A-Za-z_]+):\s*[^,{}\[\]]*$")
_BEFORE = re.compile(r"(?:--)?[\w$./-]*$")
MAX_UP = 400


@frozen
class Spot:
    """`keys` lead to the cursor, outermost first; `word` stands before it and begins at 1-based `column`. `in_front`:
    the cursor stands in front matter (always true in rule files). `fresh`: a key may begin here."""

    keys: tuple[str, ...]
    word: str
    column: int
    in_front: bool
    fresh: bool
    before: str


def spot(lines: list[str], line: int, column: int, markdown: bool) -> Spot:
    """Read the surroundings of a 1-based place."""
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    before = text[: column - 1]
    found = _BEFORE.search(before)
    word = found.group() if found else ""
    inside = not markdown or _inside_front(lines, line)
    keys = _keys(lines, line, before) if inside else ()
    fresh = inside and re.fullmatch(r"\s*[A-Za-z_]*", before) is not None
    return Spot(keys, word, column - len(word), inside, fresh, before)


def _inside_front(lines: list[str], line: int) -> bool:
    """Whether a line lies between the two fences."""
    if not lines or lines[0].strip().removeprefix("\ufeff") != "---":
        return False
    end = next((i for i, text in enumerate(lines[1:], 2) if text.strip() == "---"), len(lines) + 1)
    return 1 < line < end


def _keys(lines: list[str], line: int, before: str) -> tuple[str, ...]:
    keys: list[str] = []
    flow = _FLOW_KEY.search(before)
    if flow:
        keys.append(flow.group(1))
    own = _KEY.match(before)
    indent = len(before) - len(before.lstrip(" "))
    if own and (own.group(3) or before.endswith(":")) and not (flow and own.group(2) == flow.group(1)):
        keys.append(own.group(2))
    least = indent if not before.lstrip(" ").startswith("- ") else indent + 1
    for index in range(line - 2, max(-1, line - 2 - MAX_UP), -1):
        text = lines[index]
        found = _KEY.match(text)
        if text.strip() == "---":
            break
        if found and len(found.group(1)) < least and not text.lstrip(" ").startswith("- "):
            keys.append(found.group(2))
            least = len(found.group(1))
        if least == 0:
            break
    return tuple(reversed(keys))
