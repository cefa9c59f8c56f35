"""Problems of lint as diagnostics, and their safe edits as quick fixes."""

from __future__ import annotations

from pathlib import Path

from lsprotocol import types

from forensics.editor.place import word_at
from forensics.editor.units import Units
from forensics.rulebook.problem import Edit, Problem

SOURCE = "forensics"
_SEVERITY = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}


def diagnostics(problems: list[Problem], lines: list[str], units: Units) -> list[types.Diagnostic]:
    """One diagnostic per problem; the hint follows the message."""
    found = []
    for problem in problems:
        hint = f"\n{problem.hint}" if problem.hint else ""
        found.append(
            types.Diagnostic(
                range=place(problem, lines, units),
                message=f"{problem.message}{hint}",
                severity=_SEVERITY.get(problem.severity, types.DiagnosticSeverity.Error),
                code=problem.code,
                source=SOURCE,
            )
        )
    return found


def place(problem: Problem, lines: list[str], units: Units) -> types.Range:
    """The word at the problem's place, or what its edit replaces."""
    line, column = max(1, problem.span.line), max(1, problem.span.column)
    edit = problem.edit
    if edit is not None and edit.old and not edit.path and edit.line == line and edit.column == column:
        return units.span(lines, line, column, len(edit.old))
    text = lines[line - 1] if line <= len(lines) else ""
    word, start = word_at(text, column)
    if word and start >= column:
        return units.span(lines, line, column, len(word))
    return units.span(lines, line, column, max(1, len(text) - column + 1))


def quick_fixes(
    uri: str, problems: list[Problem], lines: list[str], units: Units, wanted: types.Range
) -> list[types.CodeAction]:
    """The safe changes for the problems that touch a range."""
    found = []
    for problem in problems:
        at = place(problem, lines, units)
        if problem.edit is None or at.end.line < wanted.start.line or at.start.line > wanted.end.line:
            continue
        changes = _changes(uri, problem.edit, lines, units)
        if changes is None:
            continue
        found.append(
            types.CodeAction(
                title=_title(problem),
                kind=types.CodeActionKind.QuickFix,
                diagnostics=diagnostics([problem], lines, units),
                edit=types.WorkspaceEdit(changes=changes),
                is_preferred=True,
            )
        )
    return found


def _title(problem: Problem) -> str:
    edit = problem.edit
    if edit is not None and edit.insert is None and edit.new:
        return f"Replace `{edit.old}` by `{edit.new}`"
    hint = problem.hint[:1].upper() + problem.hint[1:]
    return hint or f"Fix {problem.code}"


def _changes(uri: str, edit: Edit, lines: list[str], units: Units) -> dict[str, list[types.TextEdit]] | None:
    """One edit as a change of a document; None where the text no longer holds what it replaces."""
    if edit.path:
        other = Path(edit.path)
        try:
            lines = other.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError):
            return None
        uri = other.resolve().as_uri()
    if not 0 < edit.line <= len(lines):
        return None
    if edit.insert is not None:
        at = types.Position(edit.line, 0)
        return {uri: [types.TextEdit(types.Range(at, at), edit.insert + "\n")]}
    text = lines[edit.line - 1]
    if text[edit.column - 1 : edit.column - 1 + len(edit.old)] != edit.old:
        return None
    if edit.new is None:
        whole = types.Range(types.Position(edit.line - 1, 0), types.Position(edit.line, 0))
        return {uri: [types.TextEdit(whole, "")]}
    return {uri: [types.TextEdit(units.span(lines, edit.line, edit.column, len(edit.old)), edit.new)]}
