#!/usr/bin/env python3
"""Find checks of sglang whose wording a rule knows in one release and not in another.

  find_drift.py FOLDER                   groups of one check of which some releases are not matched as others are
  find_drift.py FOLDER --only RULE       only groups where a rule matches whose id contains this
  find_drift.py FOLDER --unmatched TEXT  instead: fatal checks that no rule matches, of files whose path contains this
  find_drift.py FOLDER --since 0.5.0     leave older releases out

FOLDER holds unpacked releases, `sgl-project/sglang@vRELEASE/python/sglang/…`, as for check_wordings.py. Raise, assert, log
and print statements are read with `ast`, one check is followed from release to release by its place, condition and text,
and every form of it is rendered with plausible values and asked of the rules (tools/drift). A group that is listed need
not be wrong: checks change their meaning, too, and some of what looks like one check is two. Exit code: 0.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tools"))

from drift.align import Group, groups  # noqa: E402
from drift.ask import Asked  # noqa: E402
from drift.sites import Site, sites  # noqa: E402
from drift.texts import shown  # noqa: E402

from forensics.rulebook.load import load_rules  # noqa: E402

FATAL = ("raise", "assert", "refuse")
_RELEASE = re.compile(r"sglang@v(\d+(?:\.\d+)*)(?:\.post(\d+))?$")
_ELSEWHERE = ("test/", "lang/", "multimodal_gen/", "benchmark/", "bench_")
"""Parts of the package that no server runs."""


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path)
    asked.add_argument("--only", default="")
    asked.add_argument("--unmatched", default=None)
    asked.add_argument("--since", default="0")
    given = asked.parse_args()
    rules = Asked(load_rules([ROOT / "rules"]).rules)
    found = groups(releases(given.folder, given.since))
    if given.unmatched is not None:
        for line in unmatched(found, rules, given.unmatched):
            print(line)
        return 0
    matched = drifted = 0
    for group in found:
        signals = {site: rules.signals(site) for site in group}
        every = frozenset().union(*signals.values())
        matched += bool(every)
        if any(one != every for one in signals.values()) and any(given.only in rule for rule in every):
            drifted += 1
            print("\n".join(told(group, signals, every)))
    changed = sum(len(group) > 1 for group in found)
    print(f"{len(found)} checks, {changed} of them with several forms, {matched} matched, {drifted} not alike")
    return 0


def releases(folder: Path, since: str) -> dict[str, list[Site]]:
    """The checks of each release, from the oldest on; equal files are read once."""
    read: dict[tuple[str, str], list[Site]] = {}
    found: dict[str, list[Site]] = {}
    for path in sorted(folder.glob("sgl-project/sglang@v*"), key=age):
        if age(path) < age(Path(f"sglang@v{since}")):
            continue
        held: list[Site] = []
        for file, text in sources(path / "python/sglang"):
            key = file, hashlib.sha256(text.encode()).hexdigest()
            if key not in read:
                read[key] = sites(file, text)
            held += read[key]
        found[path.name.removeprefix("sglang@v")] = held
    return found


def sources(package: Path) -> Iterator[tuple[str, str]]:
    """Path and text of each Python file of a package that a server may run."""
    for path in sorted(package.rglob("*.py")) if package.is_dir() else ():
        file = path.relative_to(package).as_posix()
        if not file.startswith(_ELSEWHERE) and "/test/" not in file:
            yield file, path.read_text(encoding="utf-8", errors="replace")


def age(path: Path) -> tuple[list[int], int]:
    """A release's place in time, by the name of its folder."""
    found = _RELEASE.search(path.name)
    return ([int(n) for n in found[1].split(".")], int(found[2] or 0)) if found else ([0], 0)


def told(group: Group, signals: dict[Site, frozenset[str]], every: Iterable[str]) -> Iterator[str]:
    """A group as text: what its forms say, in which releases, and what is not seen there."""
    yield f"# {', '.join(sorted(every))}"
    for site, held in group.items():
        missing = ", ".join(sorted(set(every) - signals[site]))
        yield f"  {place(site, held)}" + (f"   lacks {missing}" if missing else "")
        yield f"      {shown(site.text) or site.source}"


def unmatched(found: Iterable[Group], rules: Asked, part: str) -> Iterator[str]:
    """Fatal checks of which no form is matched, one line for each form."""
    for group in found:
        wanted = [site for site in group if site.kind in FATAL and part in site.file]
        if wanted and not any(rules.signals(site) for site in group):
            yield from (
                f"{place(site, group[site])}: {site.type}: {shown(site.text) or site.source}" for site in wanted
            )


def place(site: Site, held: list[str]) -> str:
    """Releases and place of a form of a check."""
    span = held[0] if len(held) == 1 else f"{held[0]} to {held[-1]}"
    return f"{span} {site.kind} {site.file} {site.scope}"


if __name__ == "__main__":
    sys.exit(main())
