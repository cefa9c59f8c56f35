"""Markdown with YAML front matter: where the one ends and the other begins, and the fenced blocks of the body."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

from forensics.frozen import frozen
from forensics.rulebook.located import Reader
from forensics.rulebook.problem import Problem
from forensics.schema.span import Span

FENCE = "---"


@frozen
class Page:
    """`reader` holds the front matter with places in the whole file; `body` starts at line `body_line` (1-based)."""

    reader: Reader
    body: str
    body_line: int


@frozen
class Fence:
    """A fenced block of a body: its info words, its text, and the line of its opening fence (1-based)."""

    info: tuple[str, ...]
    text: str
    line: int


@frozen
class Heading:
    """A heading of a body and its line (1-based)."""

    level: int
    text: str
    line: int


def read_page(path: Path, shown: str | None = None) -> Page | Problem:
    """Split a Markdown file; a Problem where it cannot be read or has no front matter."""
    name = str(path) if shown is None else shown
    try:
        return split_page(path.read_text(encoding="utf-8"), name)
    except UnicodeDecodeError:
        return Problem("K001", "cannot be read: not UTF-8", Span(name, 1), "save it as UTF-8 text")
    except OSError as error:
        return Problem("K001", f"cannot be read: {error.strerror}", Span(name, 1))


def split_page(text: str, name: str) -> Page | Problem:
    """Split the text of a Markdown file into front matter and body."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        hint = "begin the file with `---`, the keys of docs/findings.md, and `---`"
        return Problem("K001", "the file does not begin with front matter", Span(name, 1), hint, lines[0][:200])
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() == FENCE), None)
    if end is None:
        return Problem("K001", "the front matter has no end", Span(name, 1), "close it with a line `---`", lines[0])
    front = "\n".join(lines[1:end])
    return Page(Reader(name, front, first_line=2, whole=text), "\n".join(lines[end + 1 :]), end + 2)


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark")


def fences(page: Page) -> tuple[Fence, ...]:
    """All fenced blocks of the body, in order."""
    found = []
    for token in _markdown().parse(page.body):
        if token.type == "fence" and token.map is not None:
            found.append(Fence(tuple(token.info.split()), token.content, page.body_line + token.map[0]))
    return tuple(found)


def headings(page: Page) -> tuple[Heading, ...]:
    """All headings of the body, in order."""
    tokens = _markdown().parse(page.body)
    found = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.map is not None:
            found.append(Heading(int(token.tag[1:]), inline.content, page.body_line + token.map[0]))
    return tuple(found)
