"""Whether a drafted rule sees its own log: a rule that does not is no draft, but a riddle."""

from __future__ import annotations

from dataclasses import replace

from forensics.knowledge.draft import NewFile
from forensics.knowledge.trial import cases_of
from forensics.rulebook.located import Reader
from forensics.rulebook.schema import read_rule


def checked(file: NewFile, match: str, line: int) -> NewFile:
    """A drafted rule after a trial on its finding's own log block; where it sees nothing, the file carries a warning
    with `line`, the line of the log that it was made from."""
    if sees(file, match):
        return file
    return replace(file, warning=f"the drafted pattern does not match line {line}: shorten it by hand")


def sees(file: NewFile, match: str) -> bool:
    """Whether a drafted rule matches a line of a log block."""
    text = "\n".join(match.split("\n")[1:-1])
    rule = read_rule(Reader(file.name, file.text), file.name.partition("/")[0], "")
    if rule is None or not text:
        return False
    with cases_of(text, {rule.id: rule}) as cases:
        return any(rule.id in case.signals for case in cases)
