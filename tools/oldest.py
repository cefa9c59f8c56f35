"""Prints `name==lowest` for every dependency of a pyproject.toml and of the extras named: python oldest.py FILE EXTRA …"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def oldest(requirement: str) -> str:
    """`lark>=1.2.2` gives `lark==1.2.2`; a requirement without a lower bound is an error."""
    found = re.fullmatch(r"([A-Za-z0-9._-]+(?:\[[\w,]+\])?)>=([\w.]+)(?:,.*)?", requirement.replace(" ", ""))
    if found is None:
        raise SystemExit(f"{requirement}: has no lower bound")
    return f"{found[1]}=={found[2]}"


def main() -> None:
    """Dependencies first, then those of the extras."""
    project = tomllib.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["project"]
    wanted = list(project["dependencies"])
    for extra in sys.argv[2:]:
        wanted += project["optional-dependencies"][extra]
    for requirement in wanted:
        print(oldest(requirement))


if __name__ == "__main__":
    main()
