"""Completion in findings, deployments and rules: keys, words, signals, captures, facts, flags, ids of causes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from lsprotocol import types

from forensics.editor.context import Spot
from forensics.knowledge import deployment, finding
from forensics.knowledge.library import Library
from forensics.knowledge.names import CLOSED
from forensics.rulebook import schema as rule_schema
from forensics.rulebook import words
from forensics.schema.options import SYMPTOMS
from forensics.timeline.catalog import Catalog

Item = tuple[str, types.CompletionItemKind, str]
_Kind = types.CompletionItemKind
_FORMS = (
    "and", "or", "not", "before", "absent", "known", "count", "within", "silence", "symptom", "tried", "series",
    "on every rank", "on some rank", "on one rank", "on the failing rank", "stage reached", "stage =", "ended =",
    "first failure has", "and same failure", "and no failure",
)  # fmt: skip
_CHOICES: dict[str, tuple[str, ...]] = {
    "category": words.CATEGORIES,
    "status": finding.STATUSES,
    "log_evidence": finding.EVIDENCE,
    "symptoms": SYMPTOMS,
    "role": words.RULE_ROLES,
    "severity": words.SEVERITIES,
    "scope": words.SCOPES,
    "kinds": words.KINDS,
    "stages": words.STAGE_WORDS,
    "stage": words.STAGE_WORDS,
    "captures": words.CAPTURE_TYPES,
    "kind": ("flag", "env", "package", "host", "other"),
    "op": ("set", "remove", "at-least", "exact", "below"),
}


def complete(spot: Spot, kind: str, lib: Library) -> list[Item]:
    """(label, kind, detail) of everything that may stand at a place, without regard to the word begun there."""
    if not spot.in_front:
        return list(_fences(spot))
    inner = spot.keys[-1] if spot.keys else ""
    if spot.fresh:
        keys = list(_top_keys(kind, spot.keys))
        if keys:
            return keys
    if "applies" in spot.keys or "grounds" in spot.keys or inner == "where":
        return list(_conditions(spot, lib))
    if inner in ("explains", "signal", "warnings"):
        return list(_signals(lib))
    if inner == "look_alikes":
        return [(f.id, _Kind.Reference, f.title) for f in lib.findings.values()]
    if inner == "name":
        return [*_flags(lib.catalog), *_variables(lib.catalog)]
    return [(word, _Kind.EnumMember, inner) for word in _CHOICES.get(inner, ())]


def _top_keys(kind: str, around: tuple[str, ...]) -> Iterator[Item]:
    if not around:
        known = {"rule": rule_schema.KEYS, "finding": finding.KEYS, "deployment": deployment.KEYS}.get(kind, ())
    elif around[-1] == "grounds":
        known = finding.STRENGTHS
    elif around[-1] == "match" and kind == "rule":
        known = rule_schema.MATCH_KEYS
    else:
        known = ()
    yield from ((key, _Kind.Property, f"key of a {kind}") for key in known)


def _conditions(spot: Spot, lib: Library) -> Iterator[Item]:
    """Signals, facts and forms; after `signal.` its captures."""
    head, dot, _ = spot.word.rpartition(".")
    if spot.word.startswith("--"):
        yield from _flags(lib.catalog)
        return
    if dot and head in lib.rules:
        yield from ((f"{head}.{name}", _Kind.Field, f"capture: {kind}") for name, kind in lib.rules[head].captures)
        return
    group = spot.word.partition(".")[0] if dot else ""
    if group in words.FACT_GROUPS:
        yield from (item for item in _facts(lib.catalog) if item[0].startswith(f"{group}."))
        return
    yield from _signals(lib)
    yield from _facts(lib.catalog)
    yield from ((form, _Kind.Keyword, "condition") for form in _FORMS)


def _signals(lib: Library) -> Iterable[Item]:
    return ((rule.id, _Kind.Event, rule.title) for rule in lib.rules.values())


@cache
def _facts(book: Catalog) -> tuple[Item, ...]:
    found: list[Item] = [(f"args.{dest}", _Kind.Variable, flag) for dest, flag in sorted(book.by_dest.items())]
    found += [(f"env.{name}", _Kind.Variable, "environment variable") for name in sorted(book.env)]
    found += [(f"{group}.{name}", _Kind.Variable, "fact") for group, names in CLOSED.items() for name in sorted(names)]
    return tuple(found)


@cache
def _flags(book: Catalog) -> tuple[Item, ...]:
    return tuple((name, _Kind.Constant, _life(book, name)) for name in sorted(book.flags))


@cache
def _variables(book: Catalog) -> tuple[Item, ...]:
    return tuple((name, _Kind.Constant, "environment variable") for name in sorted(book.env))


def _life(book: Catalog, name: str) -> str:
    entry = book.flags[name]
    return f"{entry['first']} to {entry['last']}" if entry.get("last") else f"since {entry['first']}"


def _fences(spot: Spot) -> Iterator[Item]:
    """Info words of a fenced log block."""
    if spot.before.startswith("```"):
        yield from ((text, _Kind.Snippet, "log block") for text in ("log match line=1", "log near-miss"))
