"""The command line of `forensics replay`, kept in the run folder so that `--resume FOLDER` needs nothing else."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from forensics.errors import ReplayError
from forensics.frozen import frozen
from forensics.output.mask import MASK
from forensics.replay.folder import RunFolder

_KEPT = "request.json"
_PATHS = ("launch_file", "ssh_config", "requests_file", "crash_dump", "db", "history")
_OF_THIS_CALL = ("yes", "resume", "runs")


@frozen
class Request:
    """The command line. See `forensics replay --help` for each."""

    logs: tuple[str, ...] = ()
    hypothesis: str | None = None
    fixes: tuple[str, ...] = ()
    launch: str | None = None
    launch_file: Path | None = None
    python: str = "python3"
    host: str = "local"
    ssh_config: Path | None = None
    yes: bool = False
    control: bool = False
    ladder: bool = False
    budget: str = "6h"
    minimise: bool = False
    concurrency: int = 0
    requests: int = 0
    tokens: int = 64
    seconds: float = 600.0
    settle: float = 5.0
    requests_file: Path | None = None
    crash_dump: Path | None = None
    trust_dump: bool = False
    limits: tuple[str, ...] = ()
    allow_env: tuple[str, ...] = ()
    force: bool = False
    runs: Path = Path("forensics-runs")
    resume: Path | None = None
    db: Path | None = None
    history: Path | None = None
    symptom: str | None = None
    kb: tuple[Path, ...] = ()

    @property
    def says_what(self) -> bool:
        """Whether it names a log or a command."""
        return bool(self.logs or self.launch or self.launch_file or self.crash_dump)


def keep(request: Request, folder: RunFolder) -> None:
    """Write the request into the run folder, with whole paths."""
    data = {name: value for name, value in asdict(request).items() if name not in _OF_THIS_CALL}
    for name in _PATHS:
        data[name] = _whole(data[name]) if data[name] else None
    data["logs"] = [_whole(log) for log in request.logs]
    data["kb"] = [_whole(path) for path in request.kb]
    folder.keep(_KEPT, data)


def _whole(path: str | Path) -> str:
    """The absolute path of what is on this machine; anything else (a file of a remote host, `-`) as it was given."""
    return str(Path(path).absolute()) if Path(path).exists() else str(path)


def resumed(request: Request) -> Request:
    """The request that `--resume` continues: the kept one, unless the command line says by itself what to do."""
    if request.resume is None or request.says_what:
        return request
    folder = RunFolder.open(request.resume)
    path = folder.path / _KEPT
    try:
        data: dict[str, Any] = folder.kept(_KEPT)
        known = {field.name for field in fields(Request)} - set(_OF_THIS_CALL)
        if not isinstance(data, dict) or not data.keys() <= known:
            raise ValueError("it is not a request of this version")
    except (OSError, ValueError) as error:
        raise ReplayError(f"{path}: {error}", hint="repeat the whole command line with --resume FOLDER") from None
    if MASK in json.dumps(data):
        why = "a secret of its command was let go when the replay had its verdict"
        raise ReplayError(f"{path}: {why}", hint="repeat the whole command line with --resume FOLDER")
    for name in _PATHS:
        data[name] = Path(data[name]) if data.get(name) else None
    for name in ("logs", "fixes", "limits", "allow_env"):
        data[name] = tuple(data.get(name) or ())
    data["kb"] = tuple(Path(path) for path in data.get("kb") or ())
    given = Request(**data)
    return replace(given, yes=request.yes, resume=request.resume, runs=request.runs, db=request.db or given.db)
