"""The terminal report: what fits on a line, what is named in full, what is left for -v, and the progress bar."""

import contextlib
import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from report_example import HOSTILE, example

from forensics.analysis import analyze
from forensics.cli.progress import LONG, Bar
from forensics.output.terminal import BRIEF_LINES, render
from forensics.output.terminal_words import rank_ranges
from forensics.schema.options import Options

SAMPLES = Path(__file__).parents[1] / "samples"
SAGA = SAMPLES / "cases/saga/session.log"


@pytest.fixture(scope="module")
def saga():
    return analyze([str(SAGA)])


def section(text: str, title: str) -> list[str]:
    """Lines under a heading, up to the next blank line."""
    rest = text.partition(f"\n{title}\n")[2]
    return rest.partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("width", [60, 80, 140])
def test_every_launch_is_one_line(saga, width):
    rows = section(render(saga, width=width), "Launches")
    assert [re.match(r"[▸ ] (L\d)", row)[1] for row in rows] == ["L1", "L2", "L3", "L4", "L5", "L6"]
    assert all(len(row) <= width for row in rows)
    assert rows[4].startswith("▸ L5") and "crashed in decode" in rows[4]


def test_three_lines_stand_before_and_after_the_first_failure(saga):
    rows = section(render(saga), "First failure")
    numbers = [int(n) for row in rows for n in re.findall(r"(\d+) │", row)]
    assert numbers == list(range(2077, 2084))
    assert sum("▸ 2080" in row for row in rows) == 1


def test_every_place_is_once_named_so_that_it_can_be_opened(saga):
    text = render(saga, detail=1)
    flat = re.sub(r"\s+", " ", text)
    full = set(re.findall(r"session\.log:(\d+):\d+", flat))
    short = set(re.findall(r"\bline (\d+)\b(?!,)", flat.partition("Causes")[2].partition("Facts")[0]))
    assert short and short <= full


def test_facts_leave_out_what_says_nothing_and_count_it():
    report = analyze([str(SAMPLES / "cases/run-gpu2-tp2_sigstop_rank1/log.txt")])
    rows = section(render(report, detail=1), "Facts")
    assert rows[0] == f"  places are line:column of {report.launches[0].path}" or rows[0].startswith("  places are")
    assert any(re.fullmatch(r"  args\.mem_fraction_static +0\.3  10:795", row) for row in rows)
    assert not any(row.startswith(("  args.api_key ", "  args.disable_radix_cache ", "  args.dtype ")) for row in rows)
    left = int(re.fullmatch(r"  (\d+) more arguments are unset, off or the release's default", rows[-1])[1])
    named = [row for row in rows if re.match(r"  [a-z]+\.\w", row)]
    assert len(named) + left == len(report.launches[0].facts)


def test_grounds_speak_in_words_not_in_ids(saga):
    causes = "\n".join(section(render(saga), "Causes"))
    assert "The sampler was handed NaN" in causes
    assert "nan-probabilities" not in causes and "args." not in causes


@pytest.mark.parametrize(
    "name",
    [
        "cases/saga/session.log",
        "cases/b-paged-decode-oom-2048-free/log.txt",
        "cases/run-gpu2-nn2_node1_missing/log.txt",
    ],
)
@pytest.mark.parametrize("width", [80, 140])
def test_brief_is_one_screen_with_the_next_step(name, width):
    text = render(analyze([str(SAMPLES / name)]), width=width, brief=True)
    assert text.count("\n") <= BRIEF_LINES
    assert "\nNext\n" in text and "\nFirst failure\n" in text


def test_brief_holds_for_hostile_text_as_well():
    assert render(example(HOSTILE * 5), brief=True).count("\n") <= BRIEF_LINES


def test_missing_ranks_are_named_as_ranges():
    assert rank_ranges(["TP0", "TP1", "TP2", "TP5", "TP7", "TP8"]) == "TP0–TP2, TP5, TP7, TP8"
    assert rank_ranges(["DP0 TP0", "DP0 TP1", "DP0 TP2", "DP1 TP0"]) == "DP0 TP0–DP0 TP2, DP1 TP0"
    assert rank_ranges([f"TP{n}" for n in range(0, 40, 2)]).endswith("and 12 more")
    assert "TP1 never reported (1 of 2 ranks seen)" in render(example())


def test_the_scan_tells_how_far_it_is(tmp_path):
    path = tmp_path / "server.log"
    path.write_text(SAGA.read_text() * 3)
    told = []
    plain = analyze([str(path)], Options(chunk_bytes=65536))
    heard = analyze([str(path)], Options(chunk_bytes=65536, progress=lambda *x: told.append(x)))
    assert heard == plain
    assert told[0][1] == 0 and told[-1][1] == told[-1][2] == path.stat().st_size
    assert [x[1] for x in told] == sorted(x[1] for x in told) and len(told) > 5


def test_the_bar_shows_bytes_only_for_long_inputs():
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    bar = Bar(out)
    bar.tell("a", 0, LONG // 2)
    assert bar.drawn is None
    bar.tell("b", 0, LONG)
    bar.tell("b", LONG // 2, LONG)
    bar.stop()
    assert "MB" in out.getvalue()


def test_no_bar_where_standard_error_is_no_terminal():
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "analyze", "--quiet", str(SAGA)], capture_output=True, text=True
    )
    assert done.returncode == 1 and done.stderr == ""


def test_a_terminal_sees_bytes_and_time_left_and_a_pipe_the_report_alone(tmp_path):
    path = tmp_path / "server.log"
    line = "[2026-05-02 10:00:00 TP0] Decode batch, #running-req: 3, #token: 512, token usage: 0.25, cuda graph: True, gen throughput (token/s): 812.50, #queue-req: 3\n"
    path.write_text(SAGA.read_text() + line * (LONG // len(line) + 1000))
    ours, theirs = pty.openpty()
    said = tmp_path / "said"
    with said.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "forensics", "analyze", "--brief", str(path)],
            stdout=out, stderr=theirs, env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )  # fmt: skip
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a pseudo-terminal
            while data := os.read(ours, 4096):
                shown += data
        assert process.wait() == 1
    os.close(ours)
    assert re.search(rb"reading .*[\d.]+/[\d.]+ MB.*(\d\d:\d\d|--:--)", shown)
    assert b"\x1b" not in said.read_bytes() and b"First failure" in said.read_bytes()


def test_issue_is_an_alias_and_names_only_what_was_set():
    log = str(SAMPLES / "cases/b-paged-decode-oom-2048-free/log.txt")
    run = [sys.executable, "-m", "forensics", "analyze", log]
    text = subprocess.run([*run, "--issue"], capture_output=True, text=True).stdout
    assert text == subprocess.run([*run, "--format", "issue"], capture_output=True, text=True).stdout
    command = re.search(r"python3 -m sglang\.launch_server .*", text)[0]
    assert "--page-size 64" in command and "None" not in command and "--dtype auto" not in command
