"""`path:line:col: severity: message`, as compilers print it: Vim's quickfix and Emacs' compile read it."""

from __future__ import annotations

from forensics.output.clean import clean
from forensics.output.view import places
from forensics.schema.report import Report


def render(report: Report) -> str:
    """One line per place; problems of the inputs come last."""
    lines = [
        f"{clean(where.path)}:{where.line}:{where.column}: {severity}: {clean(text, 300)}"
        for _, severity, where, text in places(report)
    ]
    lines += [
        f"{clean(p.path or '-')}:{p.line or 1}:{p.column or 1}: error: {clean(p.message, 300)}" for p in report.problems
    ]
    return "".join(line + "\n" for line in lines)
