"""Lint of rule files: what docs/rules.md asks of a pattern beyond being RE2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from forensics.rulebook.literals import required
from forensics.rulebook.located import Located, Reader
from forensics.schema.signal import Rule

DRAFT_DOCS = "What the line means, in one sentence."
SHORTEST = 3
"""A literal shorter than this prefilters nothing."""
_MODEL = (
    r"\b(?:llama|qwen|deepseek|kimi|glm-?\d|mi[sx]tral|gemma|gpt-?oss|phi-?\d|minimax|internvl|internlm|nemotron|"
    r"falcon|olmo|baichuan|hunyuan|ernie|mimo|longcat|step-?\d|command-r|dbrx|grok|yi-\d)"
)
_PATH = r"[\w.-]+[.\x01](?:py|pyx|cpp|cc|cu|cuh|hpp|h|so)\b|(?:^|[\s'\"=(])/[\w.-]+/|[\w-]+/[\w-]+/[\w-]+"
_NUMBER = r"(?:^|[^\w.])(?:[2-9]|\d\d+|\d+\.\d+(?:\.\d+)*)(?:$|[^\w.])"
"""0, 1 and -1 are words of the program (`!= 0`), not accidents of one log."""
_QUANTIFIER = re.compile(r"(?<!\\)\{\d+(?:,\d*)?\}")
_CLASS = re.compile(r"(?<!\\)\[(?:\\.|[^\]\\])*\]")
_GROUP = re.compile(r"\(\?(?:P?<\w+>|[a-zA-Z-]*:|[a-zA-Z-]*\))")
_ESCAPE = re.compile(r"\\([dDwWsSbBAzQE])")
_ANY = re.compile(r"\\?[.()|*+?^$]")
_VOCABULARY = re.compile(r"\b(?:sm_?\d+|fp\d+|int\d+|bf\d+|utf-?8|e\dm\d|cuda\d*|h\d{3}|b\d{3})\b", re.IGNORECASE)


def lint_patterns(reader: Reader, rule: Rule) -> None:
    """Note patterns without a literal, and those that name a path, a number or a model without saying why."""
    for at in pattern_places(reader):
        text = reader.text(at)
        needs = required(text)
        if needs is None or min(map(len, needs)) < SHORTEST:
            hint = f"name a text of at least {SHORTEST} letters that the program always prints"
            reader.fault("R108", "the pattern has no fixed text to look for, so every line is searched", at, hint)
        if not rule.mechanism:
            _accidents(reader, at, text)


HOT = frozenset({"decode-batch", "prefill-batch"})
"""Lines that are kept as numbers: no rule sees their text."""


def lint_kinds(reader: Reader) -> None:
    """Note kinds whose lines never reach a rule."""
    match = reader.root.fields().get("match") if reader.root is not None else None
    kinds = match.fields().get("kinds") if match is not None else None
    for at in kinds.items() if kinds is not None else ():
        if at.value in HOT:
            hint = "ask for them in a finding: `series throughput falls`, `series accept_len <= 1.05`"
            reader.fault("R109", f"lines of kind `{at.value}` are kept as series, no rule sees them", at, hint)


def pattern_places(reader: Reader) -> Iterator[Located]:
    """The located patterns of `match.any`."""
    match = reader.root.fields().get("match") if reader.root is not None else None
    anywhere = match.fields().get("any") if match is not None else None
    yield from anywhere.items() if anywhere is not None else ()


def _accidents(reader: Reader, at: Located, text: str) -> None:
    fixed = fixed_text(text)
    for word, pattern, remedy in (
        ("model name", _MODEL, r"write `\S+`"),
        ("path", _PATH, "match the program's message and put the file under `frames`"),
        ("number", _NUMBER, r"write `\d+`"),
    ):
        found = _compiled(word, pattern).search(fixed)
        if found is not None:
            shown = found.group().strip().replace("\x01", ".")
            line, column = at.at(max(0, text.find(found.group().strip().split("\x01")[0])))
            hint = f"{remedy}, or say under `mechanism:` why it must be so"
            reader.add("R103", f"the pattern holds a {word}: `{shown}`", line, column, hint)
            return


@cache
def _compiled(word: str, pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if word == "model name" else 0)


def fixed_text(pattern: str) -> str:
    """What a pattern says literally, with blanks where it leaves things open."""
    text = _GROUP.sub(" ", pattern)
    text = _CLASS.sub("\x01", text)
    text = _QUANTIFIER.sub("", text)
    text = _ESCAPE.sub("\x01", text)
    text = _ANY.sub(lambda m: m.group()[1:] if m.group().startswith("\\") else "\x01", text)
    return _VOCABULARY.sub("\x01", text)


def lint_sources(reader: Reader, rule: Rule) -> None:
    """A root needs a word on what it is; `where` needs captures."""
    root = reader.root
    if root is not None and rule.docs == DRAFT_DOCS:
        reader.fault("R112", "`docs` is still the draft's text", root.fields()["docs"], "say what the line means")
    if root is not None and not rule.docs and rule.role in ("root", "cascade"):
        reader.add(
            "R112",
            "the rule has no `docs`",
            root.line,
            root.column,
            "say in one sentence what the line means",
            severity="warning",
        )
    if root is not None and rule.where and not rule.captures:
        reader.fault("R104", "`where` has no captures to compare", root.fields()["where"], "add `(?P<name>…)`")
