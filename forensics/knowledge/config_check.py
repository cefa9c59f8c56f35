"""What forensics.toml names and nobody has: folders that are not there, ids of no file. Told, never fatal."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from forensics.knowledge.roots import Config
from forensics.rulebook.located import nearest
from forensics.rulebook.problem import Problem
from forensics.schema.span import Span


def config_problems(config: Config, findings: Collection[str], rules: Collection[str]) -> list[Problem]:
    """Problems of forensics.toml against the ids that are known (before any is disabled)."""
    if config.path is None:
        return []
    lines = _lines(config.path)
    missing = [p for p in (*config.kb, *config.rules) if not p.is_dir() and not p.is_file()]
    found = [_no_folder(config.path, lines, p) for p in missing]
    found += [_no_id(config.path, lines, i, "disabled", findings) for i in config.disabled if i not in findings]
    both = {*findings, *rules}
    found += [_no_id(config.path, lines, i, "override", both) for i in sorted(config.replace_ids - both)]
    return found


def _no_folder(path: Path, lines: list[str], folder: Path) -> Problem:
    said = folder.relative_to(path.parent).as_posix() if folder.is_relative_to(path.parent) else str(folder)
    span, excerpt = _place(path, lines, said)
    return Problem("K012", f"there is no folder `{said}`", span, f"make it (mkdir -p {said}), or correct it", excerpt)


def _no_id(path: Path, lines: list[str], identity: str, key: str, known: Collection[str]) -> Problem:
    near = nearest(identity, known)
    span, excerpt = _place(path, lines, identity)
    hint = f"did you mean `{near}`?" if near else "take it out; `forensics kb list` shows the ids"
    return Problem("K013", f"`{key}` names `{identity}`, and nothing has that id", span, hint, excerpt)


def _place(path: Path, lines: list[str], word: str) -> tuple[Span, str]:
    """Where a quoted word stands."""
    for number, line in enumerate(lines, 1):
        for quote in ('"', "'"):
            column = line.find(f"{quote}{word}{quote}")
            if column >= 0:
                return Span(str(path), number, column + 2), line
    return Span(str(path), 1), ""


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return []
