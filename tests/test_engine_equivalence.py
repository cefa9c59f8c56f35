"""Chunk size, processes, compression, standard input and splitting change nothing; the engine agrees with the grammar."""

from __future__ import annotations

import gzip
import io
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import zstandard
from engine_dump import dump
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.engine.record import LineReader
from forensics.engine.scan import scan
from forensics.engine.table import GLUED
from forensics.grammar.header import headers
from forensics.grammar.line import line_grammar
from forensics.schema.options import Options

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import generate  # noqa: E402

SAMPLES = sorted((ROOT / "samples" / "cases").glob("*/log.txt"))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated log, real runs and rendered cases, wrapped in several ways, one after another."""
    folder = tmp_path_factory.mktemp("equivalence")
    generate.main(folder / "generated.log", 0.7)
    parts = [(folder / "generated.log").read_bytes()] + [p.read_bytes() for p in SAMPLES[::6]]
    wrapped = b"".join(
        b"2026-05-04T08:00:00.1Z stderr F " + line + b"\n" for line in SAMPLES[3].read_bytes().splitlines()
    )
    parts += [
        wrapped,
        b"2026-05-04T08:00:00.1Z stderr P [2026-05-04 08:00:00 TP0] Load weight\n" * 3
        + b"2026-05-04T08:00:00.1Z stderr F  end.\n",
    ]
    path = folder / "all.log"
    path.write_bytes(b"".join(parts) + b"[2026-05-04 08:00:00 TP0] no final newline")
    return path


@pytest.fixture(scope="module")
def expected(log: Path) -> dict[str, object]:
    return dump(scan([log]))


@pytest.mark.parametrize("chunk", [1 << 10, 5000, 1 << 16])
def test_chunk_size_changes_nothing(log: Path, expected: dict[str, object], chunk: int) -> None:
    assert dump(scan([log], Options(chunk_bytes=chunk))) == expected


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_change_nothing(log: Path, expected: dict[str, object], processes: int) -> None:
    assert dump(scan([log], Options(processes=processes))) == expected


def test_compression_changes_nothing(log: Path, expected: dict[str, object], tmp_path: Path) -> None:
    packed = tmp_path / "all.log.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    other = tmp_path / "all.zst"
    other.write_bytes(zstandard.compress(log.read_bytes()[:300_000]) + zstandard.compress(log.read_bytes()[300_000:]))
    assert dump(scan([packed])) == expected
    assert dump(scan([other], Options(processes=2))) == expected


def test_standard_input_changes_nothing(
    log: Path, expected: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(log.read_bytes())))
    assert dump(scan(["-"])) == expected


def test_split_files_hold_the_same_rows(log: Path, tmp_path: Path) -> None:
    data = SAMPLES[5].read_bytes()
    cut = data.index(b"\n", len(data) // 2) + 1
    (tmp_path / "server.log.1").write_bytes(data[:cut])
    (tmp_path / "server.log").write_bytes(data[cut:])
    whole, split = scan([SAMPLES[5]]), scan([tmp_path / "server.log", tmp_path / "server.log.1"])
    assert [split.text(i) for i in range(len(split))] == [whole.text(i) for i in range(len(whole))]
    assert [split.kind(i) for i in range(len(split))] == [whole.kind(i) for i in range(len(whole))]
    assert split.counts == whole.counts


def test_engine_agrees_with_the_grammar_on_real_lines() -> None:
    """Each line parsed by itself, digits and all, gives the kind that the engine replays from the shape."""
    grammar = line_grammar()
    rng = random.Random(3)
    context = {"python-warning", "argparse", "compile", "advice", "request-dump", "env-report", "nvidia-smi"}
    for path in SAMPLES[::2]:
        table = scan([path])
        for row in rng.sample(range(len(table)), min(60, len(table))):
            if table.flags[row] & GLUED:
                continue
            head = table.unwrapper.head(table.raw(row), int(table.flags[row]))  # type: ignore[attr-defined]
            parse = grammar.parse(table.text(row).encode().decode("latin-1"))
            kind = table.kind(row)
            if parse.kind in ("text", "frame-source") and (kind in context or head.header):
                continue
            if head.header and parse.kind in ("frame-source", "compile", "env-report", "shell"):
                continue
            assert parse.kind == kind, (path.parent.name, table.raw(row)[:200])


def test_lexer_alone_agrees_with_the_parser() -> None:
    grammar = line_grammar()
    reader = LineReader()
    for path in SAMPLES:
        for raw in path.read_bytes().splitlines()[::7]:
            reader.read(raw[:2000].translate(bytes(48 if 48 <= b <= 57 else b for b in range(256))).decode("latin-1"))
    assert len(reader.parses) > 500
    for shape, parse in reader.parses.items():
        if shape.strip():
            assert grammar.glance(shape).kind == parse.kind, shape
            assert grammar.parse(shape) == parse, shape


LINES = [
    line.decode("latin-1")
    for path in SAMPLES[::4]
    for line in path.read_bytes().splitlines()[::11]
    if 0 < len(line) < 600
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(LINES), st.randoms(use_true_random=False))
def test_grammars_are_digit_blind(line: str, rng: random.Random) -> None:
    """Other digits (of the same number) change neither header nor kind nor the places of numbers."""
    changed = "".join(str(rng.randrange(10)) if c.isdigit() and c.isascii() else c for c in line)
    before, after = headers().split(line), headers().split(changed)
    assert (before.body_at, before.header, before.axes, before.level) == (
        after.body_at,
        after.header,
        after.axes,
        after.level,
    )
    one, two = line_grammar().parse(line[before.body_at :]), line_grammar().parse(changed[after.body_at :])
    assert one == two


def test_thinned_series_do_not_depend_on_chunks_or_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.engine.thin.THIN_ABOVE", 1000)
    monkeypatch.setattr("forensics.engine.thin.BUCKETS", 40)
    generate.main(tmp_path / "g.log", 1.5)
    tables = [
        scan([tmp_path / "g.log"], Options(chunk_bytes=c, processes=p))
        for c, p in ((1 << 22, 1), (1000, 1), (100_000, 2), (50_000, 3))
    ]
    assert [dump(t) for t in tables[1:]] == [dump(tables[0])] * 3
    series = tables[0].series["decode"]
    monkeypatch.undo()
    full = scan([tmp_path / "g.log"]).series["decode"]
    assert len(series.line) < len(full.line) / 2
    for name in ("throughput", "running"):
        assert (series.columns[name].min(), series.columns[name].max()) == (
            full.columns[name].min(),
            full.columns[name].max(),
        )
    assert series.line[0] == full.line[0]
    assert series.line[-1] == full.line[-1]
    assert "thinned" in tables[0].infos[0].notes[0]
