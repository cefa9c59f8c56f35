"""Blocks of a text, for tests."""

from __future__ import annotations

from pathlib import Path

from forensics.engine.scan import scan
from forensics.grammar.blocks import find_blocks


def read_blocks(folder: Path, text: str):
    """Table and blocks of a log of this text."""
    path = folder / "server.log"
    path.write_text(text)
    table = scan([path])
    return table, find_blocks(table)


def lines_of(table, block):
    return [int(table.line[r]) for r in block.rows]
