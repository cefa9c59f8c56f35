"""The HTML page: in a real browser, with hostile text, on every width, and never too big."""

import builtins
import importlib.util
import itertools
import json
import re
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path

import pytest
from chromium import BINARY, Browser
from report_example import HOSTILE, example

from forensics.analysis import analyze
from forensics.errors import UsageError
from forensics.output.charts import stretches
from forensics.output.formats import check_format, render
from forensics.output.html import render as as_html
from forensics.schema.report import LaneInfo, LaneMark, LineText, SeriesInfo, StageSpan, TimelineInfo

SAMPLES = Path(__file__).parents[1] / "samples"
in_browser = pytest.mark.skipif(BINARY is None, reason="no Chromium on this machine")


def busy(text: str = "CUDA error: device-side assert triggered", ranks: int = 8, points: int = 200):
    """The example report with lanes, series and lines of context, `text` wherever a log's text goes."""
    report = example(text)
    launch = report.launches[0]
    names = [f"TP{n}" for n in range(ranks)]
    lanes = [
        LaneInfo(
            rank=name,
            stages=[StageSpan(stage="config", begin=0, end=20), StageSpan(stage="load", begin=20, end=200), StageSpan(stage="serving", begin=200, end=4000)],
            marks=[LaneMark(failure="L1.F1" if name == "TP3" else "L1.F2", role="root" if name == "TP3" else "cascade", line=47, time=3990.5)],
            silences=[(3000.0, 3400.0)], last=3995.0,
        )
        for name in names
    ]  # fmt: skip
    series = [
        SeriesInfo(kind="decode", metric=metric, rank=name, points=10**6, times=[200 + 19.0 * k for k in range(points)], values=[float(k % 37) for k in range(points)])
        for metric in ("throughput", "token_usage", "running", "queue") for name in names
    ]  # fmt: skip
    excerpts = [LineText(path="logs/ser ver,1.log", line=n, text=f"{n} {text}") for n in range(1, 100)]
    timeline = TimelineInfo(begin=1.7e9, end=4000, failed=3990.5, lanes=lanes, silences=[(3500.0, 3600.0)])
    fresh = launch.model_copy(update={"timeline": timeline, "series": series, "excerpts": excerpts})
    return report.model_copy(update={"launches": [fresh]})


@pytest.fixture(scope="module")
def browser():
    with Browser() as found:
        yield found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(as_html(busy(HOSTILE)), "utf-8")
    return path


@in_browser
def test_hostile_text_runs_nothing_and_asks_for_nothing(browser, hostile):
    browser.open(hostile, 1280)
    assert browser.requests() == [hostile.resolve().as_uri()]
    assert not browser.seen("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
    assert not browser.seen("Log.entryAdded")
    assert browser.ask("document.querySelectorAll('script, img, iframe, object, form, [onerror], [style]').length") == 0
    assert browser.ask("[...document.querySelectorAll('a')].every(a => a.getAttribute('href').startsWith('#'))")
    assert browser.ask("document.body.innerText.includes('<script>alert(1)</script>')")


@in_browser
def test_the_policy_stops_a_script_that_would_get_in(browser, hostile, tmp_path):
    page = tmp_path / "broken.html"
    broken = hostile.read_text("utf-8").replace(
        "</main>",
        "<script>document.title='ran'</script><img src='http://127.0.0.1:9/x.png' onerror=\"document.title='ran'\"></main>",
    )
    page.write_text(broken, "utf-8")
    browser.open(page, 1280)
    assert browser.ask("document.title") != "ran"
    assert [e.get("blockedReason") for e in browser.seen("Network.loadingFailed")] == ["csp"]
    assert browser.seen("Log.entryAdded")


@in_browser
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_the_page_never_scrolls_sideways(browser, hostile, width):
    browser.open(hostile, width)
    assert browser.ask("innerWidth") == width
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.ask("document.documentElement.scrollWidth") <= width
    assert browser.ask("document.body.scrollWidth") <= width


@in_browser
def test_it_reads_the_same_without_scripts(browser, hostile):
    browser.open(hostile, 1280)
    words = browser.ask("document.body.innerText")
    browser.open(hostile, 1280, script=False)
    assert browser.ask("document.body.innerText") == words
    assert "First failure" in words and "Ruled out" in words


@in_browser
def test_the_style_applies_and_follows_the_colour_scheme(browser, hostile):
    browser.open(hostile, 1280)
    light = browser.ask("getComputedStyle(document.body).backgroundColor")
    browser.open(hostile, 1280, dark=True)
    assert light == "rgb(251, 251, 250)" and browser.ask("getComputedStyle(document.body).backgroundColor") != light


@in_browser
def test_print_shows_what_is_folded(browser, hostile):
    hidden = "[...document.querySelectorAll('details:not([open]) > .inside')].filter(e => e.checkVisibility({contentVisibilityAuto: true}) && e.getBoundingClientRect().height > 0).length"
    browser.open(hostile, 900)
    folded = browser.ask("document.querySelectorAll('details:not([open]) > .inside').length")
    assert folded > 0 and browser.ask(hidden) == 0
    browser.open(hostile, 900, media="print")
    assert browser.ask(hidden) == folded


@in_browser
def test_every_fold_and_every_scrolling_box_is_reached_by_the_keyboard(browser, hostile):
    browser.open(hostile, 1280)
    assert browser.ask(
        "[...document.querySelectorAll('.code, .scroll')].every(e => e.tabIndex === 0 && e.getAttribute('aria-label'))"
    )
    browser.call("Input.dispatchKeyEvent", type="rawKeyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
    assert browser.ask("document.activeElement.className") == "skip"
    assert browser.ask("document.activeElement.getBoundingClientRect().left >= 0")
    assert browser.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"


CONTRAST = """(() => {
  const rgb = text => { const v = text.match(/[\\d.]+/g).map(Number); return text.startsWith('color(') ? [...v.slice(0, 3).map(x => 255 * x), v[3] ?? 1] : [v[0], v[1], v[2], v[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * under[i]).concat(1);
  const light = c => { const [r, g, b] = c.map(x => { x /= 255; return x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg') || ![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.checkVisibility()) continue;
    const chain = [];
    for (let x = e; x; x = x.parentElement) chain.unshift(x);
    let ground = [255, 255, 255, 1], solid = 1;
    for (const x of chain) { const style = getComputedStyle(x); ground = over(rgb(style.backgroundColor), ground); solid *= Number(style.opacity); }
    const ink = rgb(getComputedStyle(e).color); ink[3] *= solid;
    const [a, b] = [light(over(ink, ground)), light(ground)].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) bad.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)} ${e.textContent.trim().slice(0, 30)}`);
  }
  return [...new Set(bad)];
})()"""


@in_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("log", ["saga/session.log", "run-gpu2-tp2_sigstop_rank1/log.txt"])
def test_all_text_stands_out_from_its_ground(browser, tmp_path, log, dark):
    page = tmp_path / "report.html"
    page.write_text(as_html(analyze([str(SAMPLES / "cases" / log)])), "utf-8")
    browser.open(page, 1280, dark=dark)
    browser.ask("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert browser.ask(CONTRAST) == []


def test_headings_go_down_one_step_at_a_time():
    levels = [int(n) for n in re.findall(r"<h([1-6])[ >]", as_html(busy()))]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))


def test_ids_are_unique_and_links_lead_somewhere():
    text = as_html(busy())
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) <= set(ids)


def test_the_policy_names_exactly_the_style_sheet_of_the_page():
    text = as_html(busy())
    style = re.search(r"<style>(.*?)</style>", text, re.S)[1]
    assert f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}" in text
    assert (
        "unsafe" not in text
        and "<script" not in text
        and "http" not in re.search(r"<head>.*?</head>", text, re.S)[0].replace("http-equiv", "")
    )


def test_equal_reports_give_equal_bytes():
    assert as_html(busy(HOSTILE)) == as_html(busy(HOSTILE))


def test_many_ranks_and_many_points_stay_under_three_megabytes():
    text = as_html(busy("x" * 400, ranks=64, points=200))
    assert len(text.encode()) < 3_000_000
    assert "60 other ranks" in text or "other ranks" in text


def test_the_page_does_not_grow_with_the_log(tmp_path):
    sizes = []
    for megabytes in (1, 6):
        path = tmp_path / f"{megabytes}.log"
        made = [sys.executable, str(SAMPLES.parent / "benchmarks/generate.py"), str(path), str(megabytes)]
        subprocess.run(made, check=True, capture_output=True)
        sizes.append(len(as_html(analyze([str(path)])).encode()))
    assert max(sizes) < 600_000 and sizes[1] < 1.5 * sizes[0], sizes


def test_a_real_log_shows_lanes_attempts_and_differences():
    text = as_html(analyze([str(SAMPLES / "cases/saga/session.log")]))
    assert text.count('class="lane ') >= 8
    for part in (
        "Ranks over time",
        "Tried",
        "Against the nearest launch known to work",
        "Ruled out",
        "Next",
    ):
        assert part in text, part
    assert len(text.encode()) < 500_000


def test_a_real_log_under_load_shows_its_figures():
    report = analyze([str(SAMPLES / "cases/run-gpu2-tp2_sigstop_rank1/log.txt")])
    text = as_html(report)
    assert text.count('class="chart"') >= 3 and 'class="s-fail"' in text
    assert all(len(s.times) <= 202 and len(s.times) == len(s.values) for s in report.launches[0].series)


def test_a_log_without_times_or_failures_is_a_page_too(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("server_args=ServerArgs(model_path='m', tp_size=2)\nLoad weight begin. avail mem=10.00 GB\n")
    assert "<h1>" in as_html(analyze([str(path)]))


def test_a_missing_extra_is_a_clear_message(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name == "matplotlib" else real(name, *a))
    with pytest.raises(UsageError) as caught:
        check_format("html")
    assert "sglang-forensics[html]" in caught.value.render()


def test_other_formats_do_not_load_the_extra(monkeypatch):
    real = builtins.__import__

    def guard(name, *rest, **more):
        assert name.split(".")[0] not in ("matplotlib", "jinja2"), name
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", guard)
    text = render(busy(), "json", width=80, color=False, detail=0, brief=False, quiet=False, max_bytes=40_000)
    omitted = json.loads(text)["omitted"]
    assert omitted[0].startswith("32 series") and len(text) <= 40_000


def test_no_line_is_drawn_across_a_silence():
    series = SeriesInfo(kind="decode", metric="throughput", rank="TP0", points=6, times=[0, 1, 2, 30, 31, 60], values=[5, 6, 7, 1, 2, 3])  # fmt: skip
    assert list(stretches(series, [(2.0, 30.0), (31.5, 59.0)])) == [
        ([0, 1, 2], [5, 6, 7]), ([30, 31], [1, 2]), ([60], [3]),
    ]  # fmt: skip
    assert list(stretches(series, [])) == [(series.times, series.values)]
