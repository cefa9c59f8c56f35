"""The diagnosis stays when a log is reordered, wrapped, moved, renamed, noisy, reworded or cut.

Every sample case is changed in one of the ways, by turns, so that every way is tried on some thirty logs.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import mutations
import pytest

from forensics.analysis import read, report
from forensics.knowledge.store import Knowledge, load
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo

CASES = Path(__file__).parents[1] / "samples" / "cases"
MAX_BYTES = 60_000
"""Logs beyond this size say nothing more here and take long."""
WAYS = 1
ORDER_TELLS = frozenset({"reordered"})
"""Changes after which another rank may be the first to speak."""


def sizes() -> list[str]:
    folders = sorted(p.parent for p in CASES.glob("*/truth.json") if (p.parent / "log.txt").is_file())
    return [p.name for p in folders if (p / "log.txt").stat().st_size <= MAX_BYTES]


NAMES = sizes()
STABLE = sorted(set(mutations.ALL) - {"reworded"})
CHOSEN = [(name, STABLE[(place + step) % len(STABLE)]) for place, name in enumerate(NAMES) for step in range(WAYS)]


@cache
def known() -> Knowledge:
    return load(Options())


@cache
def symptom(name: str) -> str | None:
    found = json.loads((CASES / name / "truth.json").read_text(encoding="utf-8")).get("symptom")
    return found if isinstance(found, str) else None


def text_of(name: str) -> str:
    return (CASES / name / "log.txt").read_bytes().decode("utf-8", "surrogateescape")


def diagnosed(folder: Path, text: str, stated: str | None) -> LaunchInfo:
    path = folder / "server.log"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    options = Options(symptom=stated)
    found = report(read([str(path)], options, known()), options, known())
    return next(x for x in found.launches if x.id == found.focus)


def summary(info: LaunchInfo) -> tuple[object, ...]:
    """The leading cause with its word, and the first failure's rank and stage."""
    top = next((h for h in info.hypotheses if h.verdict != "ruled-out"), None)
    first = info.first_failure
    cause = (top.finding or top.title, top.verdict) if top else ("", "")
    return (*cause, first.rank if first else None, first.stage if first else None)


_PLAIN: dict[str, LaunchInfo] = {}


def plain(name: str, folder: Path) -> LaunchInfo:
    if name not in _PLAIN:
        _PLAIN[name] = diagnosed(folder, text_of(name), symptom(name))
    return _PLAIN[name]


@pytest.mark.parametrize(("name", "mutation"), CHOSEN, ids=lambda value: str(value))
def test_mutated_logs_are_diagnosed_alike(name: str, mutation: str, tmp_path: Path) -> None:
    text = text_of(name)
    changed = mutations.ALL[mutation](text)
    if changed == text:
        return  # this log has nothing that the mutation changes
    before, after = summary(plain(name, tmp_path)), summary(diagnosed(tmp_path, changed, symptom(name)))
    if mutation in ORDER_TELLS:
        before, after = (*before[:2], before[3]), (*after[:2], after[3])
    assert after == before


@pytest.mark.parametrize("name", NAMES[::3])
def test_a_reworded_tail_names_no_other_cause_boldly_and_leaves_a_step(name: str, tmp_path: Path) -> None:
    text = text_of(name)
    changed = mutations.reworded(text)
    if changed == text:
        return
    before, info = plain(name, tmp_path), diagnosed(tmp_path, changed, symptom(name))
    after = summary(info)
    assert after[0] == summary(before)[0] or after[1] == "possible"
    assert info.next or not before.next


@pytest.mark.parametrize("name", NAMES[::4])
def test_a_cut_head_keeps_the_cause_or_says_what_is_missing(name: str, tmp_path: Path) -> None:
    whole = plain(name, tmp_path)
    if whole.first_failure is None:
        return
    lines = text_of(name).split("\n")
    cut = diagnosed(tmp_path, "\n".join(lines[max(0, whole.first_failure.where.line - 25) :]), symptom(name))
    kept = summary(cut)[0] == summary(whole)[0]
    assert kept or cut.next or cut.notes


@pytest.mark.parametrize("name", NAMES[1::4])
def test_a_cut_tail_after_the_failure_keeps_the_cause_or_says_what_is_missing(name: str, tmp_path: Path) -> None:
    whole = plain(name, tmp_path)
    if whole.first_failure is None:
        return
    lines = text_of(name).split("\n")
    cut = diagnosed(tmp_path, "\n".join(lines[: whole.first_failure.where.line + 3]) + "\n", symptom(name))
    stated = cut.first_failure is not None  # a dump cut in the middle states nothing
    assert summary(cut)[0] == summary(whole)[0] or cut.next or not stated
