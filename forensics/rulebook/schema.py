"""From one located YAML value to a Rule, with every fault noted. The keys are those of docs/rules.md."""

from __future__ import annotations

from pathlib import PurePath

from forensics.errors import ConditionError
from forensics.grammar.conditions import parse_where
from forensics.rulebook.derived import DERIVED
from forensics.rulebook.located import Located, Reader
from forensics.rulebook.patterns import BadPattern, compiled
from forensics.rulebook.problem import Edit
from forensics.rulebook.versions import compare, version_key
from forensics.rulebook.words import (
    CAPTURE_TYPES,
    FAMILIES,
    ID,
    KINDS,
    RULE_ROLES,
    SCOPES,
    SEVERITIES,
    SOURCE,
    STAGE_WORDS,
)
from forensics.schema.signal import Rule

KEYS = (
    "id",
    "title",
    "match",
    "captures",
    "where",
    "derive",
    "role",
    "severity",
    "stages",
    "scope",
    "min_count",
    "min_same",
    "differs",
    "apart",
    "lifetime",
    "mechanism",
    "docs",
    "sources",
)
SOURCE_KEYS = ("of", "in")
MATCH_KEYS = ("any", "kinds", "not", "frames", "innermost", "exception")
REQUIRED = ("id", "title", "match", "role")


def read_rule(reader: Reader, family: str, namespace: str = "") -> Rule | None:
    """The rule that the reader's file holds, or None where its faults leave nothing usable."""
    root = reader.root
    if root is None:
        if not reader.problems:
            reader.add("K001", "the file is empty", 1, 1, "see docs/rules.md for a full example")
        return None
    before = len(reader.problems)
    fields = reader.keys(root, KEYS, REQUIRED, "a rule")
    found = _rule(reader, root, fields, family, namespace)
    broken = any(p.severity == "error" for p in reader.problems[before:])
    return None if broken else found


def _rule(reader: Reader, root: Located, fields: dict[str, Located], family: str, namespace: str) -> Rule | None:
    name = read_id(reader, fields.get("id"), PurePath(reader.path).stem, namespace)
    match = fields.get("match")
    parts = reader.keys(match, MATCH_KEYS, ("any",), "`match`") if match is not None else {}
    patterns = read_patterns(reader, parts.get("any"))
    if match is not None and "any" in parts and not parts["any"].items():
        reader.fault("K004", "`any` holds no pattern", parts["any"], "give at least one text that the program prints")
    first, last = read_lifetime(reader, fields.get("lifetime"))
    whole = "any" in parts and len(patterns) == len(parts["any"].items())
    captures = _captures(reader, fields.get("captures"), patterns) if whole else ()
    sources, wordings = _sources(reader, fields.get("sources"), patterns)
    if family not in FAMILIES:
        near = "known families: " + ", ".join(FAMILIES)
        reader.fault("K005", f"the folder `{family}` is no rule family", root, near)
    return Rule(
        id=name,
        family=family,
        title=reader.text(fields.get("title")),
        patterns=patterns,
        role=reader.choice(fields.get("role"), RULE_ROLES, "info"),
        span=reader.span(root),
        kinds=tuple(reader.choice(x, KINDS, "") for x in reader.sequence(parts.get("kinds"))),
        absent=read_patterns(reader, parts.get("not")),
        frames=_pattern(reader, parts.get("frames")),
        exception=_pattern(reader, parts.get("exception")),
        innermost=_pattern(reader, parts.get("innermost")),
        captures=captures,
        where=_where(reader, fields.get("where"), captures) if whole else "",
        severity=reader.choice(fields.get("severity"), SEVERITIES, "error"),
        stages=tuple(reader.choice(x, STAGE_WORDS, "") for x in reader.sequence(fields.get("stages"))),
        scope=reader.choice(fields.get("scope"), SCOPES, "rank"),
        min_count=reader.whole(fields.get("min_count"), 1, 1),
        first=first,
        last=last,
        mechanism=reader.text(fields.get("mechanism")),
        docs=reader.text(fields.get("docs")),
        sources=sources,
        wordings=wordings,
        min_same=reader.whole(fields.get("min_same"), 1, 1),
        differs=reader.choice(fields.get("differs"), tuple(name for name, _ in captures), ""),
        apart=reader.whole(fields.get("apart"), 0, 1),
        derive=reader.choice(fields.get("derive"), tuple(DERIVED), ""),
    )


def read_id(reader: Reader, at: Located | None, stem: str, namespace: str = "") -> str:
    """The id, which must be the file's name (after the namespace, where the file belongs to one)."""
    if at is None:
        return ""
    text = reader.text(at)
    wanted = f"{namespace}/{stem}" if namespace else stem
    if not ID.fullmatch(text):
        reader.fault("K007", f"`{text}` is no id", at, "lower-case words joined by hyphens, e.g. `kv-pool-leak`")
    elif text not in (wanted, stem) and (namespace or text.rpartition("/")[2] != stem):
        line, column = at.at(0)
        edit = Edit(line, column, text, wanted)
        message = f"the id `{text}` differs from the file's name `{stem}`"
        reader.fault("K007", message, at, f"write `id: {wanted}`", edit)
    return wanted if text == stem else text


def read_patterns(reader: Reader, at: Located | None) -> tuple[str, ...]:
    """The RE2 patterns of a list."""
    return tuple(text for item in reader.sequence(at) if (text := _pattern(reader, item)))


def _pattern(reader: Reader, at: Located | None) -> str:
    if at is None:
        return ""
    text = reader.text(at)
    try:
        found = compiled(text).search("")
    except BadPattern as error:
        line, column = at.at(error.offset)
        reader.add("R101", str(error), line, column, error.hint)
        return ""
    if found is not None:
        reader.fault(
            "R102", "the pattern matches the empty text, so every line", at, "name the text that must be there"
        )
        return ""
    return text


def _captures(reader: Reader, at: Located | None, patterns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    groups = {name for p in patterns for name in compiled(p).groupindex}
    if at is None:
        return tuple((name, "str") for name in sorted(groups))
    if not isinstance(at.value, dict):
        reader.fault("K002", "`captures` must be a mapping of group names to types", at, "write `{tokens: int}`")
        return ()
    for name, kind in at.value.items():
        if name not in groups:
            line, column = at.key_at[name]
            hint = f"name a group `(?P<{name}>…)` in a pattern, or take the capture out"
            reader.add("R104", f"no pattern has a group named `{name}`", line, column, hint)
        reader.choice(kind, CAPTURE_TYPES, "str")
    typed = {name: reader.text(kind) for name, kind in at.value.items() if name in groups}
    return tuple((name, typed.get(name, "str")) for name in sorted(groups))


def _where(reader: Reader, at: Located | None, captures: tuple[tuple[str, str], ...]) -> str:
    if at is None:
        return ""
    text = reader.text(at)
    try:
        parse_where(text, {name for name, _ in captures})
    except ConditionError as error:
        line, column = at.at((error.span.column - 1) if error.span else 0)
        reader.add("R105", f"`where` cannot be used: {error.message}", line, column, error.hint)
        return ""
    return text


def read_lifetime(reader: Reader, at: Located | None) -> tuple[str | None, str | None]:
    """First and last release of a lifetime, both included."""
    if at is None:
        return None, None
    fields = reader.keys(at, ("first", "last"), (), "`lifetime`")
    first, last = (read_version(reader, fields.get(x)) for x in ("first", "last"))
    if first and last and compare(first, last) == 1:
        reader.fault("R110", f"the lifetime ends ({last}) before it begins ({first})", at, "swap them")
    return first, last


def read_version(reader: Reader, at: Located | None) -> str | None:
    """A release name; YAML's `null` is open."""
    if at is None or at.value is None:
        return None
    text = reader.text(at)
    if version_key(text) is None:
        reader.fault("K010", f"`{text}` is no release name", at, 'write it as `"0.5.10"`, in quotes')
        return None
    return text


def _sources(
    reader: Reader, at: Located | None, patterns: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Sources of a rule, and those stated for some wordings only, as pairs (pattern, source)."""
    sources: list[str] = []
    pairs: list[tuple[str, str]] = []
    for item in reader.sequence(at):
        fields = reader.keys(item, SOURCE_KEYS, SOURCE_KEYS, "a source of one wording") if item.fields() else {}
        found = _source(reader, fields.get("in", item) if fields else item)
        sources.append(found)
        begin = reader.text(fields.get("of"))
        meant = [p for p in patterns if begin and p.startswith(begin)]
        pairs += [(p, found) for p in meant]
        if fields.get("of") is not None and not meant:
            hint = "write the beginning of a pattern of this rule, as it stands under `any`"
            reader.fault("R113", f"no pattern begins with `{begin}`", fields["of"], hint)
    return tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(pairs))


def read_sources(reader: Reader, at: Located | None) -> tuple[str, ...]:
    """Source references: `owner/repo#123`, `owner/repo@commit`, an address, or `run:`, `paper:`, `docs:`, `book:`."""
    return tuple(_source(reader, item) for item in reader.sequence(at))


def _source(reader: Reader, at: Located) -> str:
    text = reader.text(at)
    if not SOURCE.fullmatch(text):
        reader.fault("K009", f"`{text}` is no source", at, "write `owner/repo#123`, a web address or `run: name`")
    return text
