"""One rule against the sources that it states: which of its wordings stand in which of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

from forensics.bench.wordings import NOT_READ, Entry, program_sources
from forensics.schema.signal import Rule
from wordings.align import LEAST_FILLED, holds, words
from wordings.messages import read
from wordings.pattern import Expansion, Taken, TooMany, take_apart

STRINGS = "strings.txt"


class Shelf:
    """The unpacked releases below a folder; files are read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[tuple[Path, bool], list[str]] = {}
        self._blobs: dict[tuple[Path, bool], str] = {}

    def has(self, source: str) -> bool:
        """Whether the release of a source is there."""
        return self._release(source).is_dir()

    def path(self, source: str) -> Path | None:
        """The file of a source, or the strings of its release's libraries; None where neither is there."""
        for path in (self.folder / source, self._release(source) / STRINGS):
            if path.is_file():
                return path
        return None

    def texts(self, source: str, fold: bool = False) -> list[str]:
        """Messages and code of a source, and its own name, which a frame prints; in small letters where asked."""
        path = self.path(source)
        if path is None:
            return []
        if (path, fold) not in self._read:
            said = read(path)
            found = [*said.messages, *said.code, source]
            self._read[path, fold] = [t.lower() for t in found] if fold else found
        return self._read[path, fold]

    def blob(self, source: str, fold: bool = False) -> str:
        """All texts of a source in one, for a quick no."""
        path = self.path(source)
        if path is None:
            return ""
        if (path, fold) not in self._blobs:
            self._blobs[path, fold] = "\n".join(self.texts(source, fold))
        return self._blobs[path, fold]

    def only_strings(self, source: str) -> bool:
        """Whether the release is there as its libraries' strings only."""
        path = self.path(source)
        return path is not None and path.name == STRINGS

    def _release(self, source: str) -> Path:
        return self.folder / "/".join(source.split("/")[:2])

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """All source files, for a search."""
        ends = {".py", ".cpp", ".cc", ".c", ".cu", ".cuh", ".h", ".hpp", ".rs", ".go", ".inl"}
        return tuple(sorted(p for p in _below(self.folder) if p.suffix in ends or p.name == STRINGS))


def _below(folder: Path) -> Iterator[Path]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry)
        else:
            yield entry


@dataclass
class Checked:
    """What was found for a rule: for each pattern the number of the source that holds it (of `program_sources`), the
    sides of its alternations that none holds, and what is wrong."""

    rule: Rule
    found: list[int]
    missing: dict[int, list[str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def entry(self) -> Entry:
        """For the record."""
        return Entry(tuple(self.found), {n: tuple(texts) for n, texts in self.missing.items()})

    def states(self) -> list[str]:
        """One word for each pattern."""
        without = "not found" if program_sources(self.rule) else "no source stated"
        whole = ("found in part" if i in self.missing else "found" for i in range(len(self.found)))
        return [word if n != NOT_READ else without for n, word in zip(self.found, whole, strict=True)]


def check(rule: Rule, shelf: Shelf, before: Entry | None) -> Checked:
    """Look for each wording in each source that is stated for it. `before`: what the record says of the rule, which
    stands where a release is not on the shelf."""
    sources = program_sources(rule)
    result = Checked(rule, [NOT_READ] * len(rule.patterns))
    useful: set[str] = set()
    for number, pattern in enumerate(rule.patterns):
        stated = [s for s in sources if s in rule.stated_for(pattern)]
        useful |= _look(number, pattern, stated, shelf, result)
        if result.found[number] == NOT_READ and before is not None and before.numbers[number] != NOT_READ:
            source = sources[before.numbers[number]]
            if not shelf.has(source):
                result.found[number] = before.numbers[number]
                result.missing |= {number: list(before.missing[number])} if number in before.missing else {}
                useful.add(source)
        if result.found[number] == NOT_READ:
            result.open.append(pattern)
            if stated:
                result.faults.append(f"{pattern!r}: not in {', '.join(stated)}")
    useful |= _with_frame(rule, sources, shelf)
    for source in sources:
        if not shelf.has(source) and source not in useful:
            result.faults.append(f"{source}: this release is not in the folder")
        elif shelf.has(source) and shelf.path(source) is None:
            result.faults.append(f"{source}: the release has no such file")
        elif source not in useful:
            result.faults.append(f"{source}: holds no wording of the rule")
    return result


def _look(number: int, pattern: str, stated: Sequence[str], shelf: Shelf, result: Checked) -> set[str]:
    """Sources that hold something of a pattern; what was found goes into the result."""
    taken = _taken(pattern, result)
    if taken is None:
        return set()
    sources = program_sources(result.rule)
    present = [s for s in stated if shelf.path(s) is not None]
    missing, useful = dict(taken.branches), set[str]()
    filling: set[str] = set()
    for source in present:
        held = shown(taken.expansions, shelf, source, taken.fold, present)
        if held:
            useful.add(source)
            if result.found[number] == NOT_READ:
                result.found[number] = sources.index(source)
        for branch in {b for e in held for b in e.branches}:
            missing.pop(branch, None)
    for source in set(present) - useful if useful else ():
        rest = [s for s in present if s != source]
        if not any(shown(taken.expansions, shelf, s, taken.fold, rest) for s in useful):
            filling.add(source)
    useful |= filling
    if useful and missing:
        result.missing[number] = sorted(set(missing.values()))
    return useful


def _with_frame(rule: Rule, sources: Sequence[str], shelf: Shelf) -> set[str]:
    """Sources that hold the frame which the rule asks for."""
    if not rule.frames:
        return set()
    try:
        taken = take_apart(rule.frames)
    except (TooMany, re.error):
        return set()
    return {s for s in sources if shelf.path(s) is not None and shown(taken.expansions, shelf, s, taken.fold)}


def _taken(pattern: str, result: Checked) -> Taken | None:
    try:
        return take_apart(pattern)
    except TooMany:
        result.faults.append(f"{pattern!r}: too many ways through it")
    except re.error as error:
        result.faults.append(f"{pattern!r}: {error}")
    return None


def shown(
    expansions: Sequence[Expansion], shelf: Shelf, source: str, fold: bool, stated: Sequence[str] = ()
) -> list[Expansion]:
    """The expansions of which a message, or a line of the code, holds all fragments in their order. Of a library's
    strings, which are no whole messages, each fragment must be one. What stands in any of the stated sources may fill
    a hole."""
    texts = shelf.texts(source, fold)

    @cache
    def printed(text: str) -> bool:
        wanted = text.strip(" :,.'\"()")
        return len(wanted) >= LEAST_FILLED and any(wanted in shelf.blob(s, fold) for s in stated)

    def held(e: Expansion) -> bool:
        fragments = tuple(f.lower() for f in e.fragments) if fold else e.fragments
        blob = shelf.blob(source, fold)
        if shelf.only_strings(source):
            own = [f in blob for f in fragments]
            return any(own) and all(is_own or printed(f) for is_own, f in zip(own, fragments, strict=True))
        known = [any(w in blob for w in words(f)) or not words(f) for f in fragments]
        if not any(known) or not all(k or printed(f) for k, f in zip(known, fragments, strict=True)):
            return False
        return any(holds(t, fragments, printed) for t in texts)

    return [e for e in expansions if held(e)]
