"""One healthy start-up and some serving in the words of every release: no failure, every line understood."""

from pathlib import Path

import pytest

from forensics import analyze

FORMATS = sorted((Path(__file__).parent.parent / "samples" / "formats").glob("*.log"))


@pytest.mark.parametrize("path", FORMATS, ids=lambda path: path.stem)
def test_a_healthy_log_of_every_release(path):
    report = analyze(path)
    (launch,) = report.launches
    assert (launch.reached, launch.ended, launch.first_failure) == ("serving", "running", None)
    assert launch.hypotheses == [] and launch.ranks.missing == []
    (source,) = report.sources
    assert source.unparsed_lines <= 0.02 * source.lines
