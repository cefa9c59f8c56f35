"""What was analysed, tried and proved here before: one SQLite file through sqlite-utils.

Written in short immediate transactions with a write-ahead log, so that several writers and a kill at any point leave
either the old or the new state. Reading is explicit: analysis uses a history only when the caller names one.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from forensics.errors import HistoryError
from forensics.frozen import frozen
from forensics.output.mask import mask
from forensics.schema.report import Report

APPLICATION_ID = 0x53474C46  # "SGLF"
_RETRIES = 60


@frozen
class Verdict:
    """One proved or refuted fix. `finding` may be empty (a fix that the user named). `changes` as `--flag=value` or
    `K=V` texts. `outcome`: fixed, passes, not-reproduced, still-failing, different-failure, inconclusive."""

    run: str
    finding: str
    outcome: str
    changes: tuple[str, ...]
    failure: str = ""
    model: str = ""
    gpu: str = ""
    version: str = ""
    host: str = ""
    folder: str = ""
    at: float = 0.0


@frozen
class Attempt:
    """One server that a replay launched. `ended`: answered, died, timeout, interrupted; `stage` is the last it reached,
    `failure` the line that states its first failure. `step` names it inside its run: control, fixed, rung2 …"""

    run: str
    step: str
    command: str
    ended: str
    why: str = ""
    stage: str = ""
    failure: str = ""
    seconds: float = 0.0
    at: float = 0.0


def default_path() -> Path:
    """`$FORENSICS_DB`, else history.db in the user's data folder."""
    named = os.environ.get("FORENSICS_DB")
    if named:
        return Path(named)
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "forensics" / "history.db"


def _create_first(db: Any) -> None:
    db["analyses"].create(
        {
            "id": int, "at": float, "fingerprint": str, "headline": str, "path": str, "finding": str, "verdict": str,
            "failure": str, "model": str, "gpu": str, "version": str, "changes": str, "ended": str, "stage": str,
        },
        pk="id", if_not_exists=True,
    )  # fmt: skip
    db["verdicts"].create(
        {
            "id": int, "at": float, "run": str, "finding": str, "outcome": str, "changes": str, "failure": str,
            "model": str, "gpu": str, "version": str, "host": str, "folder": str,
        },
        pk="id", if_not_exists=True,
    )  # fmt: skip
    db["verdicts"].create_index(["run", "finding", "outcome", "changes"], unique=True, if_not_exists=True)
    db["analyses"].create_index(["fingerprint"], unique=True, if_not_exists=True)


def _create_attempts(db: Any) -> None:
    db["attempts"].create(
        {
            "id": int, "at": float, "run": str, "step": str, "command": str, "ended": str, "why": str, "stage": str,
            "failure": str, "seconds": float,
        },
        pk="id", if_not_exists=True,
    )  # fmt: skip
    db["attempts"].create_index(["run", "step", "command"], unique=True, if_not_exists=True)


MIGRATIONS: tuple[Callable[[Any], None], ...] = (_create_first, _create_attempts)
"""Applied in order; `PRAGMA user_version` counts those done. Never edit one that was released: append."""


class History:
    """One history file. Every method opens nothing that another process could find half-written."""

    def __init__(self, path: Path, create: bool = True) -> None:
        """Open `path`; raises HistoryError where it is missing (unless `create`), foreign, newer or unwritable."""
        self.path = path
        if not create and not path.exists():
            raise HistoryError(f"no history at {path}", hint="forensics replay --yes writes one, --db says where")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
            self.db: Any = Database(self.connection)
            self._patiently(self._open)
        except sqlite3.DatabaseError as error:
            raise HistoryError(
                f"cannot use {path} as history: {error}", hint="name another file with --db; this one is left as it is"
            ) from None
        except OSError as error:
            raise HistoryError(f"cannot open {path}: {error.strerror}", hint="name another file with --db") from None

    def _open(self) -> None:
        # tables first: another process that creates them meanwhile has set the id by the time that it is read
        tables = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application = self.connection.execute("PRAGMA application_id").fetchone()[0]
        if tables and application != APPLICATION_ID:
            raise HistoryError(f"{self.path} is a database of another program", hint="name another file with --db")
        if self._version() == len(MIGRATIONS):
            return
        self.connection.execute("PRAGMA journal_mode=WAL")
        with self._write():
            done = self._version()
            if done > len(MIGRATIONS):
                raise HistoryError(f"{self.path} was written by a newer forensics", hint="upgrade, or use another --db")
            self.connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            for step in MIGRATIONS[done:]:
                step(self.db)
            self.connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")

    def _patiently(self, step: Callable[[], object]) -> None:
        """Repeat a step while other processes hold the file: switching to the write-ahead log does not wait itself."""
        for attempt in range(_RETRIES):
            try:
                step()
                return
            except sqlite3.OperationalError as error:
                if "lock" not in str(error) or attempt == _RETRIES - 1:
                    raise
                time.sleep(0.05)

    def _version(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])

    @contextmanager
    def _write(self) -> Iterator[None]:
        """One immediate transaction; waits for other writers, rolls back on any error."""
        self._patiently(lambda: self.connection.execute("BEGIN IMMEDIATE"))
        try:
            yield
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")

    def close(self) -> None:
        """Close the file."""
        self.connection.close()

    def add_report(self, report: Report, fingerprint: str, at: float) -> None:
        """Remember the focus launch of a report once (`fingerprint` tells equal inputs)."""
        launch = next((x for x in report.launches if x.id == report.focus), None)
        if launch is None:
            return
        best = next((h for h in launch.hypotheses if h.verdict != "ruled-out"), None)
        facts = {name: fact.value for name, fact in launch.facts.items()}
        row = {
            "at": at,
            "fingerprint": fingerprint,
            "headline": report.headline,
            "path": launch.path,
            "finding": (best.finding or "") if best else "",
            "verdict": best.verdict if best else "",
            "failure": launch.first_failure.text if launch.first_failure else "",
            "model": str(facts.get("model.name") or ""),
            "gpu": str(facts.get("gpu.name") or ""),
            "version": launch.version.exact or launch.version.low or "",
            "changes": json.dumps([f"{c.name}={c.after}" for a in report.attempts for c in a.changed]),
            "ended": launch.ended,
            "stage": launch.first_failure.stage if launch.first_failure else "",
        }
        self._insert("analyses", row)

    def add_verdict(self, verdict: Verdict) -> None:
        """Remember the outcome of a replay; repeating the same is harmless."""
        row = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
        row["changes"] = json.dumps(list(verdict.changes))
        self._insert("verdicts", row)

    def add_attempt(self, attempt: Attempt) -> None:
        """Remember one launched server; repeating the same is harmless. Secrets of its command are masked."""
        row = {name: getattr(attempt, name) for name in Attempt.__dataclass_fields__}
        self._insert("attempts", {**row, "command": mask(attempt.command)})

    def attempts(self, text: str = "", limit: int = 50) -> tuple[Attempt, ...]:
        """The newest launches first; `text` must occur in run, command, failure or outcome."""
        where = "run LIKE :t OR command LIKE :t OR failure LIKE :t OR why LIKE :t"
        rows = self.db["attempts"].rows_where(where, {"t": f"%{text}%"}, order_by="id desc", limit=limit)
        return tuple(Attempt(**{name: row[name] for name in Attempt.__dataclass_fields__}) for row in rows)

    def _insert(self, table: str, row: dict[str, Any]) -> None:
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        try:
            with self._write():
                self.connection.execute(f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", list(row.values()))
        except sqlite3.Error as error:
            raise HistoryError(
                f"cannot write {self.path}: {error}", hint="free some space or name another --db"
            ) from None

    def verdicts(self, finding: str | None = None) -> tuple[Verdict, ...]:
        """All verdicts, oldest first, optionally of one finding."""
        rows = self.db["verdicts"].rows_where(
            "finding = ?" if finding else None, [finding] if finding else None, order_by="id"
        )
        return tuple(_verdict(row) for row in rows)

    def analyses(self, text: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """The newest analyses first; `text` must occur in headline, finding, model or path."""
        like = f"%{text}%"
        where = "headline LIKE :t OR finding LIKE :t OR model LIKE :t OR path LIKE :t OR failure LIKE :t"
        return list(self.db["analyses"].rows_where(where, {"t": like}, order_by="id desc", limit=limit))


def _verdict(row: dict[str, Any]) -> Verdict:
    values = {name: row[name] for name in Verdict.__dataclass_fields__}
    values["changes"] = tuple(json.loads(values["changes"]))
    return Verdict(**values)
