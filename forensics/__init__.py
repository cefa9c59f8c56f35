"""Log forensics and a knowledge base for sglang servers.

import forensics
report = forensics.analyze("server.log")
print(report.headline)
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from forensics.version import VERSION as __version__

if TYPE_CHECKING:
    from forensics.schema.options import Options
    from forensics.schema.report import Report

__all__ = ["__version__", "analyze"]


def analyze(logs: str | Path | Sequence[str | Path], options: Options | None = None) -> Report:
    """Analyze one or many logs and give the report (`forensics.schema.report.Report`).

    `logs`: files, folders, globs or `-`. Raises `forensics.errors.ForensicsError` where nothing usable can be read.
    """
    from forensics.analysis import analyze as run
    from forensics.schema.options import Options as Defaults

    names = [logs] if isinstance(logs, str | Path) else list(logs)
    return run([str(name) for name in names], options or Defaults())
