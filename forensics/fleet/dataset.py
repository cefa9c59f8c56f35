"""The dataset on disk: one part per incident while the work goes on, tables made of all parts at its end."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
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
        if parquet:
            for name, columns in TABLES.items():
                self._parquet(name, columns, self._rows(name, ordered))
        with replacing(self.folder / SUMMARY) as fresh:
            fresh.unlink()
            self._summary(fresh, ordered, findings, problems)
        write_atomic(self.folder / MANIFEST, json.dumps(about, indent=1, sort_keys=True) + "\n")

    def parts(self, incidents: Iterable[Incident]) -> Iterator[dict[str, Any]]:
        """Contents of the parts, one at a time."""
        for incident in incidents:
            found = self.read_part(incident.key)
            if found is None:
                raise InputError(f"{self.part_path(incident.key)}: is missing or damaged", hint="run the command again")
            yield found

    def _rows(self, table: str, incidents: Sequence[Incident]) -> Iterator[dict[str, Any]]:
        names = [name for name, _ in TABLES[table]]
        for part in self.parts(incidents):
            for row in part["tables"].get(table, ()):
                yield {name: row.get(name) for name in names}

    def _parquet(self, name: str, columns: Columns, rows: Iterator[dict[str, Any]]) -> None:
        pa, pq = parquet_library()
        kinds = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
        schema = pa.schema([pa.field(column, kinds[kind]) for column, kind in columns])
        with (
            replacing(self.folder / f"{name}.parquet") as fresh,
            contextlib.closing(pq.ParquetWriter(fresh, schema, compression="zstd")) as writer,
        ):
            for batch in _batches(rows):
                writer.write_table(pa.Table.from_pylist(batch, schema=schema))

    def _summary(
        self,
        path: Path,
        incidents: Sequence[Incident],
        findings: Sequence[Finding],
        problems: Sequence[ProblemInfo],
    ) -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            db: Any = sqlite_utils.Database(connection)
            for name in IN_SUMMARY:
                _create_table(db, name, TABLES[name])
                db[name].insert_all(self._rows(name, incidents), batch_size=2000)
            told = [{"message": p.message, "path": p.path, "code": p.code, "hint": p.hint} for p in problems]
            db["problems"].insert_all(told)
            db["findings"].create({"id": str, "title": str, "category": str, "status": str}, pk="id")
            db["findings"].insert_all(
                {"id": f.id, "title": f.title, "category": f.category, "status": f.status} for f in findings
            )
            for name in ("incidents", "launches", "hypotheses", "failures"):
                db[name].create_index(["incident"])
            connection.commit()


def _create_table(db: Any, name: str, columns: Columns) -> None:
    db[name].create({column: _TYPES[kind] for column, kind in columns})


def _batches(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) == _GROUP:
            yield batch
            batch = []
    if batch:
        yield batch


def parquet_library() -> tuple[Any, Any]:
    """pyarrow and its Parquet module; UsageError where it is not installed."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        hint = "pip install 'sglang-forensics[fleet]', or --no-parquet for the SQLite summary alone"
        raise UsageError("Parquet tables need pyarrow", hint=hint) from None
    return pa, pq
