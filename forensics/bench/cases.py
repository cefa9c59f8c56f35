"""Cases on disk: a folder with `log.txt` and `truth.json`, or `NAME.log` beside `NAME.truth.json`.

`truth.json` needs `cause_key`; it may hold `log_has_enough` (default true), `first_failure` {line, rank} or null,
`first_failure_span`, `stage`, `stage_also`, `symptom`, `silent`, `guilty_rank`, `log_origin`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forensics.errors import InputError
from forensics.frozen import frozen

HEALTHY = ("healthy", "environment-report")
"""Causes that are none: a launch that works, and an input that holds no launch."""
UNDETERMINED = "undetermined"


@frozen
class BenchCase:
    """One log with its truth. `origin`: rendered (composed from the program's formats) or real."""

    id: str
    log: Path
    cause: str
    enough: bool
    line: int | None
    rank: str | None
    span: tuple[int, int] | None
    stages: tuple[str, ...]
    symptom: str | None
    origin: str
    guilty: str | None
    states_failure: bool


def load_cases(folder: Path) -> tuple[BenchCase, ...]:
    """All cases below a folder, by id. Raises InputError where there is none or a truth file cannot be read."""
    found = [_folder_case(p) for p in sorted(folder.rglob("truth.json")) if (p.parent / "log.txt").is_file()]
    found += [_named_case(p) for p in sorted(folder.rglob("*.truth.json")) if _log_of(p) is not None]
    if not found:
        raise InputError(f"{folder}: no case found", hint="a case is a folder with log.txt and truth.json")
    return tuple(sorted(found, key=lambda c: c.id))


def _folder_case(truth: Path) -> BenchCase:
    return _case(truth.parent.name, truth.parent / "log.txt", truth)


def _named_case(truth: Path) -> BenchCase:
    log = _log_of(truth)
    assert log is not None
    return _case(f"{truth.parent.name}/{log.stem}", log, truth)


def _log_of(truth: Path) -> Path | None:
    log = truth.with_name(truth.name.removesuffix(".truth.json") + ".log")
    return log if log.is_file() else None


def _case(name: str, log: Path, path: Path) -> BenchCase:
    try:
        truth: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        first = truth.get("first_failure") or {}
        span = truth.get("first_failure_span")
        return BenchCase(
            id=name,
            log=log,
            cause=str(truth["cause_key"]),
            enough=bool(truth.get("log_has_enough", True)),
            line=first.get("line"),
            rank=first.get("rank"),
            span=(int(span[0]), int(span[1])) if span else None,
            stages=tuple(s for s in (truth.get("stage"), *truth.get("stage_also", ())) if s),
            symptom=truth.get("symptom"),
            origin="rendered" if truth.get("log_origin") == "rendered" or truth.get("synthetic") else "real",
            guilty=truth.get("guilty_rank"),
            states_failure="first_failure" in truth,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: not a usable truth file ({error})", hint="see docs/accuracy.md") from error
