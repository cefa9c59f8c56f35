"""Machine code of the compiled kernel: kept once made, loaded without numba, and only where nobody else can have
changed it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from forensics import analyze
from forensics.engine import compiled_code
from forensics.engine.worker import COMPILE_ABOVE, choose_engine
from forensics.errors import UsageError
from forensics.schema.options import Options

pytestmark = pytest.mark.skipif(not compiled_code.available(), reason="numba is not installed")
USE = "import sys; from forensics.engine.compiled_code import loops; print(len(loops()), 'numba' in sys.modules)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with machine code in it."""
    folder = tmp_path_factory.mktemp("cache")
    assert use(folder) == f"{len(compiled_code.SIGNATURES)} True"
    return folder


def use(folder: Path) -> str:
    """What a process says that has the loops loaded: how many, and whether numba was there for it."""
    environment = {**os.environ, "FORENSICS_CACHE": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", USE], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The kept file, seen from this process."""
    monkeypatch.setenv("FORENSICS_CACHE", str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (kept,) = (folder / "kernel").glob("kernel-*.o")
    return kept


def test_what_was_made_is_loaded_without_numba(folder: Path, here: Path) -> None:
    assert use(folder).endswith("False")
    assert compiled_code.at_hand()


def test_damaged_code_is_not_used(here: Path) -> None:
    good = here.read_bytes()
    for bad in (b"", good[:100], good[:-1], good[:200] + bytes([good[200] ^ 1]) + good[201:]):
        here.write_bytes(bad)
        assert not compiled_code.at_hand()
    here.write_bytes(good)
    assert compiled_code.at_hand()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="no owners here")
def test_code_that_others_could_have_written_is_not_used(here: Path, tmp_path: Path) -> None:
    here.chmod(0o666)
    assert not compiled_code.at_hand()
    here.chmod(0o600)
    assert compiled_code.at_hand()
    here.parent.chmod(0o770)
    assert not compiled_code.at_hand()
    here.parent.chmod(0o700)
    elsewhere = tmp_path / here.name
    here.rename(elsewhere)
    here.symlink_to(elsewhere)
    assert not compiled_code.at_hand(), "a link's target may belong to anybody"
    here.unlink()
    elsewhere.rename(here)


def test_where_the_code_cannot_be_made_numpy_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(llvm: object) -> bytes:
        raise TypeError("no such argument")

    monkeypatch.setenv("FORENSICS_CACHE", "off")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(compiled_code, "_made", fail)
    compiled_code.loops.cache_clear()
    assert choose_engine("auto", COMPILE_ABOVE) == "numpy"
    assert choose_engine("compiled", 1) == "compiled", "who asks for it hears why it cannot be had"
    with pytest.raises(UsageError, match=r"cannot be made .* \(TypeError: no such argument\)"):
        compiled_code.loops()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_broken_numba_is_an_error_with_a_remedy(
    processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine code cannot be loaded, as where llvmlite was built for another Python."""
    log = tmp_path / "server.log"
    log.write_text("[2026-01-05 10:00:00 TP0] Load weight begin.\n" * 4)
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    compiled_code.loops.cache_clear()
    with pytest.raises(UsageError, match="numba that is here") as caught:
        analyze([str(log)], Options(engine="compiled", processes=processes))
    assert "Options(engine='numpy')" in caught.value.render()
    assert not compiled_code.at_hand() and choose_engine("auto", COMPILE_ABOVE) == "numpy"
    analyze([str(log)], Options(engine="auto"))


def test_without_a_cache_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORENSICS_CACHE", "off")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert not compiled_code.at_hand()
