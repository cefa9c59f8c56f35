"""What a small log pays for: `analyze` loads no library that its run does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOG = Path(__file__).parent.parent / "samples" / "cases" / "run-gpu-oom_prefill" / "log.txt"
RUN = """
import contextlib, io, sys
sys.argv = ["forensics", "analyze", *sys.argv[1:]]
from forensics.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""
HEAVY = {
    *("pydantic", "pydantic_core", "typer", "click", "yaml", "markdown_it", "sqlite3", "sqlite_utils", "jinja2"),
    *("matplotlib", "numba", "llvmlite", "fsspec", "ray", "pyarrow", "pygls", "mcp"),
    *("asyncio", "multiprocessing", "concurrent", "email", "http", "unittest"),
}


def loaded(*words: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_small_log_loads_no_heavy_library(form: str) -> None:
    loaded(str(LOG))  # the caches of tables and knowledge may be empty
    found = loaded(str(LOG), "--format", form)
    assert {"numpy", "lark", "forensics"} <= found
    assert not found & HEAVY


def test_plain_formats_do_without_rich() -> None:
    assert "rich" not in loaded(str(LOG), "--format", "json")
