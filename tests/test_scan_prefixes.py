"""What collectors put before each line, found from the file: the header behind it is read, with its rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics.analysis import read
from forensics.knowledge.store import load
from forensics.schema.options import Options

LINES = (
    "[2026-03-04 05:06:07] server_args=ServerArgs(model_path='/m/q', tp_size=2)",
    "[2026-03-04 05:06:11 TP1] Init torch distributed begin.",
    "[2026-03-04 05:06:11 TP0] Init torch distributed begin.",
    "[2026-03-04 05:06:15 TP0] Load weight begin. avail mem=78.10 GB",
    "[2026-03-04 05:06:19 TP1] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/opt/sglang/srt/models/qwen2.py", line 12, in __init__',
    "    assert self.total_num_heads % tp_size == 0",
    "ValueError: odd",
)
PREFIXES = {
    "grafana-text": "2026-03-04 05:06:2{n}.123\t",
    "aws-logs-tail": "2026-03-04T05:06:2{n}.037000+00:00 sglang/app/8f1c22d7 ",
    "stern-pod-hash": "sglang-7d9f8c6b5d-x2x9z sglang ",
    "stamp-and-worker": "2026-03-04 05:06:2{n}.037000 [worker-0] ",
    "supervisor": "2026-03-04 05:06:2{n},037 DEBG 'sglang' stderr output: ",
}


def _failure(path: Path, lines: list[str]) -> tuple[int, str]:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    table = read([str(path)], Options(), load()).table
    row = next(i for i in range(len(table)) if "Scheduler hit" in table.text(i))
    return row, str(table.rank_of(row))


@pytest.mark.parametrize("name", PREFIXES)
def test_the_header_behind_a_collectors_prefix_is_read(tmp_path: Path, name: str) -> None:
    lines = [PREFIXES[name].format(n=i) + line for i, line in enumerate(LINES)]
    row, rank = _failure(tmp_path / "a.log", lines)
    assert (row, rank) == (4, "TP1")


def test_the_message_of_an_insights_export_is_read(tmp_path: Path) -> None:
    lines = [json.dumps({"@timestamp": f"2026-03-04T05:06:2{i}Z", "@message": x}) for i, x in enumerate(LINES)]
    assert _failure(tmp_path / "a.log", lines)[1] == "TP1"
