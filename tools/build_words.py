"""Write forensics/data/words.json: the words that the shipped rules and the timeline's patterns cannot do without.

    python tools/build_words.py [--check]

In a flood of lines of which each is new, the scan keeps apart what holds one of them (forensics/engine/apart.py): it
begins before rules are read. To be run after rules or patterns changed; `--check` tells whether the file is fresh.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import forensics.analysis  # noqa: F401  (registers the timeline's patterns)
from forensics.knowledge.store import load
from forensics.rulebook.literals import required
from forensics.schema.options import Options
from forensics.timeline import sieve

TARGET = Path(__file__).resolve().parent.parent / "forensics" / "data" / "words.json"
ENOUGH = 3
"""Shorter texts stand in too many words to tell anything."""


def words() -> list[str]:
    """All texts of which some pattern needs one, lower case; of texts that hold one another the shorter."""
    found: set[str] = set()
    for rule in load(Options()).rules.values():
        for pattern in rule.patterns:
            found |= required(pattern) or frozenset()
    found |= sieve.demanded()
    found = {text for text in found if len(text) >= ENOUGH}
    return sorted(text for text in found if not any(other in text for other in found if other != text))


def main() -> int:
    text = json.dumps(words(), indent=0) + "\n"
    if "--check" in sys.argv[1:]:
        return int(TARGET.read_text(encoding="utf-8") != text)
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
