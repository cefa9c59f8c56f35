"""Drafts of findings: an empty form, or one made from a report with its signals, grounds and log already cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from forensics.output.mask import mask
from forensics.rulebook.patterns import MAX_PATTERN
from forensics.schema.report import LaunchInfo, Report

ABOVE, BELOW = 12, 6
"""Lines of the log around the first failure that go into a draft."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file to write: its name and text. `kind` is finding or rule."""

    kind: str
    name: str
    text: str


def slug(text: str) -> str:
    """An id from a title: lower-case words joined by hyphens."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = "-".join(words)[:60].strip("-")
    return name if name[:1].isalpha() else f"finding-{name}".strip("-")


def front_matter(
    *,
    id: str,
    title: str,
    category: str,
    status: str = "suspected",
    versions: str = "",
    must: Sequence[str] = (),
    strong: Sequence[str] = (),
    explains: Sequence[str] = (),
    fix: Sequence[dict[str, Any]] = (),
    verify: Sequence[str] = (),
    sources: Sequence[str] = (),
    log_evidence: str = "none",
    symptoms: Sequence[str] = (),
    note: str = "",
) -> str:
    """The front matter of a finding, with the keys in the order of docs/findings.md."""
    grounds: dict[str, list[str]] = {"must": list(must)}
    if strong:
        grounds["strong"] = list(strong)
    data: dict[str, Any] = {"id": id, "title": title, "category": category, "status": status, "versions": versions}
    data["grounds"] = grounds
    for key, value in (("explains", explains), ("symptoms", symptoms), ("fix", fix), ("verify", verify)):
        if value:
            data[key] = list(value)
    data["sources"], data["log_evidence"] = list(sources), log_evidence
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{f'# {note}' + chr(10) if note else ''}{text}---\n"


def empty(identity: str, title: str, category: str) -> NewFile:
    """A form with every section, to be filled in."""
    front = front_matter(
        id=identity,
        title=title,
        category=category,
        must=["name-a-signal"],
        fix=[{"kind": "other", "do": "what a person changes"}],
        verify=["what a relaunch must show"],
        sources=["run: where you saw it"],
        log_evidence="rendered",
    )
    match = "```log match line=1\n[2026-01-05 10:00:00 TP0] the line that states the failure\n```"
    return NewFile(
        "finding", f"{identity}.md", front + _body(title, match, _near("[2026-01-05 10:00:00 TP0] a similar line"))
    )


def _near(lines: str) -> str:
    return f"```log near-miss\n{lines}\n```"


def _body(title: str, match: str, near: str) -> str:
    return (
        f"# {title}\n\n## What one sees\n\nOne or two sentences: the symptom, at which stage, on which ranks.\n\n"
        f"{match}\n\n"
        f"## What happens\n\nThe mechanism, in a few sentences.\n\n"
        f"## How to tell it from look-alikes\n\nWhat another cause with the same symptom would show.\n\n{near}\n\n"
        f"## Fix\n\nWhat to change, from which release on, and why it works.\n\n"
        f"## History\n\nWho saw and confirmed it.\n"
    )


def from_report(report: Report, title: str = "", identity: str = "", category: str = "") -> list[NewFile]:
    """A finding (and, where no rule names the failure yet, a rule) from the launch that a report is about."""
    launch = next((x for x in report.launches if x.id == report.focus), None) or next(iter(report.launches), None)
    if launch is None:
        raise ValueError("the report holds no launch")
    said = mask(launch.first_failure.text).strip() if launch.first_failure else ""
    title = title or (said[:90] if said else f"Launch that {launch.ended} at {launch.reached}")
    identity = identity or slug(title)
    failure = next((f for f in launch.failures if launch.first_failure and f.id == launch.first_failure.failure), None)
    signals = list(failure.signals) if failure else []
    files: list[NewFile] = []
    if said and not signals:
        family = category if category in _RULE_FAMILIES else "runtime"
        files.append(_rule(identity, title, said, family))
        signals = [identity]
    symptom = report.symptom or ("hang" if launch.ended == "hung" else "")
    must = [" or ".join(signals)] if signals else [f"symptom {symptom or 'garbage'}"]
    match, near = _logs(launch)
    front = front_matter(
        id=identity,
        title=title,
        category=category or _category(launch),
        versions=_versions(launch),
        must=must,
        strong=[f"stage = {launch.first_failure.stage}"] if launch.first_failure else [],
        explains=signals,
        symptoms=[] if signals else [symptom or "garbage"],
        fix=[{"kind": "other", "do": "what to change"}],
        verify=["what a relaunch must show"],
        sources=["run: the log that this was drafted from"],
        log_evidence="real" if match else "none",
    )
    files.insert(0, NewFile("finding", f"{identity}.md", front + _body(title, match, near)))
    return files


_RULE_FAMILIES = frozenset(
    [
        "numerics",
        "memory",
        "kernel",
        "compile",
        "distributed",
        "load",
        "config",
        "runtime",
        "disaggregation",
        "network",
        "tokenizer",
        "host",
        "performance",
    ]
)


def _category(launch: LaunchInfo) -> str:
    first = launch.first_failure
    by_component = {
        "communication": "distributed",
        "kernel library": "kernel",
        "tokenizer": "tokenizer",
        "host": "host",
    }
    if first is None:
        return "hang" if launch.ended == "hung" else "runtime"
    by_stage = {"config": "config", "load": "load", "kv-pool": "memory"}
    return by_component.get(first.component) or by_stage.get(first.stage, "runtime")


def _versions(launch: LaunchInfo) -> str:
    low = launch.version.exact or launch.version.low
    return f">={low.split('+')[0]}" if low else ""


def _rule(identity: str, title: str, said: str, family: str) -> NewFile:
    """A rule for a message that none names yet; numbers, quoted texts and paths are left open."""
    data = {
        "id": identity,
        "title": title,
        "match": {"any": [open_pattern(said)]},
        "role": "root",
        "severity": "error",
        "docs": "What the line means, in one sentence.",
    }
    return NewFile(
        "rule", f"{family}/{identity}.yaml", yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=200)
    )


_OPEN = re.compile(r"(?P<path>(?:/[\w.+-]+){2,})|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<number>-?\d+(?:\.\d+)*)")


def open_pattern(said: str) -> str:
    """An RE2 pattern for a message: its words stay, what varies is left open."""
    parts, at = [], 0
    said = said[:300]
    for found in _OPEN.finditer(said):
        parts.append(_escaped(said[at : found.start()]))
        parts.append({"path": r"\S+", "quoted": ".*", "number": r"-?[\d.]+"}[str(found.lastgroup)])
        at = found.end()
    parts.append(_escaped(said[at:]))
    return "".join(parts)[:MAX_PATTERN]


def _escaped(text: str) -> str:
    return re.sub(r"([\\.*+?()\[\]{}|^$])", r"\\\1", text)


def _logs(launch: LaunchInfo) -> tuple[str, str]:
    """The masked log around the first failure with the line that must be named; the log before it as near miss."""
    first = launch.first_failure
    if first is None:
        return "", ""
    lines = _read(first.where.path)
    at = first.where.line - 1
    if not 0 <= at < len(lines):
        line = mask(first.where.text or first.text)
        return f"```log match line=1\n{line}\n```", ""
    head = _launch_line(lines, launch.lines[0] - 1, at)
    start = max(launch.lines[0] - 1, at - ABOVE)
    above = ([head] if head is not None and head < start else []) + list(range(start, at))
    shown = [*above, *range(at, min(len(lines), at + BELOW, launch.lines[1]))]
    match = "\n".join(mask(lines[i])[:1000] for i in shown)
    near = "\n".join(mask(lines[i])[:1000] for i in above)
    named = len(above) + 1
    return f"```log match line={named}\n{match}\n```", _near(near) if near else ""


def _launch_line(lines: list[str], start: int, end: int) -> int | None:
    """The line of the launch's server_args: facts that conditions ask for stand there."""
    return next((i for i in range(max(0, start), end) if "server_args=" in lines[i] and len(lines[i]) < 9000), None)


def _read(path: str) -> list[str]:
    try:
        return Path(path).read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        return []
