"""What is wrong with a rule or a finding: place, code, remedy and, where it is safe, the edit that repairs it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from forensics.errors import ForensicsError
from forensics.frozen import frozen
from forensics.schema.span import Span


@frozen
class Edit:
    """Replace `old` by `new` in one line (1-based) of the file; refused when the line no longer holds `old` there.
    `column` is 1-based in code points. With `new=None` the whole line goes; `insert` puts a new line below instead.
    `path` names another file that is to be edited (empty: the problem's own)."""

    line: int
    column: int = 1
    old: str = ""
    new: str | None = ""
    insert: str | None = None
    path: str = ""


@frozen
class Problem:
    """`severity` is error (the file is refused) or warning. `hint` is the proposed change in words."""

    code: str
    message: str
    span: Span
    hint: str = ""
    excerpt: str = ""
    severity: str = "error"
    edit: Edit | None = None

    def error(self, kind: type[ForensicsError]) -> ForensicsError:
        """The same problem as an exception of the given class."""
        return kind(self.message, span=self.span, hint=self.hint, code=self.code, excerpt=self.excerpt)

    def render(self) -> str:
        """Place, code, message, source line with caret, hint."""
        return self.error(ForensicsError).render()


def apply_edits(path: Path, problems: Iterable[Problem]) -> int:
    """Apply the edits of one file's problems, also those that belong into other files; gives how many."""
    by_file: dict[Path, set[Edit]] = {}
    for problem in problems:
        if problem.edit is not None:
            by_file.setdefault(Path(problem.edit.path) if problem.edit.path else path, set()).add(problem.edit)
    return sum(_apply_all(target, edits) for target, edits in by_file.items())


def _apply_all(path: Path, edits: set[Edit]) -> int:
    """The edits of one file, last place first, so that the places of the others stay true."""
    lines = path.read_text(encoding="utf-8").split("\n")
    order = sorted(edits, key=lambda e: (e.line, e.column, e.new or "", e.insert or ""), reverse=True)
    done = sum(_apply(lines, edit) for edit in order)
    if done:
        path.write_text("\n".join(lines), encoding="utf-8")
    return done


def _apply(lines: list[str], edit: Edit) -> bool:
    index = edit.line - 1
    if not 0 <= index < len(lines):
        return False
    if edit.insert is not None:
        lines[index + 1 : index + 1] = edit.insert.split("\n")
        return True
    start = edit.column - 1
    if lines[index][start : start + len(edit.old)] != edit.old:
        return False
    if edit.new is None:
        del lines[index]
    else:
        lines[index] = lines[index][:start] + edit.new + lines[index][start + len(edit.old) :]
    return True
