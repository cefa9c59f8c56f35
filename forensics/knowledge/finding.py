"""From one Markdown file to a Finding, with every fault noted. The keys are those of docs/findings.md."""

from __future__ import annotations

from pathlib import Path, PurePath

from forensics.knowledge.condition_list import read_conditions
from forensics.knowledge.fix_steps import read_fix
from forensics.knowledge.front import Page, fences, read_page
from forensics.rulebook.located import Located, Reader
from forensics.rulebook.problem import Problem
from forensics.rulebook.schema import read_id, read_sources
from forensics.rulebook.versions import contradictory, in_range, parse_range
from forensics.rulebook.words import CATEGORIES, STAGE_WORDS
from forensics.schema.finding import Condition, Finding, LogBlock, Shows
from forensics.schema.options import SYMPTOMS
from forensics.schema.span import Span
from forensics.version import VERSION

KEYS = (
    "id",
    "title",
    "category",
    "status",
    "versions",
    "applies",
    "grounds",
    "explains",
    "shows",
    "symptoms",
    "look_alikes",
    "fix",
    "verify",
    "sources",
    "log_evidence",
    "requires",
    "override",
)
REQUIRED = ("id", "title", "category", "status", "grounds", "sources", "log_evidence")
STRENGTHS = ("must", "decisive", "strong", "weak", "against", "excludes")
STATUSES = ("confirmed", "suspected", "refuted")
EVIDENCE = ("real", "rendered", "none")
BLOCK_WORDS = ("match", "near-miss")


def check_finding(path: Path, namespace: str = "", shown: str | None = None) -> tuple[Finding | None, list[Problem]]:
    """Read one finding file; `shown` is the path as messages give it. Faulty findings give None and problems."""
    page = read_page(path, shown)
    if isinstance(page, Problem):
        return None, [page]
    return read_finding(page, namespace)


def read_finding(page: Page, namespace: str = "") -> tuple[Finding | None, list[Problem]]:
    """The finding of a split page, or None where its faults leave nothing usable."""
    reader = page.reader
    if reader.root is None:
        if not reader.problems:
            reader.add("K001", "the front matter is empty", 1, 1, "see docs/findings.md for a full example")
        return None, reader.problems
    fields = reader.keys(reader.root, KEYS, REQUIRED, "a finding")
    found = _finding(page, reader, fields, namespace)
    _check_requires(reader, fields.get("requires"))
    broken = any(p.severity == "error" for p in reader.problems)
    return (None if broken else found), reader.problems


def _check_requires(reader: Reader, at: Located | None) -> None:
    """A finding for another release of this program is left out."""
    wanted = read_versions(reader, at)
    if at is not None and wanted and in_range(VERSION, wanted) is not True:
        reader.fault("K011", f"this finding needs forensics {wanted}; this is {VERSION}", at, "update forensics")


def _finding(page: Page, reader: Reader, fields: dict[str, Located], namespace: str) -> Finding:
    root = reader.root
    assert root is not None
    symptoms = [reader.choice(x, SYMPTOMS, "") for x in reader.sequence(fields.get("symptoms"))]
    return Finding(
        id=read_id(reader, fields.get("id"), PurePath(reader.path).stem, namespace),
        title=reader.text(fields.get("title")),
        category=reader.choice(fields.get("category"), CATEGORIES, ""),
        status=reader.choice(fields.get("status"), STATUSES, "suspected"),
        span=reader.span(root),
        versions=read_versions(reader, fields.get("versions")),
        applies=read_conditions(reader, fields.get("applies"), "applies"),
        grounds=_grounds(reader, fields.get("grounds")),
        explains=reader.texts(fields.get("explains")),
        shows=_shows(reader, fields.get("shows")),
        look_alikes=reader.texts(fields.get("look_alikes")),
        symptoms=tuple(s for s in symptoms if s),
        fix=read_fix(reader, fields.get("fix")),
        verify=reader.texts(fields.get("verify")),
        sources=read_sources(reader, fields.get("sources")),
        log_evidence=reader.choice(fields.get("log_evidence"), EVIDENCE, "none"),
        body=page.body,
        logs=_logs(page),
        override=reader.flag(fields.get("override"), False),
    )


def read_versions(reader: Reader, at: Located | None) -> str:
    """A range text; one that no release can satisfy is a problem."""
    if at is None:
        return ""
    text = reader.text(at) if at.value is not None else ""
    bounds = parse_range(text)
    if bounds is None:
        reader.fault("K010", f"`{text}` is no range of releases", at, 'write it as `">=0.5.7,<0.5.10"`, "" is any')
        return ""
    if contradictory(bounds):
        reader.fault("C205", f"no release lies in `{text}`", at, "swap the bounds")
    return text


def _grounds(reader: Reader, at: Located | None) -> tuple[Condition, ...]:
    if at is None:
        return ()
    fields = reader.keys(at, STRENGTHS, ("must",), "`grounds`")
    return tuple(c for name in STRENGTHS for c in read_conditions(reader, fields.get(name), name))


def _shows(reader: Reader, at: Located | None) -> tuple[Shows, ...]:
    found = []
    for item in reader.sequence(at):
        fields = reader.keys(item, ("signal", "stage"), ("signal", "stage"), "an item of `shows`")
        stage = reader.choice(fields.get("stage"), STAGE_WORDS, "")
        found.append(Shows(reader.text(fields.get("signal")), stage))
    return tuple(found)


def _logs(page: Page) -> tuple[LogBlock, ...]:
    found = []
    for fence in fences(page):
        if fence.info[:1] != ("log",):
            continue
        expect, words = "", {}
        for word in fence.info[1:]:
            name, equals, value = word.partition("=")
            if equals and name in ("line", "symptom", "sample"):
                words[name] = value
            elif not equals and name in BLOCK_WORDS:
                expect = name
            else:
                hint = "known: match, near-miss, line=N, symptom=…, sample=…"
                page.reader.add("L401", f"unknown word `{word}` on a log block", fence.line, 1, hint)
        if expect:
            found.append(_log(page, fence.text, fence.line, expect, words))
    return tuple(found)


def _log(page: Page, text: str, line: int, expect: str, words: dict[str, str]) -> LogBlock:
    named = words.get("line")
    count = text.count("\n")
    if named is not None and not (named.isdigit() and ("sample" in words or 1 <= int(named) <= count)):
        hint = f"the block has {count} lines, counted from 1"
        page.reader.add("L402", f"the block has no line {named}", line, 1, hint)
        named = None
    if words.get("symptom", SYMPTOMS[0]) not in SYMPTOMS:
        page.reader.add("K005", f"`{words['symptom']}` is no symptom", line, 1, "one of: " + ", ".join(SYMPTOMS))
    if not text.strip() and "sample" not in words:
        page.reader.add(
            "L403", "the log block is empty", line, 1, "paste the lines, or name a case: `sample=<case id>`"
        )
    return LogBlock(
        expect=expect,
        text=text,
        span=Span(page.reader.path, line + 1),
        named_line=int(named) if named else None,
        symptom=words.get("symptom"),
        sample=words.get("sample", ""),
    )
