"""All events and the batch series as files: JSON lines, CSV, SQLite, Parquet (with pyarrow)."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import sqlite_utils

from forensics.engine.table import EventTable, Series
from forensics.errors import UsageError

EVENT_FIELDS = ("path", "line", "column", "byte_start", "byte_end", "time", "rank", "kind", "shape", "text")
EVENT_FORMATS = ("jsonl", "csv", "parquet", "sqlite")
Mask = Callable[[str], str]
_BATCH = 10_000
_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
"""Characters with which spreadsheets begin a formula, the full-width ones of East Asian versions too."""


def events(table: EventTable, mask: Mask = str) -> Iterator[dict[str, Any]]:
    """One dict per row in analysis order. `time` is seconds since the epoch in the log's own clock (None: none known),
    `mask` hides secrets in the text."""
    for row in range(len(table)):
        span = table.span(row)
        rank = table.rank_of(row)
        yield {
            "path": span.path,
            "line": span.line,
            "column": span.column,
            "byte_start": span.byte_start,
            "byte_end": span.byte_end,
            "time": table.time_of(row),
            "rank": str(rank) if rank else None,
            "kind": table.kind(row),
            "shape": int(table.shape[row]),
            "text": mask(table.text(row)),
        }


def series_rows(table: EventTable) -> Iterator[dict[str, Any]]:
    """One dict per batch line: kind, path, line, time, rank and the metrics (None: not in that line)."""
    for series in table.series.values():
        yield from _series_rows(table, series)


def _series_rows(table: EventTable, series: Series) -> Iterator[dict[str, Any]]:
    names = series_columns(table)
    for i in range(len(series.line)):
        rank = int(series.rank[i])
        row: dict[str, Any] = {
            "kind": series.kind,
            "path": table.sources[int(series.source[i])].name,
            "line": int(series.line[i]),
            "time": _number(series.time[i]),
            "rank": str(table.ranks[rank]) if rank >= 0 else None,
        }
        row.update({n: _number(series.columns[n][i]) if n in series.columns else None for n in names})
        yield row


def series_columns(table: EventTable) -> list[str]:
    """Metric names of all series, sorted."""
    return sorted({name for series in table.series.values() for name in series.columns})


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def write_jsonl(rows: Iterator[dict[str, Any]], out: IO[str]) -> int:
    """One JSON object per line; gives the number of rows. No control character gets through."""
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 (the count is what is given back)
        out.write(json.dumps(row, ensure_ascii=True) + "\n")
    return count


def write_csv(rows: Iterator[dict[str, Any]], out: IO[str], fields: list[str]) -> int:
    """CSV with a header; control characters are escaped, cells that a spreadsheet would run as formulas are quoted."""
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        writer.writerow({k: _cell(v) for k, v in row.items()})
    return count


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    return "'" + clean if clean.lstrip()[:1] in _FORMULA else clean


def write_sqlite(rows: Iterator[dict[str, Any]], path: Path, table: str) -> int:
    """A SQLite file with one table (replaced when it exists)."""
    try:
        database = sqlite_utils.Database(path)
        target = database[table]
        target.insert_all(rows, batch_size=_BATCH, replace=False, alter=True)  # type: ignore[union-attr]
        return int(target.count)
    except sqlite3.DatabaseError as problem:
        raise UsageError(f"{path}: cannot be written as SQLite ({problem})", hint="name a new file") from None


def write_parquet(rows: Iterator[dict[str, Any]], path: Path) -> int:
    """A Parquet file; needs pyarrow (the `fleet` extra)."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow", hint="pip install 'sglang-forensics[fleet]', or use --format csv"
        ) from None
    writer = None
    count = 0
    schema = None
    try:
        for batch in _batches(rows):
            block = pa.Table.from_pylist(batch, schema=schema)
            if writer is None:
                schema = _wide(block.schema, pa)
                block = pa.Table.from_pylist(batch, schema=schema)
                writer = pq.ParquetWriter(path, schema)
            writer.write_table(block)
            count += len(batch)
    finally:
        if writer is not None:
            writer.close()
    return count


def _wide(schema: Any, pa: Any) -> Any:
    """The same schema; a column that held nothing in the first batch becomes float (metrics) or text."""
    text = {"rank", "text", "path", "kind"}
    fields = [
        pa.field(f.name, (pa.string() if f.name in text else pa.float64()) if pa.types.is_null(f.type) else f.type)
        for f in schema
    ]
    return pa.schema(fields)


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def export_events(table: EventTable, kind: str, out: IO[str] | Path, mask: Mask = str) -> int:
    """Write all events as jsonl or csv (to a text stream) or sqlite or parquet (to a path); gives their number."""
    return _export(events(table, mask), list(EVENT_FIELDS), kind, out, "events")


def export_series(table: EventTable, kind: str, out: IO[str] | Path) -> int:
    """Write the batch metrics in the same ways."""
    fields = ["kind", "path", "line", "time", "rank", *series_columns(table)]
    return _export(series_rows(table), fields, kind, out, "series")


def _export(rows: Iterator[dict[str, Any]], fields: list[str], kind: str, out: IO[str] | Path, name: str) -> int:
    if kind in ("sqlite", "parquet"):
        if not isinstance(out, Path):
            raise UsageError(f"{kind} cannot be written to standard output", hint="name a file with --output")
        return write_sqlite(rows, out, name) if kind == "sqlite" else write_parquet(rows, out)
    if isinstance(out, Path):
        with out.open("w", encoding="utf-8", newline="") as stream:
            return _export(rows, fields, kind, stream, name)
    if kind == "jsonl":
        return write_jsonl(rows, out)
    if kind == "csv":
        return write_csv(rows, out, fields)
    raise UsageError(f"unknown format {kind!r}", hint=f"one of: {', '.join(EVENT_FORMATS)}")
