"""What a draft says beside its own wording: other checks of the same kind, other wordings of the same function, and the
same names elsewhere. A log shows one of a cause's wordings only; these hold for the next one, and no more than as a
pointer: the verdict stays `possible` until the author says which of them is the cause's own sign.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from forensics.frozen import frozen
from forensics.knowledge.draft import NewFile
from forensics.knowledge.draft_check import sees
from forensics.knowledge.draft_kinds import Kind, kind_of
from forensics.schema.report import LaunchInfo

_FRAME = re.compile(r'File "(?:[^"\n]*/)?(?P<file>[\w.-]+\.py)", line \d+, in (?P<function>\w+)')
_SOURCE = re.compile(r"^.{0,80}?\s(?P<source>assert\b.*|if\b.*:|raise\b.*)$")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception)\b")
_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+){2,}")
_LEAST_IDENTIFIER = 12
_EVERYWHERE = re.compile(
    r"_?(?:forward\w*|load_model\w*|load_weights\w*|run_\w+|get_model\w*|event_loop\w*|\w*wrapper\w*|from_pretrained"
    r"|check_server_args|model_specific_adjustment|init_memory_pool|init_attention_backend|capture\w*|_call_impl\w*"
    r"|process_batch\w*|get_next_batch\w*|launch_\w+|import_module|decorate_context|parse_args)|__\w+__"
)
"""Functions that many checks stand in, or that everything passes through."""


@frozen
class Failed:
    """The failure of a draft: the lines that state it, what its check asked, and its innermost frame."""

    lines: tuple[str, ...]
    asked: str = ""
    file: str = ""
    function: str = ""


def failed(said: str, text: str, lines: Sequence[str], at: int) -> Failed:
    """What stands above line `at` (from 0) of these lines, which states the failure; `text` is the whole message."""
    asked = file = function = ""
    if _EXCEPTION.match(said):
        for line in reversed(lines[:at]):
            place, source = _FRAME.search(line), _SOURCE.search(line)
            if place is not None:
                file, function = place["file"], place["function"]
                break
            if source is not None and not asked:
                asked = source["source"]
    told = [said, *(t for t in text.split("\n")[1:20] if t.strip()), *([asked] if asked else [])]
    return Failed(tuple(dict.fromkeys(told)), asked, file, function)


@frozen
class Alike:
    """Further rules of a draft and the condition that stands for each in `must`."""

    files: tuple[NewFile, ...] = ()
    conditions: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def alike(identity: str, family: str, found: Failed, launch: LaunchInfo, match: str, namespace: str = "") -> Alike:
    """Rules for what the next log of the cause may say instead; each sees the draft's own log."""
    wanted = [_kind(identity, kind, launch) for kind in [kind_of(found.lines, _frame(found))] if kind is not None]
    wanted += [*_same_function(identity, found), *_same_names(identity, found), *_same_part(identity, found)]
    files, conditions, names = [], [], []
    for name, data, condition in wanted:
        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=200)
        file = NewFile("rule", f"{family}/{name}.yaml", text, aside=True)
        if sees(file, match):
            full = f"{namespace}/{name}" if namespace else name
            files.append(file)
            names.append(full)
            conditions.append(f"({full} and {condition})" if condition else full)
    return Alike(tuple(files), tuple(conditions), tuple(names))


_Wanted = tuple[str, dict[str, Any], str]
"""A rule's id, its file's data, and the setting that its condition asks for besides."""


def _kind(identity: str, kind: Kind, launch: LaunchInfo) -> _Wanted:
    match: dict[str, Any] = {"any": list(kind.patterns)}
    if kind.kinds:
        match["kinds"] = list(kind.kinds)
    if kind.innermost:
        match["innermost"] = kind.innermost
    name = f"{identity}-{kind.name}"
    docs = "Other checks of this kind, in other words; keep those that this cause meets."
    return name, _rule(name, kind.title, match, docs), next((f for f in kind.facts if _has(launch, f)), "")


def _same_function(identity: str, found: Failed) -> list[_Wanted]:
    """Whatever the same function raises; a function that many checks stand in tells nothing."""
    plain = found.function.strip("_")
    if "_" not in plain or _EVERYWHERE.fullmatch(found.function):
        return []
    match = {
        "any": [r"^(?:\w+\.)*\w+(?:Error|Exception)\b"],
        "kinds": ["exception"],
        "innermost": rf" in _?{re.escape(plain)}$",
    }
    name = f"{identity}-place"
    docs = "The same function in another release may word it otherwise."
    return [(name, _rule(name, f"An exception of {plain}", match, docs), "")]


def _same_names(identity: str, found: Failed) -> list[_Wanted]:
    """A long name in the message, as another check or release may spell its ends."""
    names = [n for line in found.lines[:1] for n in _IDENTIFIER.findall(line)] + _IDENTIFIER.findall(found.asked)
    long = sorted({c for n in names for c in [_core(n)] if len(c) >= _LEAST_IDENTIFIER and c.count("_") >= 2})
    if not long:
        return []
    match = {"any": [f"(?i){re.escape(n)}" for n in long[:3]], "kinds": ["exception", "frame-source", "error"]}
    name = f"{identity}-names"
    docs = "The same names in another check."
    return [(name, _rule(name, "A failing line names " + " or ".join(long[:3]), match, docs), "")]


_PARTS = (
    (r"undefined symbol: (?P<part>[a-z]{3,})\w*", r"undefined symbol: {}", "A symbol of {} is missing"),
    (
        r"(?:module|from|No module named) '(?P<part>\w+)[\w.]*'",
        r"(?:module|from|module named) '{}\b",
        "A name of {} is missing",
    ),
    (
        r"^\w+: (?P<part>(?!CUDA|HIP|NCCL)[A-Z]\w+ error): .*\btime(?:d )?-?out",
        r"{}: .*\btime(?:d )?-?out",
        "A {} by a wait that ran out",
    ),
)
"""What a message says of a part, whichever of its functions it names: the wording, the rule's pattern, its title."""


def _same_part(identity: str, found: Failed) -> list[_Wanted]:
    """The same part, named by another of its functions or by another of its waits."""
    for wording, pattern, title in _PARTS:
        told = re.search(wording, found.lines[0])
        if told is not None:
            part = told["part"]
            match = {"any": [pattern.format(re.escape(part))], "kinds": ["exception", "error", "chain"]}
            name, docs = f"{identity}-part", "Another function of the same part."
            return [(name, _rule(name, title.format(part), match, docs), "")]
    return []


def _core(name: str) -> str:
    """A name without the program's prefix and without the ends that variables, flags and settings differ in."""
    return re.sub(r"^(?:sglang_|sgl_|self_)|_per_rank$|_size$", "", name.lower())


def _rule(name: str, title: str, match: dict[str, Any], docs: str) -> dict[str, Any]:
    return {"id": name, "title": title, "match": match, "role": "info", "severity": "info", "docs": docs}


_COMPARED = re.compile(r"(?P<fact>[\w.]+)(?: > (?P<than>\d+))?")


def _has(launch: LaunchInfo, condition: str) -> bool:
    asked = _COMPARED.fullmatch(condition)
    if asked is None or asked["fact"] not in launch.facts:
        return False
    value = launch.facts[asked["fact"]].value
    if asked["than"] is None:
        return value is True
    return isinstance(value, int) and not isinstance(value, bool) and value > int(asked["than"])


def _frame(found: Failed) -> str:
    return f"{found.file}:1 in {found.function}" if found.function else ""
