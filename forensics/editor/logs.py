"""Logs in editors: the report's places as diagnostics, hover on a line, the first failure. Read from disk, once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from lsprotocol import types

from forensics.analysis import Reading, read, report
from forensics.editor.units import Units
from forensics.engine.explain import ExplainedPart, explain_line, line_bytes
from forensics.engine.scan import scan
from forensics.engine.table import EventTable
from forensics.errors import ForensicsError
from forensics.frozen import frozen
from forensics.ingest.sources import Source
from forensics.knowledge.store import Knowledge
from forensics.output.clean import clean
from forensics.output.mask import mask
from forensics.output.view import ground_text, live, places
from forensics.schema.options import Options
from forensics.schema.report import LaunchInfo, Report, Where

BY_ITSELF = 64 << 20
"""Logs up to this size are analyzed when they are opened; larger ones when somebody asks for the first failure."""
MAX_SHOWN = 400
_STEP = 4 << 20
_AROUND = 64 << 10
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


@frozen
class View:
    """An analyzed log and the state of the file that it belongs to."""

    stamp: tuple[int, int]
    reading: Reading
    report: Report


@dataclass
class Logs:
    """Analyses by path, each done once for a state of the file; line offsets of large files, as far as they were
    asked for."""

    options: Options = field(default_factory=Options)
    _views: dict[Path, View] = field(default_factory=dict)
    _marks: dict[Path, tuple[tuple[int, int], list[tuple[int, int]]]] = field(default_factory=dict)

    def known(self, path: Path) -> View | None:
        """The analysis of the file as it is now, if it was made."""
        view = self._views.get(path)
        return view if view is not None and view.stamp == _stamp(path) else None

    def view(self, path: Path, knowledge: Knowledge) -> View | None:
        """The analysis of a log, made now where need be; None where the file is no usable log."""
        found = self.known(path)
        if found is not None:
            return found
        options = Options(kb=self.options.kb, rules=self.options.rules, config=self.options.config, processes=1)
        try:
            stamp = _stamp(path)
            reading = read([str(path)], options, knowledge)
            found = View(stamp, reading, report(reading, options, knowledge))
        except (ForensicsError, OSError):
            return None
        self.forget(path)
        self._views[path] = found
        return found

    def forget(self, path: Path) -> None:
        """The document was closed: give its memory and its file back."""
        old = self._views.pop(path, None)
        self._marks.pop(path, None)
        for source in old.reading.table.sources if old is not None else ():
            if isinstance(source, Source):
                source.close()

    def diagnostics(self, path: Path, knowledge: Knowledge, units: Units) -> list[types.Diagnostic]:
        """The report's places; for a large log that nobody asked about yet, one remark that says how to ask."""
        if self.known(path) is None and _size(path) > BY_ITSELF:
            start = types.Position(0, 0)
            text = f"a log of {_size(path) >> 20} MB: `Go to the first failure` (or go to definition) analyzes it"
            hint = types.DiagnosticSeverity.Hint
            return [types.Diagnostic(types.Range(start, start), text, severity=hint, source="forensics")]
        view = self.view(path, knowledge)
        if view is None:
            return []
        found = [
            types.Diagnostic(
                range=_range(view.reading.table, where, units),
                message=clean(text, MAX_SHOWN),
                severity=_SEVERITY[severity],
                source="forensics",
            )
            for _, severity, where, text in places(view.report)
            if where.path == str(path)
        ]
        return list({(d.range.start.line, d.range.start.character, d.message): d for d in found}.values())

    def first_failure(self, path: Path, knowledge: Knowledge, units: Units) -> types.Location | None:
        """The place of the first failure of the launch that the report is about."""
        view = self.view(path, knowledge)
        focus = next((x for x in view.report.launches if x.id == view.report.focus), None) if view else None
        if view is None or focus is None or focus.first_failure is None:
            return None
        where = focus.first_failure.where
        return types.Location(path.resolve().as_uri(), _range(view.reading.table, where, units))

    def hover(self, path: Path, line: int, secrets: tuple[str, ...] = ()) -> str:
        """Markdown that explains a 1-based line, `secrets` of forensics.toml masked. Of a log that is not analyzed
        only the lines around it are read."""
        view = self.known(path)
        try:
            if view is not None:
                parts = explain_line(view.reading.table, line).parts
                return _text(parts, [*_roles(view, line), *_signals(view, line)], secrets)
            return _text(self._window(path, line), [], secrets)
        except (ForensicsError, OSError):
            return ""

    def _window(self, path: Path, line: int) -> tuple[ExplainedPart, ...]:
        """A line read with its neighbours only."""
        offset, before = self._offset(path, line)
        with path.open("rb") as file, tempfile.TemporaryFile(prefix="forensics-lsp-") as window:
            start = max(0, offset - _AROUND)
            file.seek(start)
            head = file.read(offset - start)
            # Whole lines only: what stands before the first line break belongs to an earlier line.
            skipped = head.find(b"\n") + 1 if start else 0
            above = head[skipped:]
            window.write(above + file.read(_AROUND))
            window.flush()
            source = Source(str(path), window.tell(), cast(BinaryIO, window))
            return explain_line(scan([source]), above.count(b"\n") + 1 if before else 1).parts

    def _offset(self, path: Path, line: int) -> tuple[int, int]:
        """Byte offset of a line and the number of lines before it; reads no further than that line."""
        stamp = _stamp(path)
        held, marks = self._marks.get(path, (stamp, [(0, 0)]))
        if held != stamp:
            marks = [(0, 0)]
        at, seen = max(m for m in marks if m[1] < line)
        with path.open("rb") as file:
            file.seek(at)
            while True:
                block = file.read(_STEP)
                ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
                wanted = line - 1 - seen
                if wanted == 0 or not block:
                    break
                if len(ends) >= wanted:
                    at, seen = at + int(ends[wanted - 1]) + 1, line - 1
                    break
                at, seen = at + len(block), seen + len(ends)
                if block.endswith(b"\n"):
                    marks.append((at, seen))
        self._marks[path] = (stamp, marks)
        return at, seen


def _stamp(path: Path) -> tuple[int, int]:
    info = path.stat()
    return info.st_size, info.st_mtime_ns


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _range(table: EventTable, where: Where, units: Units) -> types.Range:
    """From the place to the end of its line."""
    try:
        _, raw = line_bytes(table, 0, where.line)
    except ForensicsError:
        raw = b""
    text = raw.decode("utf-8", "replace").rstrip("\r")
    start = min(units.out(text, where.column), units.length(text))
    return types.Range(
        types.Position(where.line - 1, start), types.Position(where.line - 1, max(start, units.length(text)))
    )


def _text(parts: tuple[ExplainedPart, ...], more: list[str], secrets: tuple[str, ...]) -> str:
    lines = []
    for part in parts:
        about = [f"**{part.kind}**"]
        if part.rank:
            about.append(f"rank {part.rank}")
        if part.timestamp:
            about.append(clean(part.timestamp))
        if part.wrappers:
            about.append(f"inside {', '.join(part.wrappers)}")
        lines += [" · ".join(about), "", "```text", _inert(part.message, secrets), "```"]
        if part.fields:
            lines.append(", ".join(f"{name} {value:g}" for name, value in part.fields.items()))
    return "\n".join([*lines, "", *more]).rstrip()


def _inert(text: str, secrets: tuple[str, ...]) -> str:
    """Log text inside a fence that it cannot close."""
    return clean(mask(text, secrets), MAX_SHOWN).replace("```", "'''")


def _roles(view: View, line: int) -> Iterator[str]:
    """What the report says about a line."""
    for launch in view.report.launches:
        first = launch.first_failure
        if first is not None and first.where.line == line:
            suspects = f", suspect {', '.join(first.suspect_ranks)}" if first.suspect_ranks else ""
            yield f"- {launch.id}: **first failure** during {first.stage}{suspects}"
        for failure in launch.failures:
            if failure.where.line == line and (first is None or first.where.line != line):
                yield f"- {launch.id}: failure, {failure.role}, {failure.outcome}, {failure.count} times"
        yield from _grounds(launch, line)


def _grounds(launch: LaunchInfo, line: int) -> Iterator[str]:
    for hypothesis in live(launch):
        for ground in hypothesis.grounds:
            if ground.side != "unknown" and any(w.line == line for w in ground.where):
                name = hypothesis.finding or hypothesis.id
                yield f"- ground {ground.side} `{name}` ({hypothesis.verdict}): {clean(ground_text(ground), 200)}"


def _signals(view: View, line: int) -> Iterator[str]:
    for case in view.reading.cases:
        for name, signal in sorted(case.signals.items()):
            if any(int(case.table.line[m.row]) == line for m in signal.matches):
                rule = case.rules[name]
                yield f"- signal `{name}` ({rule.role}): {rule.docs or rule.title}"
