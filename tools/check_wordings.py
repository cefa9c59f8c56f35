#!/usr/bin/env python3
"""Check that each wording of the rules stands in the program that its `sources` name, and record which do.

  check_wordings.py FOLDER            say what stands where, and list what does not
  check_wordings.py FOLDER --write    also write forensics/data/wordings.json
  check_wordings.py FOLDER --only ID  only rules whose id contains this
  check_wordings.py FOLDER --find     where nothing is stated or found, search all of FOLDER for the wording

FOLDER holds unpacked releases, `OWNER/REPO@RELEASE/` each, with files under the paths that they have in the repository
(a wheel of sglang goes to `sgl-project/sglang@v0.5.9/python/`). Where only built libraries are to be had, `strings.txt`
in such a folder (printable strings, one a line) stands for every file of the release. A release that FOLDER lacks keeps
what the record says of it, as long as the rule's wordings and sources are those that were checked.

A wording is found when its literal parts stand in one message of the file, in their order; where the program puts a
value, the wording may have anything. Sides of its alternations that are nowhere are recorded, too. How: tools/wordings.
Exit code: 1 where a stated source does not hold.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tools"))

from wordings.check import Checked, Shelf, check  # noqa: E402
from wordings.search import places  # noqa: E402

from forensics.bench import wordings  # noqa: E402
from forensics.rulebook.load import load_rules  # noqa: E402


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--write", action="store_true")
    asked.add_argument("--only", default="")
    asked.add_argument("--find", action="store_true")
    given = asked.parse_args()
    shelf = Shelf(given.folder)
    rules = load_rules([ROOT / "rules"]).rules
    chosen = [r for r in rules.values() if given.only in r.id]
    results = [check(r, shelf, wordings.recorded(r)) for r in chosen]
    for result in results:
        tell(result)
        if given.find:
            for pattern in result.open:
                for place in places(pattern, shelf):
                    print(f"      {pattern!r} is in {place}")
    count = Counter(state for r in results for state in r.states())
    print(", ".join(f"{word}: {count[word]}" for word in sorted(count)))
    if given.write:
        wordings.RECORD.write_text(wordings.render({r.rule.id: r.entry() for r in results}, rules), encoding="utf-8")
    return 1 if any(r.faults for r in results) else 0


def tell(result: Checked) -> None:
    for fault in result.faults:
        print(f"{result.rule.id}: {fault}")


if __name__ == "__main__":
    sys.exit(main())
