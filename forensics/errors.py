"""The one exception tree. Each error carries a place where it can and prints a caret excerpt."""

from __future__ import annotations

from forensics.schema.span import Span


class ForensicsError(Exception):
    """Base of every error that may leave the program. `hint` tells the reader what to do next."""

    exit_code = 2

    def __init__(
        self, message: str, *, span: Span | None = None, hint: str = "", code: str = "", excerpt: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.code = code
        self.excerpt = excerpt

    def render(self) -> str:
        """The error as text: place, message, source line with a caret, hint. No control characters get through."""
        where = f"{_printable(str(self.span))}: " if self.span else ""
        code = f"[{self.code}] " if self.code else ""
        parts = [f"{where}{code}{_printable(self.message)}"]
        if self.excerpt and self.span:
            parts += caret(self.excerpt, self.span.column)
        if self.hint:
            parts.append(f"  hint: {_printable(self.hint)}")
        return "\n".join(parts)


class InputError(ForensicsError):
    """An input that is missing, empty, binary or unreadable."""


class UsageError(ForensicsError):
    """A call that cannot be carried out as written."""


class RuleError(ForensicsError):
    """A rule file that cannot be used."""


class FindingError(ForensicsError):
    """A finding or deployment that cannot be used."""


class ConditionError(ForensicsError):
    """A condition that does not parse or names something unknown."""


class ReplayError(ForensicsError):
    """A replay that was refused or could not be carried out."""


class HistoryError(ForensicsError):
    """A history database that cannot be used."""


def caret(line: str, column: int, width: int = 100) -> list[str]:
    """Source line and caret below it, cut to `width` around the column; `column` is 1-based in code points."""
    start = max(0, column - 1 - width // 2)
    shown = _printable(line[start : start + width])
    return [f"    {shown}", "    " + " " * (column - 1 - start) + "^"]


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)
