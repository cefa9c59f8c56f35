"""tools/find_drift.py on a small package: one check is followed through its releases, and asked of the rules in each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from drift.align import groups  # noqa: E402
from drift.sites import sites  # noqa: E402
from drift.texts import shown  # noqa: E402
from drift.values import rendered  # noqa: E402

OLD = """
class Pool:
    def alloc(self, n):
        if n > self.room:
            raise RuntimeError("Failed to retract any request. Room: %d" % self.room)
        assert n % self.page == 0
"""
NEW = """
class Pool:
    def alloc(self, n):
        if n > self.room:
            msg = f"Nothing could be retracted, not even one request. {self.room=}"
            raise RuntimeError(msg)
        assert n % self.page == 0, "n is no multiple of the page"
"""


def package(folder: Path, release: str, text: str) -> None:
    home = folder / f"sgl-project/sglang@v{release}/python/sglang/srt"
    home.mkdir(parents=True)
    (home / "pool.py").write_text(text)


def test_texts_conditions_and_places_are_read() -> None:
    found = sites("srt/pool.py", NEW)
    assert [(s.kind, s.type, s.scope, s.condition) for s in found] == [
        ("raise", "RuntimeError", "Pool.alloc", "n > self.room"),
        ("assert", "AssertionError", "Pool.alloc", "n % self.page == 0"),
    ]
    assert shown(found[0].text) == "Nothing could be retracted, not even one request. self.room={self.room}"


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ('raise ValueError("a " + f"{b}" + " c")', "a {b} c"),
        ('raise ValueError("a {} {d}".format(b, d=e))', "a {b} {e}"),
        ('raise ValueError("a ", f"{b}")', "('a ', '{b}')"),
        ('logger.error("a %s of %d", b, c)', "a {b} of {c}"),
        ('log_info_on_rank0(logger, "a line")', "a line"),
        ('parser.error("a line")', "a line"),
    ],
)
def test_ways_to_make_a_text(statement: str, text: str) -> None:
    assert [shown(s.text) for s in sites("x.py", statement)] == [text]


def test_a_conditional_text_is_two() -> None:
    assert [s.text for s in sites("x.py", 'raise ValueError("one" if a else "two")')] == ["one", "two"]


def test_values_fit_their_names() -> None:
    (text,) = [s.text for s in sites("x.py", 'raise ValueError(f"{self.tp_size} on {model_path} with {dtype}")')]
    assert rendered(text)[0] == "48 on /models/example/part.bin with torch.bfloat16"


def test_one_check_is_followed_by_condition_and_text() -> None:
    found = groups({"1.0": sites("srt/pool.py", OLD), "1.1": sites("srt/pool.py", NEW)})
    assert [(site.kind, releases) for group in found for site, releases in group.items()] == [
        ("raise", ["1.0"]),
        ("raise", ["1.1"]),
        ("assert", ["1.0"]),
        ("assert", ["1.1"]),
    ]
    assert len(found) == 2


def test_wordings_that_only_one_release_matches_are_listed(tmp_path: Path) -> None:
    package(tmp_path, "1.0", OLD)
    package(tmp_path, "1.0.post1", OLD.replace("Failed to retract any", "Could not retract any"))
    command = [sys.executable, str(ROOT / "tools/find_drift.py"), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "# kv-retract-failed" in said
    assert "1.0.post1 raise srt/pool.py Pool.alloc   lacks kv-retract-failed" in said
    assert said.endswith("2 checks, 1 of them with several forms, 1 matched, 1 not alike\n")


def test_checks_that_no_rule_matches_are_listed(tmp_path: Path) -> None:
    package(tmp_path, "1.0", OLD)
    command = [sys.executable, str(ROOT / "tools/find_drift.py"), str(tmp_path), "--unmatched", "pool"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said == "1.0 assert srt/pool.py Pool.alloc: AssertionError: assert n % self.page == 0\n"
