"""Links and names in the documentation lead somewhere: files, headings, pages, commands, kinds, facts, rooms."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from forensics.cli.app import available
from forensics.knowledge.names import CLOSED
from forensics.rulebook.words import FAMILIES, KINDS

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "kb" / "README.md",
    *sorted(ROOT.glob("kb/findings/*.md")),
    *sorted(ROOT.glob("kb/deployments/*.md")),
    *sorted((ROOT / "samples").glob("**/README.md")),
    *sorted((ROOT / "tests").glob("**/README.md")),
]
GUIDES = [p for p in PAGES if p.parent.name not in ("findings", "deployments")]
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1`*\s*$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^)\s]+)\)")
MENTION = re.compile(
    r"(?<![\w/.-])((?:docs|kb|samples|tests|tools|benchmarks|fuzz|forensics|rules)/[\w./-]*\.(?:md|py|json|lark|sh|1))\b"
)

EXAMPLES = {"kb/findings/chat-template-file-missing.md"}
"""Files that a worked example makes."""


def prose(page: Path) -> str:
    """A page without its fenced blocks: what stands there is an example."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """Headings of a page as code hosts name them."""
    found = re.findall(r"^#+ +(.*)", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower().strip()).replace(" ", "-") for heading in found}


def dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        outside = not target.is_relative_to(ROOT)
        if outside or not target.exists() or (heading and target.suffix == ".md" and heading not in anchors(target)):
            dead.append(link)
    return dead


def test_no_link_is_dead():
    dead = {p.relative_to(ROOT).as_posix(): found for p in PAGES if (found := dead_links(p))}
    assert dead == {}


@pytest.mark.parametrize("page", GUIDES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page):
    """Also where no link is: `tools/build_man.py` in running text."""
    named = {m for m in MENTION.findall(prose(page)) if m not in EXAMPLES}
    assert sorted(m for m in named if not (ROOT / m).exists()) == []


def test_pages_that_the_program_names_exist():
    texts = [p.read_text(encoding="utf-8") for p in (ROOT / "forensics").rglob("*.py")]
    named = {m for text in texts for m in re.findall(r"\bdocs/[\w-]+\.md\b", text)}
    assert sorted(m for m in named if not (ROOT / m).exists()) == []


def test_every_page_can_be_reached_from_the_index():
    index = (ROOT / "docs" / "README.md").read_text()
    assert [p.name for p in (ROOT / "docs").glob("*.md") if p.name != "README.md" and f"({p.name})" not in index] == []


def test_the_readmes_table_lists_every_command():
    text = (ROOT / "README.md").read_text()
    listed = {word for row in re.findall(r"^\| (`.*?) \|", text, re.M) for word in re.findall(r"`([a-z]+)`", row)}
    assert listed == set(available())


def test_the_pages_list_the_words_of_the_program():
    kinds = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "kinds.md").read_text(), re.M)
    assert {word for cell in kinds for word in re.findall(r"`([\w-]+)`", cell)} == set(KINDS)
    facts = (ROOT / "docs" / "facts.md").read_text()
    assert [f"{g}.{n}" for g, names in CLOSED.items() for n in names if f"`{g}.{n}`" not in facts] == []
    assert [f for f in FAMILIES if not re.search(rf"\b{f}\b", (ROOT / "docs" / "rules.md").read_text())] == []


def test_the_architecture_knows_every_room():
    """Files come and go between two runs of tools/build_rooms.py; packages must be named, and nothing that is gone."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    rooms = re.split(r"^### ", text[text.index("## File by file") :], flags=re.M)[1:]
    named = {room.split("\n", 1)[0]: re.findall(r"^- `([\w.]+)`", room, re.M) for room in rooms}
    packages = {f"{p.parent.relative_to(ROOT).as_posix()}/" for p in (ROOT / "forensics").glob("**/__init__.py")}
    assert packages - set(named) == set()
    gone = [f"{room}{name}" for room, names in named.items() for name in names if not (ROOT / room / name).is_file()]
    assert gone == []
    tests = re.findall(r"\b(test_\w+\.py)", text)
    assert sorted({t for t in tests if not any((ROOT / "tests").rglob(t))}) == []
