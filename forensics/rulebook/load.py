"""Rule files from folders: every good one is used, every bad one is told with its place."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from forensics.errors import ForensicsError, RuleError
from forensics.frozen import frozen
from forensics.rulebook.located import Reader
from forensics.rulebook.problem import Problem
from forensics.rulebook.schema import read_rule
from forensics.schema.signal import Rule
from forensics.schema.span import Span


@frozen
class LoadedRules:
    """Rules by id, in the order of their paths, and what was wrong with the others."""

    rules: dict[str, Rule]
    problems: tuple[ForensicsError, ...]


def rule_files(folder: Path) -> list[Path]:
    """All rule files below a folder, sorted; a file stands for itself."""
    if folder.is_file():
        return [folder]
    return sorted(p for end in ("*.yaml", "*.yml") for p in folder.rglob(end) if p.is_file())


def linked_folders(folder: Path) -> list[Path]:
    """Links to folders below a folder, sorted: their rules are not read."""
    below = (Path(here, name) for here, names, _ in os.walk(folder) for name in names)
    return sorted(path for path in below if path.is_symlink())


def load_rules(folders: Iterable[Path], namespace: str = "") -> LoadedRules:
    """Read all rules below the folders. Of two rules with one id the first is kept and the second is a problem."""
    rules: dict[str, Rule] = {}
    problems: list[ForensicsError] = []
    folders = tuple(folders)
    problems += [not_followed(str(p)).error(RuleError) for folder in folders for p in linked_folders(folder)]
    for path in (p for folder in folders for p in rule_files(folder)):
        rule, found = check_rule(path, namespace)
        problems += [p.error(RuleError) for p in found if p.severity == "error"]
        if rule is None:
            continue
        if rule.id in rules:
            problems.append(duplicate(rule.id, str(path), rules[rule.id].span.path).error(RuleError))
        else:
            rules[rule.id] = rule
    return LoadedRules(rules, tuple(problems))


def check_rule(path: Path, namespace: str = "", shown: str | None = None) -> tuple[Rule | None, list[Problem]]:
    """Read one rule file; `shown` is the path as messages give it."""
    name = str(path) if shown is None else shown
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "not UTF-8"
        return None, [Problem("K001", f"cannot be read: {said}", Span(name, 1), "save it as UTF-8 text")]
    reader = Reader(name, text)
    rule = read_rule(reader, path.parent.name, namespace)
    return rule, reader.problems


def duplicate(identity: str, path: str, other: str) -> Problem:
    """Two files with one id."""
    hint = "rename one, or say `override = true` for that folder in forensics.toml"
    return Problem("K008", f"the id `{identity}` is already taken by {other}", Span(path, 1), hint)


def not_followed(path: str) -> Problem:
    """A linked folder inside a knowledge base, whose files nobody reads."""
    hint = "name the folder itself with --rules or --kb or in forensics.toml, or put its files here"
    return Problem("K014", "this folder is a link, and what it holds is not read", Span(path, 1), hint)
