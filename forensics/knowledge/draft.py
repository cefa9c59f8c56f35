"""Drafts of findings: file forms, ids, titles and patterns. draft_report.py fills them from a report."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from forensics.frozen import frozen
from forensics.knowledge.draft_frame import Origin, check_pattern
from forensics.rulebook.lint import DRAFT_DOCS
from forensics.rulebook.patterns import MAX_PATTERN

MAX_ID = 60


@frozen
class NewFile:
    """A file to write: its name and text. `kind` is finding or rule, `warning` what its author has to know; `aside`:
    a rule for what other logs of the cause may say, beside the one for this log's words."""

    kind: str
    name: str
    text: str
    warning: str = ""
    aside: bool = False


def slug(text: str) -> str:
    """An id from a title: lower-case words joined by hyphens; a long title loses its small words first."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    if len("-".join(words)) >= MAX_ID:
        words = [w for w in words if w not in _SMALL] or words
    name = ""
    for word in words:
        if len(name) + len(word) >= MAX_ID:
            break
        name = f"{name}-{word}" if name else word
    name = name or "-".join(words)[:MAX_ID].strip("-")
    return name if name[:1].isalpha() else f"finding-{name}".strip("-")


_SMALL = frozenset(
    "a an and are as at be by do does for from has have in is it of on or that the this to was were with".split()  # noqa: SIM905
)


def front_matter(
    *,
    id: str,
    title: str,
    category: str,
    status: str = "suspected",
    versions: str = "",
    must: Sequence[str] = (),
    strong: Sequence[str] = (),
    weak: Sequence[str] = (),
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
    if weak:
        grounds["weak"] = list(weak)
    data: dict[str, Any] = {"id": id, "title": title, "category": category, "status": status, "versions": versions}
    data["grounds"] = grounds
    for key, value in (("explains", explains), ("symptoms", symptoms), ("fix", fix), ("verify", verify)):
        if value:
            data[key] = list(value)
    data["sources"], data["log_evidence"] = list(sources), log_evidence
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    return f"---\n{f'# {note}' + chr(10) if note else ''}{text}---\n"


SEE = "One or two sentences: the symptom, at which stage, on which ranks."
MECHANISM = "The mechanism, in a few sentences."
APART = "What another cause with the same symptom would show."
CHANGE = "What to change, from which release on, and why it works."
WHO = "Who saw and confirmed it."
DO, VERIFY = "what to change", "what a relaunch must show"
UNFILLED = frozenset({SEE, MECHANISM, APART, CHANGE, WHO, DO, VERIFY})
"""What a draft says where the author has to write: lint refuses it."""


def empty(identity: str, title: str, category: str) -> NewFile:
    """A form with every section, to be filled in."""
    front = front_matter(
        id=identity,
        title=title,
        category=category,
        must=["name-a-signal"],
        fix=[{"kind": "other", "do": DO}],
        verify=[VERIFY],
        sources=["run: where you saw it"],
        log_evidence="rendered",
    )
    match = "```log match line=1\n[2026-01-05 10:00:00 TP0] the line that states the failure\n```"
    near = near_miss("[2026-01-05 10:00:00 TP0] a similar line")
    return NewFile("finding", f"{identity}.md", front + body(title, match, near))


def near_miss(lines: str) -> str:
    """A block that must not give the finding."""
    return f"```log near-miss\n{lines}\n```"


def body(title: str, match: str, near: str, fix: str = "", history: str = "") -> str:
    """The five sections; what nobody filled in yet says what belongs there."""
    parts = [
        f"# {title}",
        "## What one sees",
        SEE,
        match,
        "## What happens",
        MECHANISM,
        "## How to tell it from look-alikes",
        APART,
        near,
        "## Fix",
        fix or CHANGE,
        "## History",
        history or WHO,
    ]
    return "\n\n".join(p for p in parts if p) + "\n"


def title_of(said: str) -> str:
    """A title from a message: its first line without what varies, and without the module before an exception's name."""
    text = re.sub(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*\b)", "", first_line(said))
    text = _OPEN.sub("…", text)
    text = re.sub(r"\s*[:,(\[]?\s*…$", "", text).strip()
    if len(text) > MAX_TITLE:
        text = text[:MAX_TITLE].rsplit(" ", 1)[0].rstrip(" ,:;(…")
    return text or "A failure without words"


MAX_TITLE = 90


def first_line(said: str) -> str:
    """The first line of a message that says something: what follows differs, and a rule sees one line."""
    return next((line.strip() for line in said.split("\n") if line.strip()), "")


def rule_file(identity: str, title: str, said: str, family: str, origin: Origin | None = None) -> NewFile:
    """A rule for a message that none names yet; numbers, quoted texts and paths are left open. A bare exception
    (`origin`) is named by what its check asked, else by the function that raised it."""
    match: dict[str, Any] = {"any": [open_pattern(said)]}
    if origin is not None and origin.asked:
        match = {"any": [check_pattern(origin.asked)], "kinds": ["frame-source"], "exception": f"^{origin.type}$"}
    elif origin is not None:
        match["frames"] = origin.frame
    data = {
        "id": identity,
        "title": title,
        "match": match,
        "role": "root",
        "severity": "error",
        "docs": DRAFT_DOCS,
    }
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=200)
    return NewFile("rule", f"{family}/{identity}.yaml", text)


_OPEN = re.compile(
    r"(?P<path>(?<![\w.-])[\w.-]*(?:/[\w.+-]+){2,}|\bhost-\d+\.example\b|(?<![\w./-])[A-Za-z][\w.-]*/[\w.-]*\d[\w.-]*)"
    r"|(?P<quoted>(?<!\w)'[^']*'(?!\w)|\"[^\"]*\")|(?<=\berror: argument )(?P<option>-[\w/-]+)"
    r"|(?P<hex>\b0x[0-9a-fA-F]+)|(?P<number>-?\b\d+(?:\.\d+)*|(?<=_)\d+\b)"
)


def open_pattern(said: str) -> str:
    """An RE2 pattern for a message: its words stay, what varies is left open, and it ends with a fixed text."""
    parts, at = [], 0
    said = _clause(_LISTED.sub("", _PROGRAM.sub("", spoken(said))))[:300]
    for found in _OPEN.finditer(said):
        if found["quoted"] and _NAMING.search(said[: found.start()]) and _NAME.fullmatch(found["quoted"]):
            continue
        parts.append(_escaped(said[at : found.start()]))
        parts.append(_VALUES[str(found.lastgroup)])
        at = found.end()
    parts.append(_escaped(said[at:]))
    while len(parts) > 2 and not re.search(r"[A-Za-z]{3}", parts[-1]):
        parts = parts[:-2]
        parts[-1] = parts[-1].rstrip(" :")
    return "".join(parts)[:MAX_PATTERN]


_VALUES = {"path": r"\S+", "quoted": ".*", "hex": "0x[0-9a-f]+", "number": r"-?[\d.]+", "option": r"\S+"}
_NAMING = re.compile(r"(?:attribute|named|name|argument|from|module|symbol) $")
_NAME = re.compile(r"['\"][A-Za-z_][\w.]*['\"]")
"""Quoted names that are what the message is about: the attribute, the module, the argument that is missing."""
_HEADS = re.compile(
    r"^(?:\[rank\d+\]: ?)?(?:\[[IWEF]\d{3,4} [\d:.]+ [\w.]+:\d+\] )?(?:\[[Rr]ank \d+\] )?"
    r"(?:\[\d+\.\d+\] \[[^\]]*\] +\S+:\d+ +)?"
    r"(?:\w+\{[^{}]*\}: )?(?:[a-z_]\w*(?:::\w+)+: )?(?:src/\S+:\d+: )?"
)
_MODULE = re.compile(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Resources|Unsupported)\b)")
_CLAUSE = re.compile(r"(?<=[\w)\]`'])(?:[.;,](?=\s)|\s[-\u2013]\s)")
_TOLD = re.compile(r"(?<![\w'])[A-Za-z]{3,}")
CLAUSE_WORDS = 5
"""Words that the first clause of a message needs to stand for all of it: releases reword what follows."""


def spoken(said: str) -> str:
    """The first line of a message without what its logger, a launcher or a module path puts before it."""
    return _MODULE.sub("", _HEADS.sub("", first_line(said)))


def _clause(said: str) -> str:
    """A message up to the end of its first clause that says enough by itself, outside of brackets and quotes."""
    for found in _CLAUSE.finditer(said):
        head = said[: found.start()]
        closed = head.count("(") == head.count(")") and head.count("'") % 2 == 0 and head.count("[") == head.count("]")
        if closed and len(_TOLD.findall(head)) > CLAUSE_WORDS:
            return head
    return said


_PROGRAM = re.compile(r"^[\w./ -]{1,40}: (?=error: argument )")
_LISTED = re.compile(
    r"(?<=[\w'\"])[:,;]?\s*(?:\((?:choose|choices|available|supported|expected|known|one of)\b|\[\s*['\"]).*$",
    re.IGNORECASE,
)
"""What an option's parser puts before its message, and lists of values after one: both differ from launch to launch."""


def _escaped(text: str) -> str:
    return re.sub(r"([\\.*+?()\[\]{}|^$])", r"\\\1", text)
