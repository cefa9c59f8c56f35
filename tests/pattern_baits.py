"""Every backtracking pattern of the program, and inputs made from each pattern to make it backtrack.

A bait follows the pattern up to a repetition, repeats what that takes as often as the length allows, and then ends in a
character that nothing expects; prefixes of matching texts, again and again, tempt patterns that are searched.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import re._parser as sre
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import forensics
from forensics.late import Late

LIMIT = 1 << 16
"""Characters of one line that the program reads at most (engine/table.py)."""
END = "\x01"
SOURCES = sorted(Path(forensics.__file__).parent.rglob("*.py"))
UNBOUNDED = 200
"""Repetitions from this count on are attacked like endless ones."""


def modules() -> Iterator[Any]:
    for info in pkgutil.walk_packages(forensics.__path__, "forensics."):
        if not info.name.endswith(("__main__", "replay.agent")):
            try:
                yield importlib.import_module(info.name)
            except ImportError:
                continue  # an extra that is not installed


def _inside(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Late):
        yield re.compile(value.pattern, value.flags)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _inside(item, depth + 1)
    elif depth < 4 and isinstance(value, dict):
        for item in value.values():
            yield from _inside(item, depth + 1)
    elif depth < 4 and type(value).__module__.startswith("forensics") and hasattr(type(value), "__slots__"):
        for name in type(value).__slots__:
            yield from _inside(getattr(value, name, None), depth + 1)


def patterns() -> list[tuple[str, re.Pattern[Any]]]:
    """All patterns that modules hold, compiled or to be compiled, and those of the line and header grammars; each once, with its place."""
    found: dict[tuple[Any, int], tuple[str, re.Pattern[Any]]] = {}
    for module in modules():
        for name, value in vars(module).items():
            for pattern in _inside(value):
                found.setdefault((pattern.pattern, pattern.flags), (f"{module.__name__}.{name}", pattern))
    return sorted(found.values(), key=lambda item: item[0])


def terminals() -> list[tuple[str, re.Pattern[str]]]:
    """The terminals of every Lark grammar, each as its lexer compiles it."""
    from forensics.grammar import command, conditions, server_args
    from forensics.grammar.header import headers
    from forensics.grammar.line import line_grammar

    grammars = {
        "header": headers().lark,
        "line": line_grammar().lark,
        "command": command._parser(),
        "server_args": server_args._parser(),
        "conditions": conditions._parser(),
    }
    found = []
    for name, lark in grammars.items():
        flags = re.ASCII if name in ("header", "line") else 0
        for terminal in lark.terminals:
            found.append((f"{name}.{terminal.name}", re.compile(terminal.pattern.to_regexp(), flags)))
    return found


def samples(pattern: re.Pattern[Any], seed: int = 0, count: int = 3) -> list[str]:
    """Texts that the pattern (mostly) matches."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = sre.parse(text, pattern.flags & ~re.UNICODE)
    rng = random.Random(seed)
    return [_sample(tree, rng) for _ in range(count)]


def baits(pattern: re.Pattern[Any], length: int = LIMIT) -> Iterator[str]:
    """Texts of at most `length` characters on which a bad pattern takes long."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = sre.parse(text, pattern.flags & ~re.UNICODE)
    rng = random.Random(1)
    seen: set[str] = set()
    for before, body in _repeats(tree, rng, ""):
        for _ in range(2):
            unit = _sample(body, rng) or "a"
            yield from _once(seen, (before + unit * (length // len(unit)))[: length - 1] + END)
            yield from _once(seen, (unit * (length // len(unit)))[: length - 1] + END)
    for whole in samples(pattern):
        for part in {whole, whole[: len(whole) // 2], whole[:-1], whole[: 2 * len(whole) // 3]}:
            if part:
                yield from _once(seen, (part * (length // len(part)))[: length - 1] + END)
    for char in "a0 .[(\"'/=:-,\t|#A_<":
        yield from _once(seen, char * (length - 1) + END)


def _once(seen: set[str], bait: str) -> Iterator[str]:
    if bait not in seen:
        seen.add(bait)
        yield bait


def _repeats(tree: Any, rng: random.Random, before: str) -> Iterator[tuple[str, Any]]:
    """(text before it, body) of each repetition without an end, outermost first."""
    for op, argument in tree:
        name = str(op)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = argument
            if int(high) >= UNBOUNDED:
                yield before, body
            yield from _repeats(body, rng, before)
            before += _sample(body, rng) * max(int(low), 1)
        elif name == "SUBPATTERN":
            yield from _repeats(argument[3], rng, before)
            before += _sample(argument[3], rng)
        elif name == "BRANCH":
            for branch in argument[1]:
                yield from _repeats(branch, rng, before)
            before += _sample(argument[1][0], rng)
        else:
            before += _sample([(op, argument)], rng)


def _sample(tree: Any, rng: random.Random) -> str:
    out = []
    for op, argument in tree:
        match str(op):
            case "LITERAL":
                out.append(chr(argument))
            case "NOT_LITERAL":
                out.append("a" if argument != ord("a") else "b")
            case "ANY":
                out.append("a")
            case "IN":
                out.append(_member(argument, rng))
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, body = argument
                for _ in range(min(int(high), max(int(low), rng.choice((1, 2))))):
                    out.append(_sample(body, rng))
            case "SUBPATTERN":
                out.append(_sample(argument[3], rng))
            case "BRANCH":
                out.append(_sample(rng.choice(argument[1]), rng))
            case "ATOMIC_GROUP":
                out.append(_sample(argument, rng))
    return "".join(out)


def _member(items: Any, rng: random.Random) -> str:
    if str(items[0][0]) == "NEGATE":
        banned = re.compile("[^" + "".join(_class_text(i) for i in items[1:]) + "]")
        return next((c for c in "a0 /x.-\u00e9" if banned.match(c)), "\u00e9")
    op, value = rng.choice(items)
    match str(op):
        case "LITERAL":
            return chr(value)
        case "RANGE":
            return chr(rng.randint(value[0], min(value[1], 0x10FFFF)))
        case _:
            return {"CATEGORY_DIGIT": "7", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "w", "CATEGORY_NOT_SPACE": "x"}.get(
                str(value), "a"
            )


def _class_text(item: Any) -> str:
    op, value = item
    match str(op):
        case "LITERAL":
            return "\\" + chr(value) if chr(value) in "]^-\\[" else chr(value)
        case "RANGE":
            return f"\\x{value[0]:02x}-\\x{min(value[1], 0x7F):02x}"
        case _:
            return {
                "CATEGORY_DIGIT": r"\d",
                "CATEGORY_SPACE": r"\s",
                "CATEGORY_WORD": r"\w",
                "CATEGORY_NOT_SPACE": r"\S",
                "CATEGORY_NOT_WORD": r"\W",
            }[str(value)]


def searched(place: str) -> bool:
    """Whether the program looks for the pattern anywhere in a text (patterns of tables count as searched)."""
    module, _, name = place.rpartition(".")
    uses = set()
    own = Path(forensics.__file__).parent.parent / (module.replace(".", "/") + ".py")
    for path in [own] if name.startswith("_") and own.is_file() else SOURCES:
        uses |= set(re.findall(rf"\b{re.escape(name)}\b\.(\w+)", path.read_text(encoding="utf-8")))
    return not uses or bool(uses & {"search", "sub", "subn", "finditer", "findall", "split"})


def worst(pattern: re.Pattern[Any], length: int = LIMIT, search: bool = True) -> tuple[float, str]:
    """CPU seconds of the slowest bait, and its first characters."""
    top, which = 0.0, ""
    for bait in baits(pattern, length):
        text: Any = bait if isinstance(pattern.pattern, str) else bait.encode("latin-1", "replace")
        start = time.process_time()
        pattern.match(text)
        if search:
            pattern.search(text)
        spent = time.process_time() - start
        if spent > top:
            top, which = spent, bait[:60]
    return top, which
