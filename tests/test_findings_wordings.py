"""One cause, many wordings: logs in the words of several releases, each named after its cause, put that cause first."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.analysis import read, report
from forensics.knowledge.store import Knowledge, load
from forensics.schema.options import Options

LOGS = sorted((Path(__file__).parent / "wordings").glob("*.log"))


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return load(Options())


@pytest.mark.parametrize("log", LOGS, ids=lambda p: p.stem)
def test_the_cause_in_other_words_comes_first(log: Path, knowledge: Knowledge, tmp_path: Path) -> None:
    # A neutral name, so that the file's own name cannot help.
    copy = tmp_path / "server.log"
    copy.write_bytes(log.read_bytes())
    found = report(read([str(copy)], Options(), knowledge), Options(), knowledge)
    launch = next(x for x in found.launches if x.id == found.focus)
    assert launch.hypotheses, "no hypothesis at all"
    assert launch.hypotheses[0].finding == log.name.split(".")[0]
