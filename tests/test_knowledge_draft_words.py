"""Drafts from messages of several lines, what they hide, and how search ranks what a line alone cannot prove."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from kb_files import finding_file, rule_file, small_base, write

from forensics.cli.main import run
from forensics.knowledge.draft import NewFile, open_pattern, slug, title_of
from forensics.knowledge.draft_check import checked
from forensics.knowledge.draft_frame import check_pattern, origin_of
from forensics.knowledge.draft_mask import Hidden
from forensics.knowledge.finding import check_finding
from forensics.knowledge.library import library
from forensics.knowledge.privacy import leaks
from forensics.knowledge.search import SURE, needs, search
from forensics.knowledge.speaker import family_of
from forensics.knowledge.store import load
from forensics.rulebook.patterns import compiled
from forensics.schema.options import Options

SAID = """torch._dynamo.exc.Unsupported: Attempted to trace a gizmo
  Explanation: a gizmo has no trace
  Hint: leave it out
"""
LOG = f"""\
[2027-02-03 04:05:06] server_args=ServerArgs(model_path='/models/tiny', host='10.20.30.40', port=30000, tp_size=1, \
dist_init_addr='gpu-node-17:5000', enable_torch_compile=True, disable_cuda_graph=False)
[2027-02-03 04:05:16 TP0] Load weight begin. avail mem=78.41 GB
[2027-02-03 04:05:26 TP0] Load weight end. type=TinyForCausalLM, dtype=torch.bfloat16, avail mem=73.90 GB, \
mem usage=4.51 GB.
[2027-02-03 04:05:36 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=15.12 GB
[2027-02-03 04:05:46 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/home/alice/sglang/srt/model_executor/cuda_graph_runner.py", line 366, in __init__
    self.capture()
{SAID}
"""


def test_a_message_of_several_lines_gives_a_draft_that_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("server.log"), LOG)
    run(["analyze", "server.log", "--format", "json", "-o", "report.json"])
    assert run(["kb", "new", "--from", "report.json", "--into", "kb"]) == 0
    said = capsys.readouterr().err
    assert "does not match" not in said
    assert [line.split()[2] for line in said.split("\n") if line.startswith("    forensics kb")] == [
        "lint",
        "test",
        "similar",
        "index",
    ]
    (path,) = Path("kb/rules").glob("*/*.yaml")
    assert path.parent.name == "compile"
    (pattern,) = yaml.safe_load(path.read_text())["match"]["any"]
    assert pattern == r"torch\._dynamo\.exc\.Unsupported: Attempted to trace a gizmo"
    (page,) = Path("kb/findings").glob("*.md")
    text = page.read_text()
    found, problems = check_finding(page)
    assert found is not None, [p.render() for p in problems]
    assert "\n" not in found.title and f"# {found.title}\n" in text
    # What the analysis proposed to leave out is kept, and called untried.
    assert [c.text for c in found.grounds if c.strength == "weak"] == ["args.enable_torch_compile"]
    assert (found.fix[0].op, found.fix[0].name) == ("remove", "--enable-torch-compile")
    assert "not tried" in found.fix[0].note
    for private in ("10.20.30.40", "gpu-node-17", "alice"):
        assert private not in text
    assert "host-1.example:5000" in text and "/home/user/sglang" in text
    assert run(["kb", "test", str(page)]) == 0, capsys.readouterr().out


def test_a_drafted_pattern_that_misses_its_own_line_is_told() -> None:
    match = "```log match line=1\n[2027-02-03 04:05:06 TP0] ValueError: a gizmo is loose\n```"
    rule = "id: gizmo\ntitle: A gizmo\nmatch:\n  any:\n  - 'gizmo is {}'\nrole: root\nseverity: error\ndocs: It is.\n"
    assert checked(NewFile("rule", "runtime/gizmo.yaml", rule.format("loose")), match, 7).warning == ""
    told = checked(NewFile("rule", "runtime/gizmo.yaml", rule.format("fast")), match, 7).warning
    assert told == "the drafted pattern does not match line 7: shorten it by hand"


def test_titles_patterns_and_ids_are_of_the_first_line_and_end_with_a_word() -> None:
    assert title_of(SAID) == "Unsupported: Attempted to trace a gizmo"
    assert "\n" not in open_pattern("\n\n" + SAID) and compiled(open_pattern(SAID)).search(SAID.split("\n")[0])
    long = slug("GizmoError: the gizmo of the first layer does not have the width that the plan is asking for with two")
    assert len(long) <= 60 and long.rpartition("-")[2] not in ("with", "for", "the", "does", "is")


@pytest.mark.parametrize(
    ("said", "family"),
    [
        ("torch._inductor.exc.InductorError: x", "compile"),
        ("torch.OutOfMemoryError: x", "memory"),
        ("torch.distributed.DistBackendError: x", "distributed"),
        ("jinja2.exceptions.TemplateError: x", "tokenizer"),
        ("ValueError: a gizmo is loose", ""),
    ],
)
def test_the_family_is_the_part_that_speaks(said: str, family: str) -> None:
    assert family_of(said) == family


def test_hosts_and_addresses_keep_apart_and_common_ones_stay() -> None:
    hide = Hidden()
    first = hide("host='10.1.2.3', dist_init_addr='rack4-n1:5000' and http://rack4-n2:8000/x at 8.8.8.8 and 9.9.9.9")
    assert first == (
        "host='10.0.0.1', dist_init_addr='host-1.example:5000' and http://host-2.example:8000/x at 192.0.2.1 and "
        "192.0.2.2"
    )
    assert hide("192.168.7.7 talks to 10.1.2.3, rack4-n2 by [fd00:12::7]:80") == (
        "10.0.0.2 talks to 10.0.0.1, rack4-n2 by [2001:db8::1]:80"
    )
    assert hide("rack4-n1:77:91 [0] NCCL INFO Bootstrap").startswith("host-1.example:77:91 [0] NCCL")
    same = "host='0.0.0.0' 127.0.0.1 172.17.0.1 169.254.1.1 host='localhost' see https://docs.python.org/3 [10:00:00]"
    assert hide(same) == same
    assert hide("/home/alice/a /Users/bob/b /home/ubuntu/c") == "/home/user/a /Users/user/b /home/ubuntu/c"


def test_a_draft_and_lint_take_the_same_accounts_for_nobody() -> None:
    for name in ("alice", "bob", "me", "you", "worker", "ubuntu", "runner", "user", "root", "app"):
        line = f"cannot read /home/{name}/model.json"
        assert (Hidden()(line) == line) == (next(leaks(line), None) is None), name
    assert next(leaks("/home/alice/x")).new == "user"


def test_a_rule_that_needs_more_than_a_line_says_so_and_comes_after_the_text(tmp_path: Path) -> None:
    kb = small_base(tmp_path)
    path = rule_file(kb)
    text = path.read_text()
    end = "\ncaptures:"
    assert text.count(end) == 1
    narrow = "\n  kinds: [exception]\n  frames: 'widget_box\\.py'\n  exception: 'ValueError'"
    path.write_text(text.replace(end, narrow + end))
    lib = library(load(Options(kb=(kb,))))
    rule = lib.rules["widget-jam"]
    assert needs(rule, "widget 9 is jammed") == [
        "a line of kind exception",
        "the exception ValueError",
        "a frame widget_box\\.py",
    ]
    (hit,) = (
        h
        for h in search(
            "widget 9 is jammed while a flux capacitor of another make overheats in the next room", lib, 300
        )
        if h.id == "widget-jam"
    )
    assert hit.score < SURE
    # Another exception than the rule's is another fault.
    hits = search("KeyError: widget 9 is jammed", lib, 300)
    assert not any(h.id == "widget-jam" and "this line" in h.why for h in hits)
    whole = search("ValueError: widget 9 is jammed", lib)
    assert whole[0].score >= SURE


def test_search_says_that_nothing_states_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kb = small_base(tmp_path)
    run(["kb", "search", "the zorp does not support running with blargs", "--kb", str(kb)])
    told = capsys.readouterr()
    assert "nothing states this message" in told.err and "satisfies the rule" not in told.out


# -- lint --fix, kb test ----------------------------------------------------------------------------------------------


def test_fix_checks_the_pages_that_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kb = small_base(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = finding_file(kb).read_text()
    other = kb / "findings" / "widget-too-cold.md"
    heading = "## How to tell it from look-alikes\n"
    assert heading in text and "look_alikes" not in text
    text = text.replace("widget-without-oil", "widget-too-cold", 1)
    told = heading + "\n- [widget-without-oil](widget-without-oil.md): it squeaks.\n"
    text = text.replace(heading, told).replace("\nsources:", "\nlook_alikes: [widget-without-oil]\nsources:", 1)
    write(other, text)
    assert run(["kb", "lint", "--fix", str(other)]) == 1
    shown = capsys.readouterr()
    assert "widget-without-oil.md" in shown.out and "F317" in shown.out


def test_a_must_that_was_not_seen_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kb = small_base(tmp_path)
    rule_file(kb).write_text(rule_file(kb).read_text().replace("is jammed", "is stuck"))
    assert run(["kb", "test", str(finding_file(kb))]) == 1
    shown = capsys.readouterr()
    assert "`must` widget-jam was not seen" in shown.out and "0 logs of look-alikes" in shown.err


def test_new_files_are_told_apart_by_their_warning() -> None:
    file = NewFile("rule", "runtime/x.yaml", "text")
    assert file.warning == "" and replace(file, warning="w") != file


BARE = [
    '  File "/opt/sglang/srt/models/tiny.py", line 88, in __init__',
    "    assert self.total_widgets % self.tp_size == 0, (",
    "AssertionError",
]


def test_a_bare_exception_is_named_by_its_check_or_else_by_its_frame() -> None:
    found = origin_of("AssertionError", BARE, 2)
    assert found is not None
    assert (found.type, found.asked) == ("AssertionError", "self.total_widgets % self.tp_size == 0")
    assert check_pattern(found.asked) == r"(?:self\.)?total_widgets % (?:self\.)?tp_size == 0"
    hidden = origin_of("AssertionError", [BARE[0], "    assert (", BARE[2]], 2)
    assert hidden is not None
    assert (hidden.asked, hidden.frame) == ("", r'tiny\.py", line \d+, in __init__')
    assert origin_of("AssertionError: too wide", BARE, 2) is None
    assert origin_of("AssertionError", ["nothing near"], 1) is None


def test_what_differs_from_launch_to_launch_is_left_open() -> None:
    said = "launch.py: error: argument --widget-backend: invalid choice: 'odd' (choose from 'even', 'prime')"
    assert open_pattern(said) == r"error: argument \S+: invalid choice"
    assert open_pattern("OSError: We couldn't reach 'a/b' and couldn't go on").startswith("OSError: We couldn't reach ")
