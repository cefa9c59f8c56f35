"""Floods of lines that are all new: chunk size, processes, engine, compression and standard input change nothing, and
what is told apart does not depend on what was read before."""

from __future__ import annotations

import gzip
import importlib.util
import io
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from engine_dump import dump

from forensics.engine import apart, plain, record, records
from forensics.engine.compiled import available
from forensics.engine.crowd import Crowd
from forensics.engine.mask import DIGITS_TO_ZERO
from forensics.engine.record import LineReader
from forensics.engine.scan import scan
from forensics.schema.options import Options

ROOT = Path(__file__).parent.parent
SAMPLES = sorted((ROOT / "samples" / "cases").glob("*/log.txt"))
HEADS = (
    b"[2026-03-01 10:%02d:%02d TP%d] ",
    b"[2026-03-01 10:%02d:%02d DP1 TP%d] ERROR ",
    b"[2026-03-01 10:%02d:%02d.%d] ",
    b"[2026-03-01 10:%02d:%02d TP%d] WARNING model_config.py:12: ",
    b"2026-03-01 10:%02d:%02d INFO server%d ",
    b"sglang-%d-%d  | [2026-03-01 10:00:0%d] ",
    b"(Actor pid=%d%d%d) ",
    b"    ",
    b"",
    b"",
    b"",
)
GLUE = (
    *(
        " ",
        " ",
        " ",
        "  ",
        "\t",
        " 17 ",
        " 0x7f3a",
        " deadbeef01 ",
        " |##| ",
        "\u00e9",
        " [",
        "] ",
        " failed to ",
        "\r",
    ),
    *("\u00a0  ", ": ", "=", " 123456789012 ", "\x1b[31m", " error "),
)
HABITS = (
    b"Traceback (most recent call last):",
    b'  File "/a/b.py", line 3, in f',
    b"RuntimeError: CUDA error: x",
    b"Killed",
)


def odd_lines(seed: int, count: int) -> Iterator[bytes]:
    """Lines of random words with what shapes fold, headers read and grammars look for here and there."""
    rng = random.Random(seed)
    for _ in range(count):
        if rng.random() < 0.03:
            yield rng.choice(HABITS)
            continue
        head = rng.choice(HEADS)
        head = head % tuple(rng.randrange(10, 60) for _ in range(head.count(b"%")))
        words = ("".join(rng.choices("abcdefghijklmnopqrstuvwxyzABC", k=rng.randrange(1, 8))) for _ in range(6))
        plain_words = rng.random() < 0.6
        text = "".join(word + (" " if plain_words else rng.choice(GLUE)) for word in words)
        text = rng.choice(GLUE) + text if rng.random() < 0.2 else text
        yield head + text.encode("utf-8" if rng.random() < 0.9 else "latin-1", "replace")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that a small log meets."""
    monkeypatch.setattr(apart, "SHAPE_CAP", 900)
    monkeypatch.setattr(apart, "PLAIN_CAP", 120)
    monkeypatch.setattr(apart, "FREE_CAP", 60)
    monkeypatch.setattr(plain, "STRETCH", 4096)
    monkeypatch.setattr(plain, "SHARES", 4)
    monkeypatch.setattr(records, "CROWD", 16)
    monkeypatch.setattr(records, "MANY_NEW", 64)


@pytest.fixture(scope="module")
def flood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("floods") / "a.log"
    sample = SAMPLES[4].read_bytes()
    path.write_bytes(sample + b"\n".join(odd_lines(1, 9000)) + b"\n" + sample + b"\n".join(odd_lines(2, 3000)))
    return path


@pytest.mark.usefixtures("small")
def test_floods_are_read_alike_however_they_are_cut(
    flood: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scan([flood], Options(processes=1))
    assert sum(shape.text == apart.OTHER_SHAPE for shape in whole.shapes) >= 3
    assert len(whole) < sum(whole.counts.values()) / 2
    assert any("told apart by their kind" in note for note in whole.infos[0].notes)
    expected = dump(whole)
    for chunk in (3000, 1 << 16):
        assert dump(scan([flood], Options(processes=1, chunk_bytes=chunk))) == expected
    for processes in (2, 3):
        assert dump(scan([flood], Options(processes=processes))) == expected
    if available():
        assert dump(scan([flood], Options(processes=2, engine="compiled", chunk_bytes=1 << 15))) == expected
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress(flood.read_bytes()))
    assert dump(scan([packed])) == expected
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(flood.read_bytes())))
    assert dump(scan(["-"])) == expected


@pytest.mark.usefixtures("small")
def test_reading_together_is_reading_one_by_one(flood: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = dump(scan([flood], Options(processes=1, engine="numpy")))
    monkeypatch.setattr(records, "CROWD", 1 << 40)
    monkeypatch.setattr(records, "MANY_NEW", 1 << 40)
    assert dump(scan([flood], Options(processes=1, engine="numpy"))) == expected


def test_a_crowd_sees_what_the_reader_sees() -> None:
    lines = [line.translate(DIGITS_TO_ZERO) for line in odd_lines(3, 6000) if b"\n" not in line]
    for path in SAMPLES[::7]:
        lines += [line.translate(DIGITS_TO_ZERO)[:5000] for line in path.read_bytes().split(b"\n")]
    reader = LineReader()
    crowd = Crowd(reader)
    seen = crowd.read(lines)
    taken = np.flatnonzero(seen.head >= 0)
    assert len(taken) > 1500
    for index in taken.tolist():
        head, kind = crowd.heads[int(seen.head[index])]
        (part,) = reader.read(lines[index].decode("latin-1"))
        assert (part.head, part.shape, part.kind) == (head, (kind, seen.shape(index)), kind), lines[index]
        assert apart.order(part.shape) == int(seen.place[index]), lines[index]


def test_shapes_that_are_told_apart_do_not_depend_on_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "SHAPE_CAP", 50)
    monkeypatch.setattr(apart, "PLAIN_CAP", 10)
    monkeypatch.setattr(apart, "FREE_CAP", 5)
    rng = np.random.default_rng(1)
    places = rng.integers(0, 300, 260) + (rng.integers(0, 3, 260) << 32)
    places = np.unique(places)
    whole = apart.last_apart(places)
    assert whole is not None
    kept = places[~apart.beyond(places, whole)]
    assert np.bincount(kept >> 32).tolist() == [50, 10, 5]
    first, second = places[::2], places[1::3]
    lasts = []
    left = [places]
    for part in (first, second):
        last = apart.last_apart(part)
        assert last is not None
        lasts.append(last)
        left.append(part[~apart.beyond(part, last)])
    again = apart.last_apart(np.unique(np.concatenate([left[1], left[2], places])), capped=True)
    assert again is not None
    assert places[~apart.beyond(places, apart.least([*lasts, again]))].tolist() == kept.tolist()


def test_what_matters_stays_in_a_flood(tmp_path: Path) -> None:
    """Lines that rules look for keep their shapes, wherever they stand, and the failure is found."""
    path = tmp_path / "a.log"
    rng = random.Random(9)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = [
        b"[2026-03-01 10:00:01 TP0] " + " ".join("".join(rng.choices(letters, k=5)) for _ in range(3)).encode()
        for _ in range(70_000)
    ]
    told = b"[2026-03-01 10:00:02 TP0] Using fa3 as the attention backend, since nothing failed to load"
    crash = b"[2026-03-01 10:00:03 TP0] Scheduler hit an exception: Traceback (most recent call last):"
    path.write_bytes(b"\n".join([*words, told, crash, b"ValueError: out of range", b"Killed", b""]))
    table = scan([path], Options(processes=1))
    shapes = {shape.text for shape in table.shapes}
    assert any("attention backend" in shape for shape in shapes)
    assert any("Scheduler hit an exception" in shape for shape in shapes)
    assert len(table) < 10_000
    assert sum(table.counts.values()) == 70_004


def test_glue_is_found_where_a_search_would_find_it() -> None:
    rng = random.Random(4)
    pieces = (
        *(
            "it/s]",
            "s/it]",
            "[0000-00-00 00:00:00] ",
            "[0000-00-00 00:00:00.00 TP0] ",
            "[rank0]:[E0000 ",
            "\r",
            "\r\r",
            "a",
        ),
        *("B", " ", "|", "[", "]", "0", "it/s", "s/it/s]", "[0000-", "\t"),
    )
    for _ in range(4000):
        text = "".join(rng.choices(pieces, k=rng.randrange(1, 12)))
        expected = [m.start() for m in record._GLUE.finditer(text) if 0 < m.start() < len(text)]
        assert record.glue(text, 0, len(text)) == expected, text


def test_words_that_rules_look_for_are_known() -> None:
    """The list is made by tools/build_words.py; a rule or two may be younger."""
    place = importlib.util.spec_from_file_location("build_words", ROOT / "tools" / "build_words.py")
    assert place is not None and place.loader is not None
    tool = importlib.util.module_from_spec(place)
    place.loader.exec_module(tool)
    missing = [word for word in tool.words() if apart.words().search(word.encode()) is None]
    assert len(missing) * 20 < len(tool.words()), missing
