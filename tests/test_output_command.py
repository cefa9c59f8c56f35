"""The fix as a changed launch command: what is shown is what replay would run, whole, copyable, word by word."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from report_example import HOSTILE, example

from forensics.analysis import analyze
from forensics.output.command_diff import command_diff, command_diffs, same_command
from forensics.output.html import render as as_html
from forensics.output.markdown import render as as_markdown
from forensics.output.terminal import render
from forensics.output.terminal_words import stage_strip
from forensics.output.view import focus_of, live
from forensics.schema.report import FactValue

SAMPLES = Path(__file__).parents[1] / "samples"
SAGA = SAMPLES / "cases/saga/session.log"
ADDED = "SGLANG_ENABLE_JIT_DEEPGEMM=0"
_STYLES = re.compile(r"\x1b\[[\d;]*m")


@pytest.fixture(scope="module")
def saga():
    return analyze([str(SAGA)])


def fix_section(text: str) -> list[str]:
    plain = _STYLES.sub("", text)
    lines = text.splitlines()
    start = next(n for n, line in enumerate(plain.splitlines()) if line.startswith("Fix for "))
    stop = next(n for n, line in enumerate(plain.splitlines()) if n > start and not line)
    return lines[start:stop]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_plain_text_shows_the_command_before_and_after_each_on_one_line(saga, width):
    before, after = fix_section(render(saga, width=width))[-2:]
    assert before.startswith("  - python3 -m sglang.launch_server ")
    assert after == f"  + env {ADDED} {before.removeprefix('  - ')}"


def test_in_colour_the_new_words_stand_out_and_the_line_can_be_copied_as_it_is(saga):
    before, after = fix_section(render(saga, color=True))[-2:]
    assert re.search(rf"\x1b\[1;32menv {ADDED}", after)
    assert re.search(r"\x1b\[0m *python3", after)
    copied = _STYLES.sub("", after).strip()
    assert shlex.split(copied)[:3] == ["env", ADDED, "python3"]
    done = subprocess.run(["bash", "-n", "-c", copied], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert _STYLES.sub("", before).startswith("  - python3")


def test_words_that_go_are_struck_out(saga):
    launch = focus_of(saga)
    hypothesis = next(h for h in live(launch) if h.fix and h.fix[0].op == "remove")
    first = launch.model_copy(update={"hypotheses": [hypothesis]})
    report = saga.model_copy(update={"launches": [first]})
    before, after = fix_section(render(report, color=True))[-2:]
    assert re.search(r"\x1b\[(?:\d;)*9;31m--kv-cache-dtype fp8_e4m3", before)
    assert "--kv-cache-dtype" not in after


def test_the_pieces_join_to_both_commands(saga):
    diffs = [d for launch in saga.launches for h in live(launch) for d in command_diffs(h, launch)]
    assert len(diffs) > 10
    for diff in diffs:
        assert "".join(text for sign, text in diff.pieces if sign in "=-") == diff.before
        assert "".join(text for sign, text in diff.pieces if sign in "=+") == diff.after
        assert diff.before != diff.after and diff.where.line > 0


def test_the_next_step_does_not_repeat_the_command(saga):
    text = render(saga)
    assert text.count(ADDED + " python3") == 1
    assert "the command above" in text.partition("\nNext\n")[2]
    assert same_command("env A=1 run --x 'a b' --y", 'A=1 run --y --x "a b"')
    assert not same_command("run --x a", "run --x b") and not same_command("run 'a", "run a")


def test_commands_that_cannot_be_edited_safely_are_not_shown(saga):
    launch = focus_of(saga)
    best = next(h for h in live(launch) if h.fix)
    assert command_diff(best, launch) is not None
    for command in ("python3 -m sglang.launch_server --model-path m && reboot", "./start.sh", "sglang serve --api-key [masked]",
                    "python3 -m sglang.launch_server --model-path 'm", "python3 -m sglang.launch_server " + "x" * 5000):  # fmt: skip
        facts = {**launch.facts, "launch.command": FactValue(value=command)}
        assert command_diff(best, launch.model_copy(update={"facts": facts})) is None, command
    assert list(command_diffs(best, launch.model_copy(update={"facts": {}}))) == []


def test_html_and_markdown_show_it_too(saga):
    page = as_html(saga)
    assert f"<code><ins>env {ADDED} </ins>python3 -m sglang" in page
    text = as_markdown(saga)
    assert f"+ env {ADDED} python3 -m sglang.launch_server" in text
    assert text.count("- python3 -m sglang.launch_server") == 1


def test_hostile_commands_stay_inert():
    for color in (False, True):
        text = render(example(HOSTILE), color=color)
        assert "\x1b]" not in text and "\x9b" not in text


def test_the_stage_where_it_broke_is_red_in_the_strip(saga):
    broken, going = saga.launches[1], saga.launches[5]
    for width, cells in ((80, "■"), (140, "graph-capture 0 %")):
        course, end = stage_strip(broken, width)
        red = [course.plain[s.start : s.end] for s in course.spans if str(s.style).endswith("red")]
        assert "".join(red) == cells and str(end.style).endswith("red")
        assert not any(str(s.style).endswith("red") for s in stage_strip(going, width)[0].spans)
    rows = render(saga).partition("\nLaunches\n")[2].partition("\n\n")[0].splitlines()
    assert len({re.search("[✗·]", row).start() for row in rows}) == 1
