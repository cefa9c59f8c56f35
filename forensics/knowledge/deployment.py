"""From one Markdown file to a Deployment: a launch that is known to work."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

from forensics.knowledge.finding import read_versions
from forensics.knowledge.front import Page, read_page
from forensics.rulebook.located import Located, Reader
from forensics.rulebook.problem import Problem
from forensics.rulebook.schema import read_id, read_sources
from forensics.schema.facts import Value
from forensics.schema.finding import Deployment

KEYS = (
    "id",
    "title",
    "strength",
    "hardware",
    "quantization",
    "model",
    "features",
    "versions",
    "args",
    "env",
    "facts",
    "warnings",
    "sources",
)
REQUIRED = ("id", "title", "strength", "hardware", "sources")
STRENGTHS = ("accuracy", "throughput", "served", "benchmarked", "recommended")
HARDWARE = ("gpu", "count", "sm", "nodes")
MODEL = ("name", "architecture")
_FEATURE = re.compile(r"[a-z][a-z0-9_]*")


def check_deployment(
    path: Path, namespace: str = "", shown: str | None = None
) -> tuple[Deployment | None, list[Problem]]:
    """Read one deployment file; `shown` is the path as messages give it."""
    page = read_page(path, shown)
    if isinstance(page, Problem):
        return None, [page]
    reader = page.reader
    if reader.root is None:
        if not reader.problems:
            reader.add("K001", "the front matter is empty", 1, 1, "see docs/findings.md for a full example")
        return None, reader.problems
    found = _deployment(page, reader, reader.keys(reader.root, KEYS, REQUIRED, "a deployment"), namespace)
    broken = any(p.severity == "error" for p in reader.problems)
    return (None if broken else found), reader.problems


def _deployment(page: Page, reader: Reader, fields: dict[str, Located], namespace: str) -> Deployment:
    root = reader.root
    assert root is not None
    hardware = _part(reader, fields.get("hardware"), HARDWARE, "`hardware`")
    model = _part(reader, fields.get("model"), MODEL, "`model`")
    return Deployment(
        id=read_id(reader, fields.get("id"), PurePath(reader.path).stem, namespace),
        title=reader.text(fields.get("title")),
        strength=reader.choice(fields.get("strength"), STRENGTHS, "served"),
        span=reader.span(root),
        gpu=_text(reader, hardware.get("gpu")),
        gpu_count=_count(reader, hardware.get("count")),
        sm=_count(reader, hardware.get("sm")),
        nodes=_count(reader, hardware.get("nodes")) or 1,
        quantization=_text(reader, fields.get("quantization")),
        model=_text(reader, model.get("name")),
        architecture=_text(reader, model.get("architecture")),
        features=_features(reader, fields.get("features")),
        versions=read_versions(reader, fields.get("versions")),
        args=_pairs(reader, fields.get("args")),
        env=tuple((name, reader.text(value)) for name, value in _mapping(reader, fields.get("env")).items()),
        facts=_pairs(reader, fields.get("facts")),
        warnings=reader.texts(fields.get("warnings")),
        sources=read_sources(reader, fields.get("sources")),
        body=page.body,
    )


def _part(reader: Reader, at: Located | None, keys: tuple[str, ...], what: str) -> dict[str, Located]:
    return {} if at is None else reader.keys(at, keys, (), what)


def _mapping(reader: Reader, at: Located | None) -> dict[str, Located]:
    if at is None:
        return {}
    if not isinstance(at.value, dict):
        reader.fault("K002", "a mapping is expected here", at, "write `{name: value}`")
    return at.fields()


def _text(reader: Reader, at: Located | None) -> str:
    return "" if at is None or at.value is None else reader.text(at)


def _count(reader: Reader, at: Located | None) -> int | None:
    return None if at is None or at.value is None else reader.whole(at, 0, 1) or None


def _pairs(reader: Reader, at: Located | None) -> tuple[tuple[str, Value], ...]:
    return tuple((name, value.plain()) for name, value in _mapping(reader, at).items())


def _features(reader: Reader, at: Located | None) -> tuple[str, ...]:
    found = []
    for item in reader.sequence(at):
        text = reader.text(item).removeprefix("feature.")
        if not _FEATURE.fullmatch(text):
            reader.fault("K005", f"`{text}` is no feature", item, "names of docs/facts.md, e.g. `dp_attention`")
        found.append(text)
    return tuple(found)
