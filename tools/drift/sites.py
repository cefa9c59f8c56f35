"""Where a release of the program says that something is wrong: raise, assert, log and print statements of a file."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from drift.texts import MOST_WAYS, arguments, literal, raised_with, ways

LEVELS = ("error", "exception", "critical", "warning", "warn", "info")
_CONDITION = 400


@dataclass(frozen=True)
class Site:
    """One check: `kind` is raise, assert, refuse (of the argument parser), print or a level of the log; `type` the
    exception's name; `text` what is printed, with holes; `condition` what was asked before it; `source` the first line
    of the statement."""

    file: str
    scope: str
    kind: str
    type: str
    text: str
    condition: str
    source: str

    @cached_property
    def letters(self) -> int:
        """Letters that the program itself prints."""
        return sum(map(str.isalpha, literal(self.text)))

    @property
    def function(self) -> str:
        return self.scope.rpartition(".")[2]


def sites(file: str, text: str) -> list[Site]:
    """The checks of a Python file, in its order; none where the file is of a syntax that this Python cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    walk = _Walk(file, text.split("\n"))
    walk.body(tree.body, "<module>", "")
    return walk.found


class _Walk:
    def __init__(self, file: str, lines: list[str]) -> None:
        self.file = file
        self.lines = lines
        self.found: list[Site] = []
        self.known: dict[str, ast.expr] = {}

    def body(self, statements: list[ast.stmt], scope: str, condition: str) -> None:
        for statement in statements:
            self.statement(statement, scope, condition)

    def statement(self, node: ast.stmt, scope: str, condition: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            before = self.known
            self.known = dict(before)
            self.body(node.body, node.name if scope == "<module>" else f"{scope}.{node.name}", "")
            self.known = before
            return
        if isinstance(node, ast.If):
            asked = _short(node.test)
            self.body(node.body, scope, asked)
            self.body(node.orelse, scope, f"not ({asked})")
            return
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            self._name(node.targets[0].id, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            before_it = self.known.get(node.target.id)
            if before_it is not None:
                self.known[node.target.id] = ast.BinOp(before_it, ast.Add(), node.value)
        elif isinstance(node, ast.Raise):
            self._raised(node, scope, condition)
        elif isinstance(node, ast.Assert):
            self._asserted(node, scope)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self._called(node.value, node, scope, condition)
        for block in _blocks(node):
            self.body(block, scope, condition)

    def _name(self, name: str, value: ast.expr) -> None:
        if any(isinstance(n, ast.Constant) and isinstance(n.value, str) and " " in n.value for n in ast.walk(value)):
            self.known[name] = value
        else:
            self.known.pop(name, None)

    def _raised(self, node: ast.Raise, scope: str, condition: str) -> None:
        raised = node.exc
        if raised is None:
            return
        kind = _named(raised.func if isinstance(raised, ast.Call) else raised)
        if not kind or not kind[:1].isupper():
            return
        texts = raised_with(raised, self.known) if isinstance(raised, ast.Call) else [""]
        for text in texts:
            self._add(node, scope, "raise", kind, text, condition)

    def _asserted(self, node: ast.Assert, scope: str) -> None:
        asked = _short(node.test)
        texts = list(ways(node.msg, self.known))[:MOST_WAYS] if node.msg is not None else [""]
        for text in texts:
            self._add(node, scope, "assert", "AssertionError", text, asked)

    def _called(self, call: ast.Call, node: ast.stmt, scope: str, condition: str) -> None:
        name = _named(call.func)
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        kind = name.removesuffix("_once")
        if "log" in owner.lower() and kind in LEVELS:
            kind = {"exception": "error", "critical": "error", "warn": "warning"}.get(kind, kind)
        elif name == "print" or name.startswith(("print_warning", "print_info")):
            kind = "print"
        elif name == "error" and "parser" in owner:
            kind = "refuse"
        elif owner == "warnings" and name == "warn":
            kind = "print"
        elif name in ("log_info_on_rank0", "log_debug_on_rank0", "rank0_log", "log_warning_on_rank0"):
            kind = "warning" if "warning" in name else "info"
            call = ast.Call(call.func, call.args[-1:], [])
        else:
            return
        for text in arguments(call, self.known):
            self._add(node, scope, kind, "", text, condition)

    def _add(self, node: ast.stmt, scope: str, kind: str, of: str, text: str, condition: str) -> None:
        source = self.lines[node.lineno - 1].strip()
        self.found.append(Site(self.file, scope, kind, of, text, condition, source))


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if block:
            yield block
    for handler in getattr(node, "handlers", ()):
        yield handler.body
    for case in getattr(node, "cases", ()):
        yield case.body


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _short(node: ast.expr) -> str:
    return ast.unparse(node)[:_CONDITION]
