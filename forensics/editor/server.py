"""The language server: wires the parts to the protocol. Slow work runs in one worker, never in the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from forensics.editor.complete import complete
from forensics.editor.context import spot
from forensics.editor.hover import hover
from forensics.editor.lint import diagnostics, quick_fixes
from forensics.editor.logs import Logs
from forensics.editor.place import LINTED, Desk, kind_of, word_at
from forensics.editor.refs import definition, references
from forensics.editor.tidy import tidy
from forensics.editor.units import Units
from forensics.rulebook.problem import Problem
from forensics.schema.options import Options
from forensics.version import VERSION

FIRST_FAILURE = "forensics.firstFailure"
TYPING_PAUSE = 0.25
"""Seconds without a key before a text is checked."""
T = TypeVar("T")


class Server(LanguageServer):
    """Holds the desk (knowledge), the logs, and the last problems of each document."""

    def __init__(self, options: Options) -> None:
        super().__init__("forensics", VERSION)
        self.desk = Desk(options)
        self.logs = Logs(options)
        self.problems: dict[str, list[Problem]] = {}
        self.waiting: dict[str, asyncio.Task[None]] = {}
        self.worker = ThreadPoolExecutor(1)

    def document(self, uri: str) -> TextDocument:
        return self.workspace.get_text_document(uri)

    @property
    def units(self) -> Units:
        return Units(str(getattr(self.workspace.position_encoding, "value", self.workspace.position_encoding)))

    async def work(self, call: Callable[[], T]) -> T:
        """Run something slow in the worker."""
        return await asyncio.get_running_loop().run_in_executor(self.worker, call)

    def check_soon(self, uri: str, pause: float) -> None:
        """Check a document after a pause; a newer request replaces a waiting one."""
        old = self.waiting.pop(uri, None)
        if old is not None:
            old.cancel()
        self.waiting[uri] = asyncio.get_running_loop().create_task(self._check(uri, pause))

    async def _check(self, uri: str, pause: float) -> None:
        await asyncio.sleep(pause)
        document = self.document(uri)
        path, version, units = Path(document.path), document.version, self.units
        text = "" if kind_of(path) == "log" else document.source
        kind = kind_of(path, text)
        if kind == "log":
            found = await self.work(lambda: self.logs.diagnostics(path, self.desk.plain().knowledge, units))
        elif kind in LINTED:
            problems = await self.work(lambda: self.desk.problems(path, text))
            self.problems[uri] = problems
            found = diagnostics(problems, lines_of(text), units)
        else:
            return
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))


def lines_of(text: str) -> list[str]:
    """Lines as the program counts them."""
    return text.replace("\r\n", "\n").split("\n")


def build(options: Options) -> Server:
    """A server with all features."""
    server = Server(options)
    _documents(server)
    _reading(server)
    _changing(server)
    _logs(server)
    return server


def _documents(server: Server) -> None:
    def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        ls.check_soon(params.text_document.uri, 0.0)

    def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        # A log is read from disk: typing in it changes nothing, but the editor may have loaded a grown file again.
        path = Path(ls.document(params.text_document.uri).path)
        if kind_of(path) != "log":
            ls.check_soon(params.text_document.uri, TYPING_PAUSE)
        elif path.is_file() and ls.logs.known(path) is None:
            ls.check_soon(params.text_document.uri, 4 * TYPING_PAUSE)

    def saved(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
        if kind_of(Path(ls.document(params.text_document.uri).path)) != "log":
            ls.desk.saved()
        for uri in {params.text_document.uri, *ls.problems}:
            ls.check_soon(uri, 0.0)

    def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        task = ls.waiting.pop(uri, None)
        if task is not None:
            task.cancel()
        ls.problems.pop(uri, None)
        ls.logs.forget(Path(ls.document(uri).path))
        ls.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    server.feature(types.TEXT_DOCUMENT_DID_OPEN)(opened)
    server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(changed)
    server.feature(types.TEXT_DOCUMENT_DID_SAVE)(saved)
    server.feature(types.TEXT_DOCUMENT_DID_CLOSE)(closed)


def _place(ls: Server, params: Any) -> tuple[Path, str, str, int, int]:
    """Path, whole text, the line, its number and the column (both 1-based, in code points) of a position."""
    document = ls.document(params.text_document.uri)
    number = params.position.line + 1
    if kind_of(Path(document.path)) == "log":
        # Its text is not looked at: it may be huge, and the file on disk is what counts.
        return Path(document.path), "", "", number, 1
    text = document.source
    lines = lines_of(text)
    line = lines[number - 1] if number <= len(lines) else ""
    return Path(document.path), text, line, number, ls.units.into(line, params.position.character)


def _reading(server: Server) -> None:
    async def on_hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        path, text, line, number, column = _place(ls, params)
        kind = kind_of(path, text)
        if kind == "log":
            said = await ls.work(lambda: ls.logs.hover(path, number, ls.desk.plain().knowledge.config.secrets))
        else:
            word, _ = word_at(line, column)
            said = await ls.work(lambda: hover(word, ls.desk.library(path))) if kind and word else ""
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, said)) if said else None

    async def on_definition(ls: Server, params: types.DefinitionParams) -> types.Location | None:
        path, text, line, _, column = _place(ls, params)
        kind, units = kind_of(path, text), ls.units
        if kind == "log":
            return await ls.work(lambda: ls.logs.first_failure(path, ls.desk.plain().knowledge, units))
        word, _ = word_at(line, column)
        return await ls.work(lambda: definition(word, line, ls.desk.library(path))) if kind and word else None

    async def on_references(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
        path, text, line, number, column = _place(ls, params)
        word, _ = word_at(line, column)
        if not word or kind_of(path, text) not in (*LINTED, "truth"):
            return []
        texts = {Path(d.path).resolve(): d.source for d in ls.workspace.text_documents.values() if d.path}
        units = ls.units
        found = await ls.work(lambda: references(word, ls.desk.library(path), texts, units))
        if not params.context.include_declaration:
            found = [f for f in found if f.range.start.line + 1 != number or not f.uri.endswith(path.name)]
        return found

    async def on_completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
        path, text, _, number, column = _place(ls, params)
        kind = kind_of(path, text)
        if kind not in LINTED:
            return types.CompletionList(False, [])
        lines = lines_of(text)
        here = spot(lines, number, column, kind != "rule")
        units = ls.units
        at = units.span(lines, number, here.column, column - here.column)
        found = await ls.work(lambda: complete(here, kind, ls.desk.library(path)))
        return types.CompletionList(
            False,
            [
                types.CompletionItem(label, kind=what, detail=detail, text_edit=types.TextEdit(at, label))
                for label, what, detail in found
            ],
        )

    server.feature(types.TEXT_DOCUMENT_HOVER)(on_hover)
    server.feature(types.TEXT_DOCUMENT_DEFINITION)(on_definition)
    server.feature(types.TEXT_DOCUMENT_REFERENCES)(on_references)
    options = types.CompletionOptions(trigger_characters=[".", "-", "[", ",", ":"])
    server.feature(types.TEXT_DOCUMENT_COMPLETION, options)(on_completion)


def _changing(server: Server) -> None:
    async def on_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = ls.document(uri)
        path, text, units = Path(document.path), document.source, ls.units
        kind = kind_of(path, text)
        if kind == "log":
            command = types.Command("Go to the first failure", FIRST_FAILURE, arguments=[uri])
            return [types.CodeAction(command.title, kind=types.CodeActionKind.Source, command=command)]
        if kind not in LINTED:
            return []
        # Places must be those of the text as it is now, not as it was at the last check.
        problems = await ls.work(lambda: ls.desk.problems(path, text))
        return quick_fixes(uri, problems, lines_of(text), units, params.range)

    async def on_format(ls: Server, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        document = ls.document(params.text_document.uri)
        path, text, units = Path(document.path), document.source, ls.units
        return await ls.work(lambda: tidy(str(path), text, kind_of(path, text), units))

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.Source]
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(kinds))(on_action)
    server.feature(types.TEXT_DOCUMENT_FORMATTING)(on_format)


def _logs(server: Server) -> None:
    async def first_failure(ls: Server, uri: str) -> types.Location | None:
        """Find the first failure of a log, show it where the editor can, and mark what the report names."""
        path, units = Path(ls.document(uri).path), ls.units
        if kind_of(path) != "log":
            return None
        knowledge = ls.desk.plain().knowledge
        found = await ls.work(lambda: ls.logs.first_failure(path, knowledge, units))
        ls.check_soon(uri, 0.0)
        window = ls.client_capabilities.window
        if found is not None and window is not None and window.show_document is not None:
            await ls.window_show_document_async(
                types.ShowDocumentParams(
                    uri, take_focus=True, selection=types.Range(found.range.start, found.range.start)
                )
            )
        return found

    server.command(FIRST_FAILURE)(first_failure)
