"""Log blocks of findings, and look-alikes: each page names the other, says what tells them apart, and has the other's logs
as near misses."""

from __future__ import annotations

from pathlib import Path

import pytest
from kb_files import FINDING, finding_file, small_base, write

from forensics.cli.main import run
from forensics.knowledge.library import Library
from forensics.knowledge.proof import cross_fire, faults
from forensics.knowledge.proof import test_findings as run_blocks
from forensics.knowledge.rivals import test_look_alikes as against_look_alikes
from forensics.knowledge.workplace import open_workplace

TOLD = "- [widget-too-hot](widget-too-hot.md): one rank alone jams.\n"
HOT = (
    FINDING.replace("widget-without-oil", "widget-too-hot")
    .replace("The widget runs without oil", "The room is too hot")
    .replace("- args.tp_size = 2", "- args.tp_size = 4")
    .replace("tp_size=2", "tp_size=4")
    .replace("explains: [widget-jam]", "explains: [widget-jam]\nlook_alikes: [widget-without-oil]")
    .replace("turns with oil.", "turns at night.\n\n- [widget-without-oil](widget-without-oil.md): all ranks jam.")
)
OIL = FINDING.replace("explains: [widget-jam]", "explains: [widget-jam]\nlook_alikes: [widget-too-hot]").replace(
    "turns with oil.", f"turns with oil.\n\n{TOLD}"
)


@pytest.fixture(scope="module")
def shipped() -> Library:
    return open_workplace().library


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    kb = small_base(tmp_path)
    finding_file(kb).write_text(OIL)
    write(kb / "findings" / "widget-too-hot.md", HOT)
    return kb


def test_shipped_look_alikes_name_each_other(shipped: Library) -> None:
    pairs = [(f.id, n) for f in shipped.findings.values() for n in f.look_alikes]
    assert len(pairs) > 400
    assert {(b, a) for a, b in pairs} == set(pairs)


def test_the_log_blocks_of_the_shipped_findings_behave(shipped: Library) -> None:
    assert [p.render() for p in run_blocks(shipped.findings.values(), shipped)] == []


@pytest.mark.slow
def test_no_finding_fires_across_the_samples(shipped: Library) -> None:
    shots = list(cross_fire(shipped))
    assert len({s.sample for s in shots if s.expected}) > 150
    assert [(s.sample, s.finding, s.verdict) for s in faults(shots)] == []


def test_no_shipped_finding_wins_in_the_log_of_a_look_alike(shipped: Library) -> None:
    found = [p.render() for p in against_look_alikes(shipped.findings.values(), shipped)]
    assert found == []


def test_a_good_pair_passes(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(p) for p in sorted((pair / "findings").iterdir())]
    assert run(["kb", "lint", *files]) == 0, capsys.readouterr().out
    assert run(["kb", "test", *files]) == 0, capsys.readouterr().out


def test_a_look_alike_that_is_only_named_is_refused(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding_file(pair).write_text(OIL.replace(TOLD, ""))
    assert run(["kb", "lint", str(finding_file(pair))]) == 1
    said = capsys.readouterr().out
    assert "[F317]" in said and "`- [widget-too-hot](widget-too-hot.md): its sign`" in said


def test_a_finding_that_takes_its_look_alikes_log_is_refused(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    finding_file(pair).write_text(
        OIL.replace(
            "    - args.tp_size = 2\n  strong:\n    - widget-jam on every rank", "  decisive:\n    - widget-jam"
        )
    )
    assert run(["kb", "test", str(finding_file(pair))]) == 1
    said = capsys.readouterr().out
    assert "[L409]" in said and "the log of its look-alike `widget-too-hot`" in said
    assert f"{finding_file(pair)}:" in said and "what tells them apart" in said
