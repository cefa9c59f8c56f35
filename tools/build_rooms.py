"""Writes the list of files at the end of ARCHITECTURE.md, from the first sentence of each module.

python tools/build_rooms.py [--check]
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
MARK = "<!-- files: tools/build_rooms.py -->\n"
END = "<!-- end of files -->\n"


def sentence(path: Path) -> str:
    """The first sentence of a module's docstring, or of the comment at the head of a grammar."""
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
    else:
        text = " ".join(re.findall(r"^// ?(.*)", path.read_text().partition("\n\n")[0], re.M))
    text = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.:;]) (?=[A-Z])|: (?=one |each )", text, maxsplit=1)[0].rstrip(".:;")


def rooms() -> str:
    lines: list[str] = []
    package = ROOT / "forensics"
    folders = [package, *sorted(p.parent for p in package.glob("*/__init__.py"))]
    for folder in folders:
        files = [p for p in sorted(folder.iterdir()) if p.suffix in (".py", ".lark") and p.name != "__init__.py"]
        name = f"{folder.relative_to(ROOT).as_posix()}/"
        lines += [f"### {name}", "", f"{sentence(folder / '__init__.py')}.", ""]
        if files:
            lines += [*(f"- `{p.name}`: {sentence(p)}" for p in files), ""]
    return "\n".join(lines)


def build(text: str) -> str:
    head, _, rest = text.partition(MARK)
    return f"{head}{MARK}\n{rooms()}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    text = PAGE.read_text()
    if "--check" in sys.argv[1:]:
        return int(build(text) != text)
    PAGE.write_text(build(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
