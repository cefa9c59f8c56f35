"""Search over the knowledge base: words through SQLite's full text index, pasted messages by their shape."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from rapidfuzz import fuzz
from sqlite_utils import Database

from forensics.frozen import frozen
from forensics.knowledge.library import Library
from forensics.rulebook.lint import fixed_text
from forensics.rulebook.patterns import compiled
from forensics.rulebook.program import normal
from forensics.schema.finding import Finding
from forensics.schema.signal import Rule

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]+|\d[\w.]*")
_HEADER = re.compile(r"^\[\d{4}-\d\d-\d\d[^\]]*\]\s*")
_STOP = frozenset(
    "a an and are as at be but by can for from has have in is it its not of on or that the to was with".split()  # noqa: SIM905
)
"""Words that say nothing about a fault."""
SURE = 50.0
"""Below this, a hit has some words of the query and no more: nothing states the message."""
LEAST_LIKENESS = 78.0
"""Below this, two masked messages have only common words in common."""
SHORTEST_MESSAGE = 12
MOST = 0.7
"""From this share of a line on, a pattern names the whole message."""


@frozen
class Hit:
    """`kind` is finding, rule or deployment. `score` orders hits (more is better), `why` tells what fitted."""

    kind: str
    id: str
    title: str
    score: float
    why: str


def search(query: str, lib: Library, limit: int = 10) -> list[Hit]:
    """The best hits: rules whose message the query is, the findings that need them, then full text."""
    hits = {(h.kind, h.id): h for h in _by_text(query, lib, limit * 3)}
    for hit in _by_message(query, lib):
        old = hits.get((hit.kind, hit.id))
        if old is None or hit.score > old.score:
            hits[hit.kind, hit.id] = hit
    return sorted(hits.values(), key=lambda h: (-h.score, h.kind, h.id))[:limit]


def _by_text(query: str, lib: Library, limit: int) -> list[Hit]:
    words = list(dict.fromkeys(w.lower() for w in _WORD.findall(query) if len(w) > 1))[:40]
    words = [w for w in words if w not in _STOP] or words
    if not words:
        return []
    database = Database(memory=True)
    table = database.table("entries")
    table.insert_all(_entries(lib), columns={"kind": str, "id": str, "title": str, "words": str, "body": str})
    table.enable_fts(["id", "title", "words", "body"], tokenize="porter")
    # Every word is quoted: nothing of the query is read as FTS syntax.
    wanted = " OR ".join(f'"{w}"' for w in words)
    try:
        rows = list(database.query(_SQL, {"query": wanted, "limit": limit}))
    except sqlite3.OperationalError:
        return []
    best = max((-row["rank"] for row in rows), default=1.0) or 1.0
    found = []
    for row in rows:
        share = _share(words, f"{row['id']} {row['title']} {row['words']} {row['body']}".lower())
        why = f"text: {' '.join(row['part'].split())}"
        found.append(Hit(row["kind"], row["id"], row["title"], 60.0 * share * -row["rank"] / best, why))
    return found


def _share(words: list[str], text: str) -> float:
    """The share of the words that a text holds, whatever their endings; a number counts nothing."""
    telling = [w for w in words if not w[0].isdigit()] or words
    return sum(w[: max(4, len(w) - 3)] in text for w in telling) / len(telling)


_SQL = """
select entries.kind, entries.id, entries.title, entries.words, entries.body,
       bm25(entries_fts, 6.0, 5.0, 3.0, 1.0) as rank,
       snippet(entries_fts, -1, '', '', ' … ', 8) as part
from entries_fts join entries on entries.rowid = entries_fts.rowid
where entries_fts match :query order by rank limit :limit
"""


def _entries(lib: Library) -> Iterable[dict[str, str]]:
    for finding in lib.knowledge.findings:
        terms = " ".join(c.text for c in (*finding.applies, *finding.grounds))
        words = f"{finding.category} {' '.join(finding.sources)} {terms}"
        yield {"kind": "finding", "id": finding.id, "title": finding.title, "words": words, "body": finding.body}
    for rule in lib.rules.values():
        words = f"{rule.family} {rule.role} {' '.join(fixed_text(p) for p in rule.patterns)}".replace(chr(1), " ")
        yield {"kind": "rule", "id": rule.id, "title": rule.title, "words": words, "body": rule.docs}
    for known in lib.knowledge.deployments:
        words = f"{known.gpu} {known.quantization} {known.architecture} {known.model}"
        yield {"kind": "deployment", "id": known.id, "title": known.title, "words": words, "body": known.body}


def _by_message(query: str, lib: Library) -> list[Hit]:
    """Rules that a pasted line satisfies, findings that ask for them, and findings whose own logs hold such a line."""
    lines = [_HEADER.sub("", x).strip() for x in query.split("\n")][:50]
    lines = [x for x in lines if len(x) >= SHORTEST_MESSAGE]
    hits: list[Hit] = []
    for line in lines:
        for rule, share in satisfied(line, lib):
            wants = needs(rule, line)
            score = _message_score(share, standalone(rule, line))
            asked = f"this line fits; the rule also asks for {'; '.join(wants)}"
            why = asked if wants else "this line satisfies the rule"
            hits.append(Hit("rule", rule.id, rule.title, score, why))
            hits += [Hit("finding", f.id, f.title, score - 1.0, f"asks for {rule.id}") for f in asking(rule.id, lib)]
    masked = [normal(x) for x in lines]
    for finding in lib.knowledge.findings:
        score, text = _likeness(masked, finding)
        if score >= LEAST_LIKENESS:
            hits.append(Hit("finding", finding.id, finding.title, score, f"its log holds: {text[:80]}"))
    return hits


def _message_score(share: float, alone: bool) -> float:
    """A rule that needs surroundings counts little where it names a small part of the line: words like "does not
    support" stand in many messages."""
    if alone:
        return 90.0 + 10.0 * share
    return 15.0 + 50.0 * share if share >= MOST else 50.0 * share * share


def satisfied(line: str, lib: Library) -> list[tuple[Rule, float]]:
    """Rules whose patterns the message satisfies, with the share of the message that they name. An exception that the
    line names has to be the rule's; what else a rule asks for, a line alone cannot show (`needs`)."""
    found = []
    for index in lib.program.candidates(line):
        ready = lib.program.ready[index]
        hits = [m for p in ready.patterns if (m := p.search(line)) is not None]
        if hits and _may_raise(ready.rule, line) and not any(p.search(line) for p in ready.absent):
            found.append((ready.rule, max(m.end() - m.start() for m in hits) / len(line)))
    return found


def standalone(rule: Rule, line: str) -> bool:
    """Whether a rule needs no more than its line: the others are only hints without their traceback."""
    return not (rule.frames or rule.innermost or rule.where or (rule.exception and _RAISED.match(line) is None))


def needs(rule: Rule, line: str) -> list[str]:
    """What a rule asks for beside its message, in words."""
    raised = rule.exception and _RAISED.match(line) is None
    parts = [
        ("a line of kind ", " or ".join(rule.kinds)),
        ("the exception ", rule.exception if raised else ""),
        ("a frame ", rule.frames),
        ("the innermost frame ", rule.innermost),
        ("the stage ", " or ".join(rule.stages)),
        ("", rule.where),
    ]
    return [f"{what}{value}" for what, value in parts if value]


_RAISED = re.compile(r"(?:[A-Za-z_]\w*\.){0,12}([A-Z]\w*)(?::|$)")


def _may_raise(rule: Rule, line: str) -> bool:
    """Whether the exception that a line names, if it names one, is one that the rule is about."""
    named = _RAISED.match(line)
    if not rule.exception or named is None:
        return True
    whole = line[: named.end()].rstrip(":")
    return compiled(rule.exception).search(whole) is not None


def asking(rule: str, lib: Library) -> list[Finding]:
    """Findings that name a signal in `must`, `decisive` or `strong`."""
    word = re.compile(rf"(?<![\w/-]){re.escape(rule)}(?![\w-])")
    strengths = ("must", "decisive", "strong")
    return [
        f for f in lib.knowledge.findings if any(c.strength in strengths and word.search(c.text) for c in f.grounds)
    ]


def _likeness(masked: list[str], finding: Finding) -> tuple[float, str]:
    """The best likeness of a pasted line and a line of the finding's own logs, numbers left aside."""
    best, text = 0.0, ""
    for block in finding.logs:
        if block.expect != "match":
            continue
        for line in block.text.split("\n"):
            shape = normal(_HEADER.sub("", line).strip())
            if len(shape) < SHORTEST_MESSAGE:
                continue
            for wanted in masked:
                score = fuzz.ratio(wanted, shape, score_cutoff=max(best, LEAST_LIKENESS))
                if score > best:
                    best, text = score, line.strip()
    return best * 0.95, text
