"""The language server over the protocol, with pygls' client over stdio: findings, rules and logs."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from forensics.editor.context import spot
from forensics.editor.logs import Logs
from forensics.editor.tidy import tidy
from forensics.editor.units import Units

ROOT = Path(__file__).parent.parent
FINDING = ROOT / "kb/findings/deepgemm-scale-format-mismatch.md"
RULE = ROOT / "rules/numerics/nan-probabilities.yaml"
CRASH = ROOT / "samples/cases/run-gpu2-tp2_nan/log.txt"
GOOD = """---
id: odd-ranks
title: Ranks disagree
category: runtime
status: suspected
versions: ""
grounds:
  must:
    - nan-probabilities
    - args.tp_size>1   and  (nan-probabilitees)
explains: [nan-probabilities]
fix:
  - {kind: flag, op: set, name: --fp8-gemm-backend, value: triton}
verify: [it is gone]
sources: ["run: made for a test"]
log_evidence: none
---
# Ranks disagree

## What one sees

## What happens

## How to tell it from look-alikes

## Fix

## History
"""


class Session:
    """An editor in small: opens, asks, waits for diagnostics."""

    def __init__(self, root):
        self.loop = asyncio.new_event_loop()
        self.client = LanguageClient("test-editor", "1")
        self.seen = {}
        self.shown = []
        self.root = root

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params):
            self.seen.setdefault(params.uri, []).append(params.diagnostics)

        @self.client.feature(types.WINDOW_SHOW_DOCUMENT)
        def show(params):
            self.shown.append(params)
            return types.ShowDocumentResult(True)

        self.run(self._start())

    async def _start(self):
        await self.client.start_io(sys.executable, "-m", "forensics", "lsp", "--stdio")
        window = types.WindowClientCapabilities(show_document=types.ShowDocumentClientCapabilities(True))
        capabilities = types.ClientCapabilities(window=window)
        self.init = await self.client.initialize_async(
            types.InitializeParams(capabilities, root_uri=self.root.as_uri())
        )  # fmt: skip
        self.client.initialized(types.InitializedParams())

    def run(self, what):
        return self.loop.run_until_complete(asyncio.wait_for(what, 60))

    def open(self, path, text=None):
        text = path.read_bytes().decode() if text is None else text
        item = types.TextDocumentItem(path.as_uri(), "x", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return path.as_uri()

    def diagnostics(self, uri, count):
        async def wait():
            while len(self.seen.get(uri, ())) < count:
                await asyncio.sleep(0.02)

        self.run(wait())
        return self.seen[uri][-1]

    def at(self, uri, line, character):
        return {"text_document": types.TextDocumentIdentifier(uri), "position": types.Position(line, character)}

    def close(self):
        async def end():
            await self.client.shutdown_async(None)
            self.client.exit(None)
            await self.client.stop()

        self.run(end())
        self.loop.close()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A small knowledge base of one's own beside the shipped one."""
    root = tmp_path_factory.mktemp("lsp")
    (root / "kb/findings").mkdir(parents=True)
    (root / "kb/findings/odd-ranks.md").write_text(GOOD)
    shutil.copy(CRASH, root / "server.log")
    return root


@pytest.fixture(scope="module")
def editor(base):
    session = Session(base)
    yield session
    session.close()


@pytest.fixture(scope="module")
def odd(editor, base):
    uri = editor.open(base / "kb/findings/odd-ranks.md")
    editor.diagnostics(uri, 1)
    return uri


def spot_of(text, what):
    """0-based line and character of the first place of a text."""
    before = text[: text.index(what)]
    return before.count("\n"), len(before) - before.rfind("\n") - 1


# -- findings and rules ------------------------------------------------------------------------------------------


def test_diagnostics_come_as_one_types(editor, odd):
    found = editor.seen[odd][0]
    unknown = next(d for d in found if d.code == "C202")
    line, column = spot_of(GOOD, "nan-probabilitees")
    assert (unknown.range.start.line, unknown.range.start.character) == (line, column)
    assert unknown.range.end.character == column + len("nan-probabilitees")
    change = types.TextDocumentContentChangePartial(unknown.range, "nan-probabilities")
    before = len(editor.seen[odd])
    editor.client.text_document_did_change(
        types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(2, odd), [change])
    )
    assert not [d for d in editor.diagnostics(odd, before + 1) if d.code == "C202"]
    back = types.TextDocumentContentChangePartial(
        types.Range(types.Position(line, column), types.Position(line, column + len("nan-probabilities"))),
        "nan-probabilitees",
    )
    editor.client.text_document_did_change(
        types.DidChangeTextDocumentParams(types.VersionedTextDocumentIdentifier(3, odd), [back])
    )
    assert [d for d in editor.diagnostics(odd, before + 2) if d.code == "C202"]


def test_a_quick_fix_repairs_a_misspelt_signal(editor, odd):
    line, column = spot_of(GOOD, "nan-probabilitees")
    here = types.Range(types.Position(line, column), types.Position(line, column))
    actions = editor.run(
        editor.client.text_document_code_action_async(
            types.CodeActionParams(types.TextDocumentIdentifier(odd), here, types.CodeActionContext([]))
        )
    )
    edits = [a.edit.changes[odd][0] for a in actions]
    assert any(e.new_text == "nan-probabilities" and e.range.start == types.Position(line, column) for e in edits)


def test_formatting_spells_conditions_canonically(editor, odd):
    edits = editor.run(
        editor.client.text_document_formatting_async(
            types.DocumentFormattingParams(types.TextDocumentIdentifier(odd), types.FormattingOptions(2, True))
        )
    )
    assert [e.new_text for e in edits] == ["args.tp_size > 1 and nan-probabilitees"]


@pytest.mark.parametrize(
    ("where", "wanted", "not_wanted"),
    [
        ("args.tp_size>1", "args.dp_size", "nan-probabilities"),
        ("nan-probabilitees", "nan-in-logits", ""),
        ("nan-probabilities]", "nan-in-logits", "args.dp_size"),
        ("--fp8-gemm-backend", "--moe-runner-backend", "nan-probabilities"),
        ("suspected", "confirmed", "nan-probabilities"),
    ],
)
def test_completion_fits_the_place(editor, odd, where, wanted, not_wanted):
    line, column = spot_of(GOOD, where)
    length = 5 if where.startswith("args") else 3
    params = types.CompletionParams(**editor.at(odd, line, column + length))
    found = editor.run(editor.client.text_document_completion_async(params))
    labels = {item.label: item for item in found.items}
    assert wanted in labels and not_wanted not in labels
    assert labels[wanted].text_edit.range.start == types.Position(line, column)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("nan-probabilities", "The sampler was handed"),
        ("args.tp_size", "field of server_args"),
        ("--fp8-gemm-backend", "sglang flag"),
        ("must", "no candidate"),
    ],
)
def test_hover_tells_what_a_word_means(editor, odd, where, words):
    line, column = spot_of(GOOD, where)
    found = editor.run(editor.client.text_document_hover_async(types.HoverParams(**editor.at(odd, line, column + 3))))
    assert words in found.contents.value


def test_definition_leads_to_the_rule(editor, odd):
    line, column = spot_of(GOOD, "nan-probabilities")
    found = editor.run(
        editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(odd, line, column + 2)))
    )
    assert found.uri == RULE.as_uri()


def test_references_of_a_rule_are_the_findings_that_ask_for_it(editor, odd):
    uri = editor.open(RULE)
    editor.diagnostics(uri, 1)
    found = editor.run(
        editor.client.text_document_references_async(
            types.ReferenceParams(types.ReferenceContext(True), **editor.at(uri, 0, 6))
        )
    )
    assert {f.uri for f in found} >= {FINDING.as_uri()}
    assert len(found) > 10


def test_definition_leads_from_a_finding_to_a_look_alike_and_back(editor):
    uri = editor.open(FINDING)
    text = FINDING.read_text()
    line, column = spot_of(text, "fp8-kv-cache-without-scales")
    found = editor.run(
        editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(uri, line, column + 2)))
    )
    assert found.uri.endswith("kb/findings/fp8-kv-cache-without-scales.md")
    back = editor.run(
        editor.client.text_document_references_async(
            types.ReferenceParams(types.ReferenceContext(True), **editor.at(uri, 1, 8))
        )
    )
    assert found.uri in {b.uri for b in back}


def test_a_samples_truth_leads_to_its_cause_and_back(editor):
    path = ROOT / "samples/cases/a-glm5-nvfp4-sm120-deepgemm-nan/truth.json"
    text = path.read_text()
    uri = editor.open(path)
    line, column = spot_of(text, "deepgemm-scale-format-mismatch")
    place = editor.at(uri, line, column + 3)
    found = editor.run(editor.client.text_document_definition_async(types.DefinitionParams(**place)))
    assert found.uri == FINDING.as_uri()
    back = editor.run(
        editor.client.text_document_references_async(types.ReferenceParams(types.ReferenceContext(True), **place))
    )
    assert uri in {b.uri for b in back}


@pytest.mark.parametrize("path", [FINDING, RULE], ids=lambda p: p.suffix)
def test_shipped_files_are_without_complaint(editor, path):
    told = len(editor.seen.get(path.as_uri(), ()))  # another test may have it open already
    assert not editor.diagnostics(editor.open(path), told + 1)


def test_broken_yaml_is_a_diagnostic_not_a_crash(editor, base):
    path = base / "kb/findings/broken.md"
    uri = editor.open(path, "---\nid: [\n---\n# x\n")
    assert editor.diagnostics(uri, 1)[0].code == "K001"


# -- logs --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(editor, base):
    uri = editor.open(base / "server.log")
    editor.diagnostics(uri, 1)
    return uri


def test_a_log_shows_the_reports_places(editor, log):
    found = editor.seen[log][0]
    first = next(d for d in found if d.severity == types.DiagnosticSeverity.Error)
    assert first.range.start.line == 64 and "first failure" in first.message


def test_definition_in_a_log_goes_to_the_first_failure(editor, log):
    found = editor.run(editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(log, 3, 0))))
    assert found.range.start.line == 64


def test_the_command_shows_the_first_failure(editor, log):
    found = editor.run(
        editor.client.workspace_execute_command_async(
            types.ExecuteCommandParams("forensics.firstFailure", arguments=[log])
        )
    )
    start = found["range"]["start"] if isinstance(found, dict) else found.range.start
    assert (start["line"] if isinstance(start, dict) else start.line) == 64
    assert editor.shown and editor.shown[-1].selection.start.line == 64


def test_hover_explains_a_line(editor, log):
    found = editor.run(editor.client.text_document_hover_async(types.HoverParams(**editor.at(log, 64, 5))))
    text = found.contents.value
    assert "cuda-assert" in text and "first failure" in text and "nan-probabilities" in text


def test_columns_are_utf_16_units(editor, base):
    """Characters beyond the first plane before the message move it by two units each."""
    lines = CRASH.read_bytes().split(b"\n")
    at = next(i for i, x in enumerate(lines) if b"Scheduler hit an exception" in x)
    cut = b"\n".join(lines[:60] + ["worker-😀😀 | ".encode() + x for x in lines[at : at + 30]])
    path = base / "odd.log"
    path.write_bytes(cut)
    uri = editor.open(path)
    found = [d for d in editor.diagnostics(uri, 1) if d.severity == types.DiagnosticSeverity.Error]
    raw = cut.decode().split("\n")[found[0].range.start.line]
    units = raw.encode("utf-16-le")
    assert found[0].range.end.character == len(units) // 2
    assert len(units) // 2 == len(raw) + 2


# -- parts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("encoding", "units"), [("utf-16", 5), ("utf-8", 9), ("utf-32", 3)])
def test_units_there_and_back(encoding, units):
    text = "é😀😀x"
    assert Units(encoding).out(text, 4) == {"utf-16": 5, "utf-8": 10, "utf-32": 3}[encoding]
    for column in range(1, 6):
        assert Units(encoding).into(text, Units(encoding).out(text, column)) == column
    assert Units(encoding).into(text, 99) == 5


def test_a_large_log_is_not_read_before_somebody_asks(tmp_path, monkeypatch):
    from forensics.editor import logs as module

    monkeypatch.setattr(module, "BY_ITSELF", 1000)
    path = tmp_path / "server.log"
    path.write_bytes(CRASH.read_bytes())
    desk = Logs()
    monkeypatch.setattr(module, "read", lambda *a: pytest.fail("the log was analyzed"))
    found = desk.diagnostics(path, None, Units())
    assert len(found) == 1 and "first failure" in found[0].message
    assert "cuda-assert" in desk.hover(path, 65)
    assert "stage-mark" in desk.hover(path, 30) or desk.hover(path, 30)


def test_hover_in_an_unread_log_names_the_right_line(tmp_path):
    path = tmp_path / "big.log"
    row = "[2026-05-02 10:00:00 TP{n}] Load weight begin. avail mem=70.{n:04d} GB\n"
    path.write_text("".join(row.format(n=n) for n in range(9000)))
    desk = Logs()
    for line in (1, 2, 4500, 9000):
        assert f"70.{line - 1:04d} GB" in desk.hover(path, line)


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("a-b   and c-d", "a-b and c-d"),
        ("'args.x=\"a b\"'", "'args.x = \"a b\"'"),
        ("a-b and (", None),
        ("a-b and c-d", None),
    ],
)
def test_only_conditions_that_parse_are_tidied(written, wanted):
    text = f"---\nid: x\ngrounds:\n  must:\n    - {written}\n---\n"
    assert [e.new_text for e in tidy("x.md", text, "finding", Units())] == ([wanted] if wanted else [])


def test_the_keys_around_a_place():
    lines = GOOD.split("\n")
    assert spot(lines, 9, 10, True).keys == ("grounds", "must")
    assert spot(lines, 13, 40, True).keys[-1] == "name"
    assert spot(lines, 5, 12, True).keys == ("status",)
    assert not spot(lines, 20, 3, True).in_front
