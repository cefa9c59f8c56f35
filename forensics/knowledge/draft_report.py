"""A draft from a report: signals, grounds and log blocks already cut and masked; what a replay proved goes in too."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forensics.frozen import frozen
from forensics.knowledge.draft import (
    DO,
    VERIFY,
    NewFile,
    body,
    first_line,
    front_matter,
    near_miss,
    rule_file,
    slug,
    title_of,
)
from forensics.knowledge.draft_alike import Alike, alike, failed
from forensics.knowledge.draft_check import checked
from forensics.knowledge.draft_frame import origin_of
from forensics.knowledge.draft_mask import Hidden
from forensics.knowledge.draft_trial import Proposal, proposal
from forensics.knowledge.speaker import family_of
from forensics.rulebook.words import FAMILIES
from forensics.schema.report import LaunchInfo, Report
from forensics.schema.signal import Rule

ABOVE, BELOW = 12, 6
"""Lines of the log around the first failure that go into a draft."""
_HEADER = re.compile(r"^\[\d{4}-\d\d-\d\d[^\]]*\]\s*")


@frozen
class Proof:
    """What a replay adds to a draft. `settings` are conditions over what the failing command had, `near` a near miss,
    `keep` the arguments whose values the log block must show."""

    status: str
    fix: tuple[dict[str, Any], ...]
    verify: tuple[str, ...]
    source: str
    fix_text: str
    history: str
    settings: tuple[str, ...] = ()
    near: str = ""
    keep: frozenset[str] = frozenset()


@frozen
class _Place:
    """The line that states the fault; `failure` is its id where the report lists it as one."""

    path: str
    line: int
    text: str
    raw: str
    stage: str = ""
    failure: str | None = None
    whole: str = ""


def from_report(
    report: Report,
    rules: Mapping[str, Rule],
    title: str = "",
    identity: str = "",
    category: str = "",
    namespace: str = "",
    line: int | None = None,
    proof: Proof | None = None,
) -> list[NewFile]:
    """A finding (and, where no rule names the failure yet, a rule) from the launch that a report is about. `line`
    names the line of that launch's log that states the fault, where it is not the first failure."""
    launch, hide = focus_of(report), Hidden()
    if launch is None:
        raise ValueError("the report holds no launch")
    place = _place(launch, line, hide)
    symptom = report.symptom or ("hang" if launch.ended == "hung" else "")
    if place is None and not symptom:
        raise ValueError("the report shows no failure: name its line by --line N, or analyze the log with --symptom")
    said = place.text if place is not None else ""
    signals = _roots(launch, place, rules)
    known = rules[signals[0]] if signals else None
    named = known.title if known else title_of(said) if said else f"{symptom.capitalize()} without a message"
    wrong = " and ".join(s.removeprefix("args.").removeprefix("env.") for s in (proof.settings if proof else ()))
    title = title or (f"{named} with {wrong}" if wrong else named)
    identity = identity or slug(f"{wrong} {title}")
    category = category or (known.family if known else _category(launch, place))
    files: list[NewFile] = []
    match, near = _logs(launch, place, proof.keep if proof else frozenset(), hide)
    if place is not None and said and not signals:
        family = category if category in FAMILIES else family_of(said) or "runtime"
        origin = origin_of(said, read_lines(place.path), place.line - 1)
        files.append(checked(rule_file(identity, title, said, family, origin), match, place.line))
        signals = [f"{namespace}/{identity}" if namespace else identity]
    more = Alike()
    if place is not None and said and proof is None:  # what a replay proved is proved of its own sign
        more = _more(identity, category, place, launch, match, namespace, hide)
    files += more.files
    stage = [f"stage = {place.stage}"] if place is not None and place.stage not in ("", "unknown") else []
    tried = proposal(launch) if proof is None else Proposal()
    front = front_matter(
        id=identity,
        title=title,
        category=category,
        status=proof.status if proof else "suspected",
        must=[" or ".join([*signals, *more.conditions])] if signals else [f"symptom {symptom}"],
        strong=[*(proof.settings if proof else ()), *_with(signals, stage)],
        weak=tried.weak,
        explains=[*signals, *more.names],
        symptoms=[] if signals else [symptom],
        fix=list(proof.fix) if proof else [*tried.fix, {"kind": "other", "do": DO}],
        verify=list(proof.verify) if proof else [VERIFY],
        sources=[proof.source if proof else "run: the log that this was drafted from"],
        log_evidence="real" if match else "none",
    )
    near = (proof.near if proof else "") or near
    text = body(title, match, near, proof.fix_text if proof else "", proof.history if proof else "")
    files.insert(0, NewFile("finding", f"{identity}.md", front + text))
    return files


def focus_of(report: Report) -> LaunchInfo | None:
    """The launch that a report is about."""
    return next((x for x in report.launches if x.id == report.focus), None) or next(iter(report.launches), None)


def _place(launch: LaunchInfo, line: int | None, hide: Hidden) -> _Place | None:
    first = launch.first_failure
    if line is None:
        if first is None:
            return None
        raw = first.where.text or first.text
        said = hide(first_line(first.text))
        return _Place(first.where.path, first.where.line, said, raw, first.stage, first.failure, first.text)
    path = launch.path or (first.where.path if first is not None else "")
    lines = read_lines(path)
    if not 0 < line <= len(lines):
        raise ValueError(f"line {line} is not in {path or 'the log'}" + (f" ({len(lines)} lines)" if lines else ""))
    said = hide(_HEADER.sub("", lines[line - 1])).strip()
    if not said:
        raise ValueError(f"line {line} of {path} is empty")
    failure = next((f for f in launch.failures if f.where.line == line), None)
    return _Place(path, line, said, lines[line - 1], failure.stage if failure else "", failure.id if failure else None)


def _roots(launch: LaunchInfo, place: _Place | None, rules: Mapping[str, Rule]) -> list[str]:
    """Signals of the failure that state a fault themselves: a wrapper or a victim's word is no ground."""
    failure = next((f for f in launch.failures if place is not None and f.id == place.failure), None)
    return [s for s in (failure.signals if failure else ()) if s in rules and rules[s].role == "root"]


def _more(
    identity: str, category: str, place: _Place, launch: LaunchInfo, match: str, namespace: str, hide: Hidden
) -> Alike:
    """What the next log of the cause may say instead of this place's words."""
    start = max(0, place.line - 1 - ABOVE)
    above = [hide(line) for line in read_lines(place.path)[start : place.line]]
    found = failed(place.text, hide(place.whole), above, place.line - 1 - start)
    family = category if category in FAMILIES else family_of(place.text) or "runtime"
    return alike(identity, family, found, launch, match, namespace)


def _with(signals: list[str], stage: list[str]) -> list[str]:
    """The stage speaks for the finding together with its own signs: every other cause of this stage has it as well."""
    own = " or ".join(signals)
    return [f"({own}) and {s}" if len(signals) > 1 else f"{own} and {s}" if own else s for s in stage]


_CATEGORIES = {"compile": "kernel-compile"}
"""Where findings have another word than the family of their rule."""


def _category(launch: LaunchInfo, place: _Place | None) -> str:
    first = launch.first_failure
    by_component = {
        "communication": "distributed",
        "kernel library": "kernel",
        "tokenizer": "tokenizer",
        "loader": "load",
        "host": "host",
    }
    if place is None:
        return "hang" if launch.ended == "hung" else "runtime"
    if speaks := family_of(place.text):
        return _CATEGORIES.get(speaks, speaks)
    if first is None:
        return "hang" if launch.ended == "hung" else "runtime"
    by_stage = {"config": "config", "load": "load", "kv-pool": "memory"}
    return by_component.get(first.component) or by_stage.get(first.stage, "runtime")


def _logs(launch: LaunchInfo, place: _Place | None, keep: frozenset[str], hide: Hidden) -> tuple[str, str]:
    """The masked log around the telling line, which is named; the log before it as near miss."""
    if place is None:
        return "", ""
    lines = read_lines(place.path)
    at = place.line - 1
    if not 0 <= at < len(lines):
        return f"```log match line=1\n{hide(place.raw)}\n```", ""
    head = launch_line(lines, launch.lines[0] - 1, at)
    start = max(launch.lines[0] - 1, at - ABOVE)
    above = ([head] if head is not None and head < start else []) + list(range(start, at))
    shown = [*above, *range(at, min(len(lines), at + BELOW, launch.lines[1]))]
    near = shown_lines(lines, above, keep, hide)
    match = f"```log match line={len(above) + 1}\n{shown_lines(lines, shown, keep, hide)}\n```"
    return match, near_miss(near) if near else ""


def shown_lines(
    lines: list[str], chosen: list[int], keep: frozenset[str] = frozenset(), hide: Hidden | None = None
) -> str:
    """Lines of a log as a page may hold them: masked, and long ones cut; `keep` names arguments that must stay."""
    hide = hide or Hidden()
    return "\n".join(hide(_shorter(lines[i], keep)) for i in chosen)


MAX_LINE = 1000
_USUAL = frozenset(["model_path", "dtype", "quantization", "kv_cache_dtype", "tp_size", "dp_size", "attention_backend"])
_ARGUMENT = re.compile(r"\b(\w+)=('[^']*'|[\w.+-]+)(?=[,)])")


def _shorter(line: str, keep: frozenset[str]) -> str:
    """A dump of all arguments keeps the telling ones: thousands of characters help no reader."""
    head, dump, rest = line.partition("server_args=ServerArgs(")
    if len(line) <= MAX_LINE or not dump:
        return line[:MAX_LINE]
    told = [m.group() for m in _ARGUMENT.finditer(rest) if m.group(1) in _USUAL | keep]
    return f"{head}{dump}{', '.join(dict.fromkeys(told))})"


def launch_line(lines: list[str], start: int, end: int) -> int | None:
    """The line of the launch's server_args: facts that conditions ask for stand there."""
    return next((i for i in range(max(0, start), min(end, len(lines))) if "server_args=" in lines[i]), None)


def read_lines(path: str) -> list[str]:
    """The lines of a log, none where it cannot be read."""
    try:
        return Path(path).read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        return []
