"""What commands show of a table: one line explained, coverage, exports."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from pathlib import Path

import pytest

from forensics.engine.coverage import coverage
from forensics.engine.explain import explain_line
from forensics.engine.export import export_events, export_series
from forensics.engine.scan import scan
from forensics.engine.table import EventTable
from forensics.errors import UsageError

ROOT = Path(__file__).parent.parent
DECODE = (
    "[2026-05-04 10:00:02.5 TP2] Decode batch, #running-req: 12, token usage: 0.25, cuda graph: True, #queue-req: -3"
)


@pytest.fixture
def table(tmp_path: Path) -> EventTable:
    lines = [
        "sglang-1  | [2026-05-04 10:00:01 DP0 TP3] Load weight end. avail mem=1 GB",
        DECODE,
        "",
        "wörd\x07 =1+1[2026-05-04 10:00:03 TP1] RuntimeError: boom",
        "=cmd|' /C calc'!A0",
        "mystery prose",
    ]
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return scan([path])


def test_explain_wrapper_header_rank(table: EventTable) -> None:
    part = explain_line(table, 1).parts[0]
    assert (part.wrappers, part.header, part.rank, part.kind, part.kept) == (
        ("compose",),
        "H_SGLANG",
        "DP0 TP3",
        "stage-mark",
        "row 0",
    )
    assert part.timestamp == "2026-05-04 10:00:01"
    assert (part.rule, part.terminal) == ("stage_mark", "STAGE_MARK")


def test_explain_hot_line_gives_its_numbers(table: EventTable) -> None:
    part = explain_line(table, 2).parts[0]
    assert part.kept == "series decode"
    assert part.fields == {"running": 12.0, "token_usage": 0.25, "cuda_graph": 1.0, "queue": -3.0}
    assert explain_line(table, 3).parts[0].kind == "blank"


def test_explain_glued_line_has_two_parts(table: EventTable) -> None:
    explanation = explain_line(table, 4)
    assert [p.kind for p in explanation.parts] == ["text", "exception"]
    assert explanation.raw[explanation.parts[1].column - 1 :] == "RuntimeError: boom"


def test_explain_refuses_lines_that_are_not_there(table: EventTable) -> None:
    with pytest.raises(UsageError, match="no line 7"):
        explain_line(table, 7)


def test_coverage_counts_lines_and_bytes(table: EventTable) -> None:
    found = coverage(table)
    assert (found.lines, found.lines_understood) == (6, 3)
    assert found.bytes > found.bytes_understood > 0
    assert {u.shape for u in found.top} == {"w·rd\x07 =0+0", "=cmd|' /C calc'!A0", "mystery prose"}


def test_samples_are_covered() -> None:
    paths = [*(ROOT / "samples" / "cases").glob("*/log.txt"), *(ROOT / "samples" / "healthy").glob("*/log.txt")]
    found = coverage(scan(sorted(paths)))
    assert found.line_share >= 0.98
    assert found.byte_share >= 0.95


def test_exports(table: EventTable, tmp_path: Path) -> None:
    out = io.StringIO()
    assert export_events(table, "jsonl", out, lambda t: t.replace("boom", "***")) == len(table)
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert rows[0]["rank"] == "DP0 TP3"
    assert "\x07" not in out.getvalue()
    assert any(r["text"] == "RuntimeError: ***" for r in rows)
    out = io.StringIO()
    export_events(table, "csv", out)
    cells = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert cells[-2]["text"].startswith("'=cmd")
    export_events(table, "sqlite", tmp_path / "e.db")
    assert sqlite3.connect(tmp_path / "e.db").execute("select count(*) from events").fetchone() == (len(table),)
    out = io.StringIO()
    assert export_series(table, "csv", out) == 1
    assert next(csv.DictReader(io.StringIO(out.getvalue())))["queue"] == "-3.0"
    with pytest.raises(UsageError):
        export_events(table, "sqlite", io.StringIO())


def test_parquet_when_pyarrow_is_there(table: EventTable, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    export_series(table, "parquet", tmp_path / "s.parquet")
    assert parquet.read_table(tmp_path / "s.parquet").num_rows == 1
