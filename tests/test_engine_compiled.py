"""The compiled kernel against its oracle, the numpy kernel. Runs where numba is installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from engine_dump import dump

from forensics.engine import compiled, compiled_code
from forensics.engine.scan import scan
from forensics.errors import UsageError
from forensics.schema.options import Options

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import generate  # noqa: E402

needs_numba = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


@needs_numba
def test_kernels_agree_on_samples(tmp_path: Path) -> None:
    path = tmp_path / "all.log"
    path.write_bytes(b"".join(p.read_bytes() for p in sorted((ROOT / "samples" / "cases").glob("*/log.txt"))))
    assert dump(scan([path], Options(engine="compiled"))) == dump(scan([path], Options(engine="numpy")))


@needs_numba
@pytest.mark.parametrize("chunk", [500, 1 << 22])
def test_kernels_agree_on_generated_and_odd_lines(tmp_path: Path, chunk: int) -> None:
    path = tmp_path / "odd.log"
    generate.main(path, 0.5)
    odd = [
        b"",
        b"\r",
        b"x" * 20_000,
        b"[2026-05-04 10:00:02 TP2] Decode batch, #running-req: 1e3, token usage: nan, #queue-req: -3",
        b"\x00\xff\xfe",
        b"7" * 30,
        # A stamp that is none: it stands elsewhere once the message is put together.
        b"2026-05-04T08:00:00.1Z stderr P ",
        b"2025-03-03T123456789012345670:01:51.600181855Z stderr F During handling of the above exception",
    ]
    path.write_bytes(path.read_bytes() + b"\n".join(odd) + b"\n" + b"no newline at the end")
    options = {"chunk_bytes": chunk, "processes": 2}
    assert dump(scan([path], Options(engine="compiled", **options))) == dump(scan([path], Options(engine="numpy")))  # type: ignore[arg-type]


def test_engine_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.log"
    path.write_text("x\n")
    with pytest.raises(UsageError):
        scan([path], Options(engine="quick"))
    monkeypatch.setitem(sys.modules, "numba", None)
    compiled_code.loops.cache_clear()
    with pytest.raises(UsageError, match="numba"):
        scan([path], Options(engine="compiled"))


@needs_numba
@pytest.mark.parametrize(("chunk", "processes"), [(500, 1), (1 << 22, 2)])
def test_kernels_keep_the_same_lines_of_a_thinned_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, processes: int
) -> None:
    path = tmp_path / "g.log"
    generate.main(path, 1)
    odd = b"[2026-05-04 10:00:02 TP2] Decode batch, #running-req: 1e3, token usage: nan, #queue-req: -3\n"
    path.write_bytes(path.read_bytes() + odd * 3)
    monkeypatch.setattr("forensics.engine.thin.THIN_ABOVE", 1000)
    monkeypatch.setattr("forensics.engine.thin.BUCKETS", 40)
    expected = dump(scan([path], Options(engine="numpy")))
    assert dump(scan([path], Options(engine="compiled", chunk_bytes=chunk, processes=processes))) == expected
