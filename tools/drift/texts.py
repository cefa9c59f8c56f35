"""The text that an expression of the program makes, with a named hole for each value."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

OPEN, SHUT = "\x01", "\x02"
"""Around the name of a value inside a text."""
MOST_WAYS = 4
LONGEST_NAME = 60
_PERCENT = re.compile(r"%(?:\((\w+)\))?[-+ #0-9.*]*[sdifgeEGrxXc]")
_BRACES = re.compile(r"\{(\w*)[^{}]*\}")

Known = Mapping[str, ast.expr]
"""Texts that were given a name before."""


def hole(name: str) -> str:
    """A hole for the value of an expression."""
    return f"{OPEN}{' '.join(name.split())[:LONGEST_NAME]}{SHUT}"


def ways(node: ast.expr, known: Known, depth: int = 0) -> Iterator[str]:
    """The texts that an expression can make: one, or one for each side of a conditional expression."""
    if depth > 6:
        yield hole("value")
    elif isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(_field(part, known, depth) for part in node.values)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield first(node.left, known, depth + 1) + first(node.right, known, depth + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        yield _filled(first(node.left, known, depth + 1), node.right)
    elif isinstance(node, ast.IfExp):
        yield from ways(node.body, known, depth + 1)
        yield from ways(node.orelse, known, depth + 1)
    elif isinstance(node, ast.Name) and node.id in known:
        yield from ways(known[node.id], {k: v for k, v in known.items() if k != node.id}, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        yield _formatted(first(node.func.value, known, depth + 1), node)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("strip", "dedent"):
        yield first(node.func.value, known, depth + 1).strip()
    else:
        yield hole(ast.unparse(node))


def first(node: ast.expr, known: Known, depth: int = 0) -> str:
    """One text of an expression."""
    return next(ways(node, known, depth))


def arguments(call: ast.Call, known: Known) -> list[str]:
    """The texts of a call that formats as `logging` does: `%s` take the further arguments."""
    if not call.args:
        return [""]
    return [_percents(text, call.args[1:]) for text in ways(call.args[0], known)][:MOST_WAYS]


def raised_with(call: ast.Call, known: Known) -> list[str]:
    """The texts of an exception: of several arguments Python shows the tuple (a comma too many in the program)."""
    if len(call.args) < 2 or any(isinstance(a, ast.Starred) for a in call.args):
        return arguments(call, known)
    shown = (f"'{first(a, known)}'" if _is_text(a) else first(a, known) for a in call.args)
    return [f"({', '.join(shown)})"]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def literal(text: str) -> str:
    """What the program itself says."""
    return re.sub(f"{OPEN}[^{SHUT}]*{SHUT}", " ", text)


def shown(text: str) -> str:
    """A text with its holes as an f-string has them, on one line."""
    return text.replace(OPEN, "{").replace(SHUT, "}").replace("\n", "\\n")


def _field(part: ast.expr, known: Known, depth: int) -> str:
    if isinstance(part, ast.FormattedValue):
        if isinstance(part.value, ast.Name) and part.value.id in known:
            return first(part.value, known, depth + 1)
        equals = isinstance(part.value, ast.Constant)
        return (
            str(part.value.value) if equals and isinstance(part.value, ast.Constant) else hole(ast.unparse(part.value))
        )
    return str(part.value) if isinstance(part, ast.Constant) else hole("value")


def _filled(text: str, values: ast.expr) -> str:
    return _percents(text, list(values.elts) if isinstance(values, ast.Tuple) else [values])


def _percents(text: str, values: list[ast.expr]) -> str:
    if not values:
        return text
    names = iter(values)

    def named(found: re.Match[str]) -> str:
        value = next(names, None)
        return hole(found[1] or (ast.unparse(value) if value is not None else "value"))

    return _PERCENT.sub(named, text).replace("%%", "%")


def _formatted(text: str, call: ast.Call) -> str:
    values = iter(call.args)
    keywords = {k.arg: k.value for k in call.keywords if k.arg}

    def named(found: re.Match[str]) -> str:
        value = keywords.get(found[1]) if found[1] and not found[1].isdigit() else next(values, None)
        return hole(ast.unparse(value) if value is not None else found[1] or "value")

    return _BRACES.sub(named, text)
