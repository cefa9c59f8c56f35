"""The fleet's report as people see it: text at several widths, the page in a real browser, progress on a terminal."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from chromium import BINARY, Browser
from fleet_logs import START, Here, log
from test_output_html import CONTRAST

from forensics.fleet import progress
from forensics.fleet.group import service_of
from forensics.fleet.plan import Settings
from forensics.fleet.progress import Meter
from forensics.fleet.run import plan, run
from forensics.fleet.show import render
from forensics.fleet.summary import Summary, summarize

in_browser = pytest.mark.skipif(BINARY is None, reason="no Chromium on this machine")
FAILURES = ("odd", "none", "oom", "weights")


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Summary:
    """Eight days of three services on four machines."""
    folder = tmp_path_factory.mktemp("fleet")
    for number in range(32):
        path = folder / f"logs/chat-{'abc'[number % 3]}/node-{number % 4}/run-{number}/server.log"
        path.parent.mkdir(parents=True)
        begin = START + timedelta(days=number // 4)
        path.write_text(log(number, FAILURES[number % 4], begin=begin), encoding="utf-8")
    run(plan([str(folder / "logs")], Settings()), folder / "out", Here(), parquet=False, quiet=True)
    return summarize(folder / "out")


def test_a_service_is_the_folder_without_machines_and_runs(found):
    assert {c.services for c in found.causes} == {3}
    for name in (
        "logs/chat-a/node-1/run-7/x.log",
        "logs/chat-a/node-2/run_12/x.log",
        "logs/chat-a/node-2/attempt-3/x.log",
    ):
        assert service_of(name) == "logs/chat-a/node-#/#"
    assert service_of("llama-3/prod/x.log") != service_of("llama-4/prod/x.log")
    assert service_of("trunk-3/x.log") == "trunk-3"


@pytest.mark.parametrize("width", [80, 100, 140])
def test_text_fits_and_places_are_whole(found, width):
    rows = render(found, "text", width).splitlines()
    places = [f"{c.path}:{c.line}" for c in found.clusters]
    assert places and all(any(row.split()[-1:] == [place] for row in rows) for place in places)
    assert all(len(row) <= width for row in rows if not any(place in row for place in places))


def test_dates_of_one_year_name_it_once(found):
    text = render(found, "text", 140)
    head = next(row for row in text.splitlines() if row.strip().startswith("cause"))
    assert head.split()[-3:] == ["03-07", "03-08", "03-09"] and "All of 2026." in text


@pytest.fixture(scope="module")
def page(found, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "fleet.html"
    path.write_text(render(found, "html"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


@in_browser
@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_and_can_be_read(browser, page, width, dark):
    browser.open(page, width, dark=dark)
    assert browser.requests() == [page.resolve().as_uri()] and not browser.seen("Log.entryAdded")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask(CONTRAST) == []
    assert browser.ask("[...document.querySelectorAll('.scroll')].every(e => e.tabIndex === 0)")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_counts_and_tells_the_time_left(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", out)
    with Meter(4, 4_000_000) as meter:
        for number in range(3):
            meter.tell(1_000_000, number == 2)
        meter.bar.refresh()
    assert "3 of 4 incidents, 1 not analyzed" in out.getvalue() and "3.0/4.0 MB" in out.getvalue()


def test_progress_in_a_file_is_a_line_now_and_then(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(progress.sys, "stderr", out)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    with Meter(4, 4_000_000) as meter:
        meter.tell(1_000_000, False)
    assert out.getvalue().startswith("forensics: 1 of 4 incidents, about ") and "s left" in out.getvalue()
    with Meter(4, 4_000_000, quiet=True) as meter:
        meter.tell(1_000_000, False)
    assert out.getvalue().count("\n") == 1
