"""Every traceback of the sample logs becomes a block that ends in the exception that the log prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.engine.scan import scan
from forensics.grammar.blocks import find_blocks

SAMPLES = Path(__file__).parent.parent / "samples"
LOGS = sorted(
    p for p in SAMPLES.rglob("*") if p.suffix in (".txt", ".log") and b"Traceback (most recent" in p.read_bytes()
)


@pytest.mark.parametrize("path", LOGS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_every_traceback_head_is_in_a_block_with_an_exception(path):
    table = scan([path])
    blocks = [b for b in find_blocks(table) if b.kind == "traceback"]
    rows = {row for block in blocks for row in block.rows}
    heads = [r for r in range(len(table)) if "Traceback (most recent call last)" in table.text(r)]
    assert heads
    assert all(r in rows for r in heads)
    for block in blocks:
        if not block.truncated:
            assert block.raised
            assert all(r.type for r in block.raised)
            assert all(table.text(r.row).lstrip(" |").startswith(r.type) for r in block.raised if r.frames)
