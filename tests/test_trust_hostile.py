"""Hostile log text through the real command line in every format: nothing in it may act."""

import csv
import io
import json
import re
import subprocess
import sys
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hostile import ATTACKS, NAMES, log, whole

from forensics.cli.main import run
from forensics.output.formats import names

HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
COMMANDS = {
    "coverage": ("coverage",),
    "coverage json": ("coverage", "--json"),
    "events jsonl": ("events",),
    "events csv": ("events", "--format", "csv"),
    "series": ("series",),
    "series jsonl": ("series", "--format", "jsonl"),
    **{name: ("analyze", "--format", name, "--launch", "all", "-v") for name in names()},
    "quiet": ("analyze", "-q"),
    "brief": ("analyze", "--brief"),
    "unmasked": ("analyze", "--no-mask", "-v"),
    "bad format": ("analyze", "--format", "\x1b[31mx"),
}
KINDS = sorted(COMMANDS)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """One log with every attack, and one for each attack alone."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "all.log").write_bytes(whole())
    for name, attack in ATTACKS.items():
        (folder / f"{name}.log").write_bytes(log(attack))
    return folder


@pytest.fixture
def call(capsys):
    """Run one command line in this process: exit code, standard output and standard error."""

    def one(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(list(argv))
        out = capsys.readouterr()
        return code, out.out, out.err

    return one


def hidden(text: str) -> set[str]:
    return {c for c in text if c != "\n" and unicodedata.category(c) in HIDDEN}


@pytest.mark.parametrize("kind", KINDS)
def test_no_control_character_gets_out(kind, logs, call):
    code, out, err = call(*COMMANDS[kind], str(logs / "all.log"))
    assert code in (0, 1, 2), err
    assert not hidden(out + err)
    assert out or err


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_each_attack_alone_changes_neither_the_reading_nor_the_end(attack, logs, call):
    code, out, err = call("analyze", "--format", "json", str(logs / f"{attack}.log"))
    assert code == 1, err
    report = json.loads(out)
    first = report["launches"][-1]["first_failure"]
    assert first is not None
    assert len(out) < 2_000_000
    assert not hidden(out)


@pytest.mark.parametrize("line", [1, 2, 4, 6, 8, 10, 13, 16])
@pytest.mark.parametrize("attack", ["ansi", "osc8", "c1", "bidi", "controls", "nul"])
def test_explain_of_a_hostile_line_is_inert(attack, line, logs, call):
    code, out, err = call("explain", f"{logs / attack}.log:{line}")
    assert code == 0, err
    assert not hidden(out + err)


class Page(HTMLParser):
    """Tags, attributes and the places that a browser would fetch or run."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            fetches = name in ("src", "href", "action", "xlink:href", "data", "srcset", "formaction", "poster")
            outside = fetches and not (value or "").startswith(("#", "https://github.com/"))
            if name.startswith("on") or outside or (name == "style" and "url(" in (value or "")):
                self.bad.append(f"{tag} {name}={value}")


def test_html_runs_and_fetches_nothing(logs, call):
    if "html" not in names():
        pytest.skip("the html extra is not installed")
    page = Page()
    page.feed(call(*COMMANDS["html"], str(logs / "all.log"))[1])
    assert not page.bad
    assert not page.tags & {"script", "img", "iframe", "object", "embed", "link", "form", "base", "foreignobject"}


@pytest.mark.parametrize("kind", ["md", "issue"])
def test_markdown_holds_no_live_markup(kind, logs, call):
    from markdown_it import MarkdownIt

    for attack in ("html", "markdown", "heading", "template"):
        text = call("analyze", "--format", kind, str(logs / f"{attack}.log"))[1]
        html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
        assert not re.search(r"<(script|img|a|svg|iframe|blockquote)\b", html), attack
        prose = re.sub(r"(?s)<pre>.*?</pre>", "", html)
        headings = re.findall(r"<h\d>(.*?)</h\d>", prose)
        assert "heading" not in headings and "two" not in headings


def test_sarif_messages_hold_no_link_and_no_placeholder(logs, call):
    data = json.loads(call(*COMMANDS["sarif"], str(logs / "all.log"))[1])
    texts: list[str] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            message = value.get("message")
            if isinstance(message, dict):
                texts.append(message["text"])
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(data["runs"][0]["results"])
    assert len(texts) > 10
    for text in texts:
        plain = text.replace("\\\\", "")
        assert not re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\(", plain), text
        assert not re.search(r"(?<!\{)\{\d+\}(?!\})", plain.replace("{{", "").replace("}}", "")), text
        for location in re.findall(r"https?://\S+", plain):
            assert "evil" in location  # shown as text only


def test_csv_cells_start_no_formula(logs, call):
    for kind in ("events csv", "series"):
        for row in csv.reader(io.StringIO(call(*COMMANDS[kind], str(logs / "all.log"))[1])):
            for cell in row:
                number = re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", cell)
                assert number or cell.lstrip()[:1] not in tuple("=+-@\t\r\uff1d\uff0b\uff0d\uff20"), cell[:80]


def test_workflow_commands_are_only_our_own(logs, call):
    out = call(*COMMANDS["github"], str(logs / "all.log"))[1]
    shape = re.compile(r"::(error|warning|notice) file=[^,:]+,line=\d+,col=\d+,title=forensics::")
    assert out
    for line in out.splitlines():
        assert shape.match(line), line
        assert "%0A" not in line.replace("%250A", "")


def test_compiler_lines_name_the_log_only(logs, call):
    path = logs / "all.log"
    for line in call(*COMMANDS["gcc"], str(path))[1].splitlines():
        assert re.match(re.escape(str(path)) + r":\d+:\d+: (error|warning|note): ", line), line


def test_junit_is_one_suite_of_our_cases(logs, call):
    suite = ET.fromstring(call(*COMMANDS["junit"], str(logs / "all.log"))[1])
    assert suite.tag == "testsuite"
    assert {case.get("classname") for case in suite} == {"forensics.launch"}
    assert {inner.tag for case in suite for inner in case} == {"failure"}


def test_log_text_is_no_template_and_no_command(logs, call, tmp_path):
    for kind in ("text", "md", "html", "json"):
        if kind in names():
            out = call(*COMMANDS[kind], str(logs / "template.log"))[1]
            assert "49" not in re.findall(r"\b49\b", out.replace("{{ 7*7 }}", "")) or "7*7" in out
            assert "{0}" in out or "\\{0\\}" in out or "{{0}}" in out
    assert not Path("/tmp/pwned").exists()


@pytest.mark.parametrize("name", NAMES)
def test_hostile_file_names_are_inert(name, tmp_path, call):
    folder = tmp_path / "d"
    folder.mkdir()
    path = folder / f"{name.replace('/', '_')}.log"
    path.write_bytes(log(b"x"))
    for kind in KINDS:
        code, out, err = call(*COMMANDS[kind], str(path))
        assert code in (0, 1, 2), (kind, err)
        assert not hidden(out + err), kind
        if kind == "github":
            assert all(
                line.startswith(("::error file=", "::warning file=", "::notice file=")) for line in out.splitlines()
            )
        if kind == "gcc":
            assert "\n::error" not in out
        if kind == "events csv":
            assert all(row["path"][:1] not in "=+-@" for row in csv.DictReader(io.StringIO(out)))
    code, out, err = call("analyze", str(folder / f"missing {name}"))
    assert code == 2
    assert not hidden(err)


def test_the_installed_command_behaves_the_same(logs):
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "analyze", str(logs / "all.log"), str(logs / "gone\x1b[31m.log")],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert not hidden((done.stdout + done.stderr).decode())


def test_a_hostile_knowledge_base_is_inert(tmp_path, call):
    """Titles, prose and patterns of a contributor: shown without control characters, run by nothing."""
    evil = "\u202egnp \x1b]8;;http://evil.example\x1b\\x <script>alert(1)</script> {0} =cmd"
    escaped = evil.encode("unicode_escape").decode().replace("\\x1b", "\\e")
    kb = tmp_path / "kb" / "findings"
    kb.mkdir(parents=True)
    rules = tmp_path / "kb" / "rules" / "kernel"
    rules.mkdir(parents=True)
    (rules / "evil-rule.yaml").write_text(
        f'id: evil-rule\ntitle: "{escaped}"\nmatch:\n  any: [illegal memory access was encountered]\n'
        f'role: root\nseverity: error\nscope: rank\ndocs: "{escaped}"\nsources: [a/b#1]\n'
    )
    (kb / "evil.md").write_text(
        f'---\nid: evil\ntitle: "{escaped}"\ncategory: kernel\nstatus: confirmed\ngrounds:\n  must: [evil-rule]\n'
        f'  decisive: [evil-rule]\nfix:\n  - {{kind: host, do: "{escaped}"}}\nverify: ["{escaped}"]\nsources: [a/b#1]\n'
        f"log_evidence: rendered\n---\n# x\n\n{evil}\n"
    )
    path = tmp_path / "server.log"
    path.write_bytes(log(b"x"))
    kb_args = ("--kb", str(tmp_path / "kb"), "--rules", str(tmp_path / "kb" / "rules"))
    for kind in names():
        code, out, err = call("analyze", "--format", kind, "-v", *kb_args, str(path))
        assert code == 1, err
        assert "gnp" in out or kind in ("gcc", "github", "issue"), kind
        assert not hidden(out), kind
    for argv in (
        ("kb", "show", "evil"),
        ("kb", "list"),
        ("kb", "search", "illegal memory"),
        ("kb", "list", "--format", "json"),
        ("kb", "show", "evil", "--format", "json"),
        ("kb", "lint"),
    ):
        code, out, err = call(*argv, *(kb_args if argv[1] != "lint" else (str(tmp_path / "kb"),)))
        assert code in (0, 1, 2), err
        assert not hidden(out + err), argv
