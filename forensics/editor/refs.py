"""From a word to its file, and to every place that names it: findings, rules, deployments, samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lsprotocol import types

from forensics.editor.units import Units
from forensics.knowledge.library import Library
from forensics.schema.span import Span

MAX_PLACES = 2_000
_SAMPLE = re.compile(r"sample=(\S+)")


def definition(word: str, line: str, lib: Library) -> types.Location | None:
    """The file that defines a word: a rule, a finding, a deployment, or the sample that a log block names."""
    sample = _SAMPLE.search(line)
    if sample and word and word in sample.group(1):
        path = lib.sample(sample.group(1))
        return None if path is None else _at(path, 1)
    rule = lib.rules.get(word) or lib.rules.get(word.rpartition(".")[0])
    found: Span | None = rule.span if rule is not None else None
    if found is None:
        known = lib.findings.get(word) or next((d for d in lib.knowledge.deployments if d.id == word), None)
        found = known.span if known is not None else None
    if found is None and word.endswith(".md"):
        return definition(word.removesuffix(".md").rpartition("/")[2], "", lib)
    path = lib.path_of(found.path) if found is not None else None
    return None if path is None else _at(path, 1)


def _at(path: Path, line: int) -> types.Location:
    start = types.Position(line - 1, 0)
    return types.Location(path.resolve().as_uri(), types.Range(start, start))


def references(word: str, lib: Library, texts: Mapping[Path, str], units: Units) -> list[types.Location]:
    """Every place that names a rule, a finding or a deployment. `texts` are open documents, which may differ from
    their files."""
    name = word if word in lib.rules or word in lib.findings else word.rpartition(".")[0]
    if not name or not (name in lib.rules or name in lib.findings or _deployed(name, lib)):
        return []
    pattern = re.compile(rf"(?<![\w/-]){re.escape(name)}(?![\w-])")
    found: list[types.Location] = []
    for path in _files(lib):
        text = texts.get(path.resolve())
        if text is None:
            text = _read(path)
        if name in text:
            found += _places(path, text, pattern, len(name), units)
        if len(found) > MAX_PLACES:
            break
    return found[:MAX_PLACES]


def _deployed(name: str, lib: Library) -> bool:
    return any(d.id == name for d in lib.knowledge.deployments)


def _files(lib: Library) -> Iterator[Path]:
    """Files of all rules, findings and deployments, then the truth of the samples."""
    spans = [r.span for r in lib.rules.values()] + [f.span for f in lib.findings.values()]
    spans += [d.span for d in lib.knowledge.deployments]
    for shown in sorted({s.path for s in spans}):
        path = lib.path_of(shown)
        if path is not None:
            yield path
    if lib.samples is not None:
        yield from sorted(lib.samples.glob("cases/*/truth.json"))
        yield from sorted(lib.samples.glob("cases/*/*.truth.json"))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _places(path: Path, text: str, pattern: re.Pattern[str], size: int, units: Units) -> Iterator[types.Location]:
    uri = path.resolve().as_uri()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for hit in pattern.finditer(line):
            yield types.Location(uri, units.span(lines, number, hit.start() + 1, size))
