"""Regular expressions that are compiled when they are first used.

Python compiles an expression in Python: a tenth of a millisecond for a short one, ten for a long one. Of the hundreds
in this program a log needs few. Those that stand in tables, or answer rare questions, wait until they are asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, AnyStr, Generic


class Late(Generic[AnyStr]):
    """An expression by its text; the methods of a compiled one. What is wrong with the text shows at the first use
    (tests/test_late.py compiles all)."""

    search: Callable[..., re.Match[AnyStr] | None]
    match: Callable[..., re.Match[AnyStr] | None]
    fullmatch: Callable[..., re.Match[AnyStr] | None]
    finditer: Callable[..., Iterator[re.Match[AnyStr]]]
    findall: Callable[..., list[Any]]
    split: Callable[..., list[AnyStr | Any]]
    sub: Callable[..., AnyStr]

    def __init__(self, pattern: AnyStr, flags: int = 0) -> None:
        self.pattern: AnyStr = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        """Only asked for what is not there yet: a method, at its first use."""
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        return f"Late({self.pattern!r})"
