"""The dataset on disk: one part per incident while the work goes on, tables made of all parts at its end."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sqlite_utils

from forensics.errors import InputError, UsageError
from forensics.fleet.job import unpack
from forensics.fleet.plan import PART_FORMAT, Incident
from forensics.fleet.tables import IN_SUMMARY, TABLES, Columns
from forensics.output.atomic import replacing, write_atomic
from forensics.schema.finding import Finding
from forensics.schema.report import ProblemInfo

PARTS = "parts"
SUMMARY = "summary.sqlite"
MANIFEST = "manifest.json"
_SUFFIX = ".json.zst"
_GROUP = 20_000
"""Rows per row group of a Parquet file, so that memory stays bounded."""
_TYPES: dict[str, type] = {"text": str, "int": int, "float": float, "bool": int}


class Dataset:
    """A folder. Only whole parts ever have their final name; tables are replaced as a whole."""

    def __init__(self, folder: Path, create: bool = True) -> None:
        self.folder = folder
        if create:
            self._create()
        elif not (folder / SUMMARY).is_file():
            hint = "forensics fleet LOGS -o DATASET writes one; where a run was interrupted, run it again"
            raise InputError(f"{folder}: is no finished dataset ({SUMMARY} is missing)", hint=hint)

    def _create(self) -> None:
        try:
            foreign = self.folder.is_dir() and any(self.folder.iterdir()) and not (self.folder / PARTS).is_dir()
            if foreign:
                raise UsageError(f"{self.folder}: holds other files", hint="name a new folder with -o")
            (self.folder / PARTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.folder}: {error.strerror}", hint="name another folder with -o") from None

    def part_path(self, key: str) -> Path:
        """Where the part of this key lies; 256 folders keep each of them small."""
        return self.folder / PARTS / key[:2] / f"{key}{_SUFFIX}"

    def write_part(self, key: str, data: bytes) -> None:
        """Write a part; half a part never has its name, and writing one twice changes nothing."""
        path = self.part_path(key)
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, data)

    def read_part(self, key: str) -> dict[str, Any] | None:
        """A part's content; None where there is none that can be used."""
        try:
            found = unpack(self.part_path(key).read_bytes())
        except (OSError, ValueError):
            return None
        return found if found.get("format") == PART_FORMAT and found.get("key") == key else None

    def part_of(self, incident: str) -> dict[str, Any] | None:
        """The part that the summary was made of for this incident."""
        with contextlib.closing(sqlite3.connect(self.folder / SUMMARY)) as connection:
            row = connection.execute("select part from incidents where incident = ?", [incident]).fetchone()
        return self.read_part(str(row[0])) if row and re.fullmatch("[0-9a-f]{40}", str(row[0])) else None

    def counts(self) -> tuple[int, int, int]:
        """Incidents with a failure, incidents that could not be analyzed, and problems, as the summary has them."""
        with contextlib.closing(sqlite3.connect(self.folder / SUMMARY)) as connection:
            (failed,) = connection.execute("select count(*) from incidents where failed").fetchone()
            (bad,) = connection.execute("select count(*) from incidents where status != 'ok'").fetchone()
            (problems,) = connection.execute("select count(*) from problems").fetchone()
        return failed, bad, problems

    def finished(self, incident: Incident) -> bool:
        """Whether an earlier run finished this incident for good."""
        found = self.read_part(incident.key)
        return found is not None and found["final"] is True

    def finish(
        self,
        incidents: Sequence[Incident],
        findings: Sequence[Finding],
        problems: Sequence[ProblemInfo],
        about: dict[str, Any],
        parquet: bool,
    ) -> None:
        """Make the tables of all parts, in the order of the incidents' ids whatever the order of the work was."""
        ordered = sorted(incidents, key=lambda i: i.id)
        with contextlib.ExitStack() as stack:
            sinks: list[_Sink] = []
            if parquet:
                sinks += [self._parquet(name, columns, stack) for name, columns in TABLES.items()]
            db = stack.enter_context(self._summary())
            sinks += [_summary_sink(db, name) for name in IN_SUMMARY]
            self._pour(ordered, sinks)
            _describe(db, findings, problems)
        write_atomic(self.folder / MANIFEST, json.dumps(about, indent=1, sort_keys=True) + "\n")

    def parts(self, incidents: Iterable[Incident]) -> Iterator[dict[str, Any]]:
        """Contents of the parts, one at a time."""
        for incident in incidents:
            found = self.read_part(incident.key)
            if found is None:
                raise InputError(f"{self.part_path(incident.key)}: is missing or damaged", hint="run the command again")
            yield found

    def _pour(self, incidents: Sequence[Incident], sinks: Sequence[_Sink]) -> None:
        """Hand the rows of every part to the tables. Each part is read once, whatever the number of tables."""
        for part in self.parts(incidents):
            for sink in sinks:
                sink.add(part["tables"].get(sink.table, ()))
        for sink in sinks:
            sink.flush()

    def _parquet(self, name: str, columns: Columns, stack: contextlib.ExitStack) -> _Sink:
        pa, pq = parquet_library()
        kinds = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
        schema = pa.schema([pa.field(column, kinds[kind]) for column, kind in columns])
        fresh = stack.enter_context(replacing(self.folder / f"{name}.parquet"))
        writer = stack.enter_context(contextlib.closing(pq.ParquetWriter(fresh, schema, compression="zstd")))
        return _Sink(name, lambda rows: writer.write_table(pa.Table.from_pylist(rows, schema=schema)))

    @contextlib.contextmanager
    def _summary(self) -> Iterator[Any]:
        """The summary's database while it is made; it takes the place of an older one as a whole."""
        with replacing(self.folder / SUMMARY) as fresh:
            fresh.unlink()
            with contextlib.closing(sqlite3.connect(fresh)) as connection:
                yield sqlite_utils.Database(connection)
                connection.commit()


class _Sink:
    """One table that is being written: rows go out in groups, so that memory stays bounded."""

    def __init__(self, table: str, write: Callable[[list[dict[str, Any]]], object]) -> None:
        self.table = table
        self._names = [name for name, _ in TABLES[table]]
        self._write = write
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: Iterable[dict[str, Any]]) -> None:
        """Rows of one part, cut to the columns of the table."""
        for row in rows:
            self._rows.append({name: row.get(name) for name in self._names})
            if len(self._rows) == _GROUP:
                self.flush()

    def flush(self) -> None:
        """Write what is there."""
        if self._rows:
            self._write(self._rows)
            self._rows = []


def _summary_sink(db: Any, name: str) -> _Sink:
    _create_table(db, name, TABLES[name])
    return _Sink(name, lambda rows: db[name].insert_all(rows, batch_size=2000))


def _describe(db: Any, findings: Sequence[Finding], problems: Sequence[ProblemInfo]) -> None:
    """What belongs to the run as a whole, and the indexes."""
    told = [{"message": p.message, "path": p.path, "code": p.code, "hint": p.hint} for p in problems]
    db["problems"].insert_all(told)
    db["findings"].create({"id": str, "title": str, "category": str, "status": str}, pk="id")
    db["findings"].insert_all(
        {"id": f.id, "title": f.title, "category": f.category, "status": f.status} for f in findings
    )
    for name in ("incidents", "launches", "hypotheses", "failures"):
        db[name].create_index(["incident"])


def _create_table(db: Any, name: str, columns: Columns) -> None:
    db[name].create({column: _TYPES[kind] for column, kind in columns})


def parquet_library() -> tuple[Any, Any]:
    """pyarrow and its Parquet module; UsageError where it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        hint = "pip install 'sglang-forensics[fleet]', or --no-parquet for the SQLite summary alone"
        raise UsageError("Parquet tables need pyarrow", hint=hint) from None
    return pa, pq
