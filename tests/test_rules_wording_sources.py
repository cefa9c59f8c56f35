"""`tools/check_wordings.py`: wordings are looked up in the program, and the record of that is used as long as it fits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

from wordings.align import HOLE, holds
from wordings.check import Shelf, check
from wordings.messages import read
from wordings.pattern import take_apart

from forensics.bench.wordings import NOT_READ, RECORD, Entry, digest, program_sources, recorded
from forensics.rulebook.load import load_rules
from forensics.rulebook.located import Reader
from forensics.rulebook.schema import read_rule
from forensics.schema.signal import Rule

SOURCE = "own/program@v1/odd.py"
RULE = """
id: odd-size
title: Odd
match: {any: [%s]}
role: root
docs: Odd.
sources: [%s]
"""


def rule(*patterns: str, sources: str = SOURCE) -> Rule:
    quoted = ", ".join(f"'{p}'" for p in patterns)
    reader = Reader("odd-size.yaml", RULE % (quoted, sources))
    found = read_rule(reader, "runtime")
    assert found is not None, reader.problems
    return found


def shelf(folder: Path, text: str, source: str = SOURCE) -> Shelf:
    path = folder / source
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return Shelf(folder)


PROGRAM = """
def check(self, size):
    if size % 2:
        raise ValueError(f"The size {size} of {self.name} is odd; "
                         "use an even one")
    logger.warning("Took %d of %s pages", size, self.pages)
    logger.info("{} tokens are free".format(size))
    assert self.total_width % size == 0
    raise KeyError(size)
"""


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"The size \d+ of \S+ is odd; use an even one", True),
        (r"ValueError: The size (?P<size>\d+) of", True),
        (r"torch\.exc\.OddError: The size \d+ of", True),
        (r"Took \d+ of \w+ pages", True),
        (r"\d+ tokens are free", True),
        (r"total_width % size == 0", True),
        (r"KeyError: \d", True),
        (r"check \(", True),
        (r"odd\.py", True),
        (r"The size of \S+ is even", False),
        (r"is odd.*The size", False),
        (r"Gave \d+ of \w+ pages", False),
        (r"unheard of", False),
    ],
)
def test_a_wording_is_found_where_a_message_has_its_literal_parts(pattern: str, found: bool, tmp_path: Path) -> None:
    result = check(rule(pattern), shelf(tmp_path, PROGRAM), None)
    assert (result.found == [0]) is found
    assert bool(result.faults) is not found


def test_sides_of_an_alternation_that_no_source_holds_are_told(tmp_path: Path) -> None:
    result = check(rule(r"The size \d+ of \S+ is (?:odd|uneven); use"), shelf(tmp_path, PROGRAM), None)
    assert (result.found, result.missing) == ([0], {0: ["uneven"]})
    assert result.states() == ["found in part"]


def test_texts_of_other_languages_and_of_libraries(tmp_path: Path) -> None:
    source = "own/program@v1/csrc/odd.cpp"
    text = 'CHECK(n > 0, "The buffer " "of ", name, " is full");\nLOG(WARNING) << "Rank " << rank << " waits";\n'
    found = check(
        rule(r"buffer of \S+ is full", r"Rank \d+ waits", "n > 0", sources=source), shelf(tmp_path, text, source), None
    )
    assert found.found == [0, 0, 0]
    strings = shelf(tmp_path / "lib", "The buffer of \n is full\n", "own/program@v2/strings.txt")
    library = rule(r"buffer of \S+ is full", "Rank waits", sources="own/program@v2/lib/libodd.so")
    assert check(library, strings, None).found == [0, NOT_READ]


def test_what_a_language_prints_by_itself(tmp_path: Path) -> None:
    source = "own/program@v1/src/types.rs"
    text = """
#[derive(Debug, Clone)]
#[serde(tag = "type")]
pub enum Mode {
    /// Plain
    Regular {
        /// Where they are
        urls: Vec<String>,
        size: usize,
    },
}
#[derive(Clone)]
pub struct Hidden {
    name: String,
}
"""
    found = rule(r"Regular \{ urls: \[\], size: \d", r"Hidden \{ name: ", sources=source)
    assert check(found, shelf(tmp_path, text, source), None).found == [0, NOT_READ]
    python = "class OddError(Exception):\n    pass\n"
    named = rule(r"own\.odd\.OddError", r"own\.odd\.EvenError", sources="own/program@v1/own/odd.py")
    assert check(named, shelf(tmp_path, python, "own/program@v1/own/odd.py"), None).found == [0, NOT_READ]


def test_a_hole_takes_what_another_stated_source_prints(tmp_path: Path) -> None:
    first = shelf(tmp_path, 'logger.error(f"Cannot ask {address}: {error}")\n')
    other = "own/system@v1/errors.h"
    shelf(tmp_path, '_S(ECONNREFUSED, N_("Connection refused"))\n', other)
    pattern = "Cannot ask .*Connection refused"
    assert check(rule(pattern), first, None).found == [NOT_READ]
    assert check(rule(pattern, sources=f"{SOURCE}, {other}"), Shelf(tmp_path), None).found == [0]


def test_a_source_of_one_wording_is_no_source_of_another(tmp_path: Path) -> None:
    own = "{of: 'Took', in: own/program@v1/odd.py}"
    found = rule(r"Took \d+ of", r"tokens are free", sources=own)
    assert found.sources == (SOURCE,)
    assert found.wordings == ((r"Took \d+ of", SOURCE),)
    assert check(found, shelf(tmp_path, PROGRAM), None).found == [0, NOT_READ]


def test_a_source_for_a_wording_that_is_not_there_is_refused() -> None:
    reader = Reader("odd-size.yaml", RULE % ("'Took'", "{of: 'Gave', in: own/program@v1/odd.py}"))
    read_rule(reader, "runtime")
    assert [p.code for p in reader.problems] == ["R113"]


def test_what_the_folder_lacks_keeps_what_the_record_says(tmp_path: Path) -> None:
    before = Entry((0, NOT_READ), {})
    result = check(rule("Took", "Gave"), Shelf(tmp_path), before)
    assert result.found == [0, NOT_READ]
    gone = check(rule("Took"), shelf(tmp_path, "pass\n"), Entry((0,), {}))
    assert gone.found == [NOT_READ]


def test_wrong_files_and_releases_are_told(tmp_path: Path) -> None:
    stated = f"{SOURCE}, own/program@v1/other.py, own/program@v9/odd.py"
    result = check(rule("Took", sources=stated), shelf(tmp_path, PROGRAM), None)
    assert result.found == [0]
    assert result.faults == [
        "own/program@v1/other.py: the release has no such file",
        "own/program@v9/odd.py: this release is not in the folder",
    ]


def test_patterns_are_taken_apart() -> None:
    taken = take_apart(r"(?i)^No (?:prefill|decode) workers? of \d+ left$")
    assert taken.fold
    assert sorted(taken.branches.values()) == ["decode", "prefill"]
    assert ("No prefill workers of ", " left") in {e.fragments for e in taken.expansions}


def test_a_value_may_stand_in_a_hole_but_not_the_whole_message() -> None:
    assert holds(f"'{HOLE}' object has no attribute '{HOLE}'", ("'list' object has no attribute 'tolist'",))
    assert not holds(f"{HOLE}: {HOLE}", ("No space left on device",))


def test_newer_syntax_is_read_by_its_literals(tmp_path: Path) -> None:
    path = tmp_path / "new.py"
    path.write_text('raise ValueError("broken " "in two"\nthis is no python(\n')
    assert any("broken in two" in m for m in read(path).messages)


def test_the_record_fits_the_shipped_rules() -> None:
    rules = load_rules([Path(__file__).parents[1] / "rules"]).rules
    known = {name: entry for name, r in rules.items() if (entry := recorded(r)) is not None}
    assert len(known) > 200, "run tools/check_wordings.py FOLDER --write"
    for name, entry in known.items():
        sources = program_sources(rules[name])
        assert len(entry.numbers) == len(rules[name].patterns)
        assert all(
            n == NOT_READ or sources[n] in rules[name].stated_for(p)
            for n, p in zip(entry.numbers, rules[name].patterns, strict=True)
        )
    text = RECORD.read_text(encoding="utf-8")
    assert all(f'"{name}":["{digest(rules[name])}"' in text for name in known)
