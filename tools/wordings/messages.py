"""What a source file can print: its texts statement by statement, with holes for values, and its code for what prints itself.

Python is read with `ast`; everything else (C++, CUDA, Rust, Go, and Python of a newer syntax) by its string literals.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wordings.align import HOLE

_PERCENT = re.compile(r"%[-+ #0-9.*]*(?:hh|ll|[hlLzjt])?[sdifgeEGrRSTNVxXucpaAU]|%\(\w+\)[sdifr]")
_BRACES = re.compile(r"\{[^{}]*\}")
_PRI = re.compile(r"%\s*$")


@dataclass(frozen=True)
class Said:
    """The texts of a file: `messages` with holes, `code` one statement or line each, blanks folded."""

    messages: tuple[str, ...]
    code: tuple[str, ...]


def read(path: Path) -> Said:
    """Texts of one source file."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix == ".txt":
        return Said(tuple(line for line in text.split("\n") if line), ())
    if path.suffix in (".py", ".pyi"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text)
        except SyntaxError:
            return _lexed(text, _PYTHON)
        return Said((*_python(tree), *_exceptions(tree, path)), tuple(_lines(text)))
    said = _lexed(text, _CLIKE)
    return Said((*said.messages, *_rust_debug(text)), said.code) if path.suffix == ".rs" else said


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        folded = " ".join(line.split())
        if folded:
            yield folded


def _python(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{node.name} ({HOLE}:{HOLE})"
            yield f'File "{HOLE}", line {HOLE}, in {node.name}'
            yield f'File "{HOLE}", line {HOLE} in {node.name}'
        elif isinstance(node, ast.stmt) and not isinstance(node, ast.ClassDef):
            raised, parts = _raised(node), list(_parts(node, top=True))
            if raised or any(p != HOLE for p in parts):
                yield from _holed(raised + "".join(parts))
            if isinstance(node, ast.Assert):
                yield "AssertionError: " + " ".join(ast.unparse(node.test).split())


def _exceptions(tree: ast.AST, path: Path) -> Iterator[str]:
    """Names of a module's classes as a traceback prints those of exceptions: `torch._dynamo.exc.Unsupported: `."""
    module = ".".join(path.with_suffix("").parts[-MODULE_DEPTH:])
    yield from (f"{module}.{n.name}: {HOLE}" for n in ast.walk(tree) if isinstance(n, ast.ClassDef))


MODULE_DEPTH = 6


def _raised(node: ast.stmt) -> str:
    """`ValueError: ` of a statement that raises one: the traceback's last line begins so."""
    if isinstance(node, ast.Assert):
        return "AssertionError: "
    cause = node.exc if isinstance(node, ast.Raise) else None
    called = cause.func if isinstance(cause, ast.Call) else cause
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return f"{name}: " if name else ""


def _parts(node: ast.AST, top: bool = False) -> Iterator[str]:
    """Texts below a node in order; whatever is no text is a hole. Statements inside a statement speak for themselves."""
    if isinstance(node, ast.Constant):
        yield node.value if isinstance(node.value, str) else HOLE
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else HOLE
    elif isinstance(node, ast.stmt) and not top:
        return
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _parts_of_text(node.func):
        for given in [*node.args, *(k.value for k in node.keywords)]:
            yield from _parts(given)
        yield HOLE
    elif isinstance(node, (ast.Name, ast.Attribute)):
        yield HOLE
    else:
        for child in ast.iter_child_nodes(node):
            yield from _parts(child)


def _parts_of_text(node: ast.Attribute) -> bool:
    """Whether a method is one of a text: `"…".format(…)`, `", ".join(…)`."""
    return isinstance(node.value, (ast.Constant, ast.JoinedStr, ast.BinOp))


def _holed(text: str) -> Iterator[str]:
    """A message as it stands and with the places of `%d`, `{}` and `{name}` as holes."""
    yield re.sub(HOLE + "+", HOLE, text)
    holed = _BRACES.sub(HOLE, _PERCENT.sub(HOLE, text)).replace("%%", "%").replace("{{", "{").replace("}}", "}")
    if holed != text:
        yield re.sub(HOLE + "+", HOLE, holed)


_CLIKE = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|R"(?P<mark>[^(\s]{0,16})\((?P<raw>.*?)\)(?P=mark)"'
    r'|r(?P<hashes>#+)"(?P<rust>.*?)"(?P=hashes)'
    r'|[LuU8]?"(?P<text>(?:\\.|[^"\\])*)"'
    r"|`(?P<go>[^`]*)`"
    r"|'(?:\\.|[^'\\])'"
    r"|(?P<end>[;{}])",
    re.DOTALL,
)
_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r'|(?P<three>[rbfuRBFU]{0,2}"""(?P<raw>.*?)""")'
    r"|(?P<hashes>[rbfuRBFU]{0,2}'''(?P<rust>.*?)''')"
    r'|[rbfuRBFU]{0,2}"(?P<text>(?:\\.|[^"\\\n])*)"'
    r"|[rbfuRBFU]{0,2}'(?P<go>(?:\\.|[^'\\\n])*)'"
    r"|(?P<end>\n(?=\s{0,40}(?:raise|logger|return|if|elif|else|def|class|for|with|assert|print|self|try|except)\b))",
    re.DOTALL,
)
_DERIVED = re.compile(r"#\[derive\([^)]*\bDebug\b[^)]*\)\](?:\s*#\[[^\]]*\])*\s*(?:pub\s+)?(?:struct|enum)\s+\w+")
_RUST_NOISE = re.compile(r"//[^\n]*|#\[[^\]]*\]")
_FIELDS = re.compile(r"(?P<owner>\w+)\s*\{(?P<fields>[^{}]*)\}")
_FIELD = re.compile(r"(?:^|,)\s*(?:pub(?:\([^)]*\))?\s+)?(?P<name>[a-z_]\w*)\s*:\s*(?P<list>Vec<)?")


def _rust_debug(text: str) -> Iterator[str]:
    """What `{:?}` prints of types that derive it: `Owner { name: HOLE, other: [HOLE] }`."""
    for derived in _DERIVED.finditer(text):
        end = text.find("\n}", derived.end())
        body = _RUST_NOISE.sub("", text[derived.end() : end + 2 if end >= 0 else derived.end()])
        owner = derived.group().split()[-1]
        for found in _FIELDS.finditer(f"{owner} {body}"):
            fields = _FIELD.finditer(found["fields"])
            shown = [f"{f['name']}: [{HOLE}]" if f["list"] else f"{f['name']}: {HOLE}" for f in fields]
            yield f"{found['owner']} {{ {', '.join(shown)} }}"


_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\", "0": "", "r": "\r"}


def _lexed(text: str, tokens: re.Pattern[str]) -> Said:
    """Texts by literals: those of one statement are one message, with a hole wherever something stands between two."""
    messages: list[str] = []
    code: list[str] = []
    parts: list[str] = []
    last = start = 0

    def close(end: int) -> None:
        nonlocal parts, start
        if parts:
            messages.extend(_holed(HOLE + "".join(parts) + HOLE))
        statement = " ".join(text[start:end].split())
        if statement:
            code.append(statement)
        parts, start = [], end

    for found in tokens.finditer(text):
        literal = next((found[g] for g in ("raw", "rust", "text", "go") if found[g] is not None), None)
        if found["end"] is not None:
            close(found.end())
        elif literal is not None:
            between = text[last : found.start()]
            if parts and between.strip():
                parts.append(HOLE)
            parts.append(re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), literal, flags=re.DOTALL))
        if found["comment"] is None:
            last = found.end()
    close(len(text))
    return Said(tuple(messages), (*code, *_lines(text)))
