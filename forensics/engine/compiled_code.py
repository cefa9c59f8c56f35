"""Machine code of the compiled kernel: made once with numba, kept as an object file, loaded with LLVM alone.

numba takes longer to import than a gigabyte takes to scan; what it made needs nothing of it.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from forensics.engine.chunk import MAX_RANK
from forensics.engine.record import ACCESS
from forensics.engine.records import AXES, AXIS0, CLASSES, CLOCK_AT, FRACTION_WIDTH, KINDS, MULTI, SLOTS, STAMP
from forensics.errors import UsageError
from forensics.knowledge.cache import cache_folder, put

SIGNATURES = {
    "split": "bibiiiussiiisl",
    "select": "bisibbslssisil",
    "thin": "bisssiisissidilsdsb",
    "times": "biislsisuddd",
    "ranks": "bislsislhihl",
    "columns": "bilssisdiddl",
}
"""Arguments of each loop, which gives an int64: `i` an int64, else a pointer."""
_POINTERS = {"b": "uint8", "h": "int16", "s": "int32", "l": "int64", "u": "uint64", "d": "float64"}
RADIX = 10_000
"""A rank's key is the number of its combination of axes, plus 1, and a digit to this base for each."""
SPREAD = 0x9E3779B97F4A7C15
"""Spreads keys of ranks over the places of a hash table."""
FREE = -1
"""Value of a place in the hash table of masks that is not taken; lower ones are masks whose record is not known yet."""
Loop = Callable[..., int]
_SOURCES = ("compiled_code.py", "compiled_hash.py", "compiled_lines.py", "compiled_numbers.py")
_CONSTANTS = (MAX_RANK, ACCESS, AXES, AXIS0, CLASSES, CLOCK_AT, FRACTION_WIDTH, KINDS, MULTI, SLOTS, STAMP)
"""What the machine code is made of."""
_ELSEWHERE = ("llvm.", "memset", "memcpy", "memmove")
"""Functions that the machine code may call: LLVM's own and the C library's."""
_DIGEST = hashlib.sha256().digest_size
_REMEDY = "pip install -U 'sglang-forensics[fast]', or Options(engine='numpy'), which reads the same, more slowly"
_alive: list[Any] = []


def available() -> bool:
    """Whether numba is installed."""
    try:
        return importlib.util.find_spec("numba") is not None
    except ValueError:
        return False


@cache
def loops() -> dict[str, Loop]:
    """The loops, ready to be called with numbers and addresses. UsageError where numba is missing or does not work."""
    if not available():
        raise UsageError("the compiled engine needs numba", hint=_REMEDY)
    try:
        return _loaded()
    except UsageError:
        raise
    except Exception as error:  # of whatever kind: numba, LLVM and numpy must fit together, and with the processor
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise UsageError(
            f"the compiled engine cannot be made with the numba that is here ({said})", hint=_REMEDY
        ) from error


def _loaded() -> dict[str, Loop]:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    name = f"kernel-{_key(llvm)}.o"
    code = _stored(name)
    if code is None:
        code = _made(llvm)
        _store(name, code)
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _alive.append(engine)
    return {name: _callable(engine.get_function_address(_symbol(name)), name) for name in SIGNATURES}


def works() -> bool:
    """Whether the loops can be had: an old numba, or a processor that LLVM knows little of, is no reason to fail."""
    try:
        return bool(loops())
    except Exception:
        return False


def at_hand() -> bool:
    """Whether the machine code is there already, so that it need not be made first."""
    if not available() or not any(any(folder.glob("kernel-*.o")) for folder in _folders()):
        return False
    with suppress(Exception):  # of a numba that does not load it is no use, whatever it raises
        import llvmlite.binding as llvm

        return _stored(f"kernel-{_key(llvm)}.o") is not None
    return False


def _symbol(name: str) -> str:
    return f"forensics_{name}"


def _callable(address: int, name: str) -> Loop:
    kinds = [ctypes.c_int64 if letter == "i" else ctypes.c_void_p for letter in SIGNATURES[name]]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)


@cache
def _key(llvm: Any) -> str:
    """Changes with the source, with LLVM and with the processor."""
    digest = hashlib.sha256()
    for source in _SOURCES:
        digest.update((Path(__file__).parent / source).read_bytes())
    machine = (llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    digest.update(repr((_CONSTANTS, machine, llvm.llvm_version_info, sys.version_info[:2])).encode())
    return digest.hexdigest()[:40]


def _made(llvm: Any) -> bytes:
    """Object code of all loops."""
    whole = llvm.parse_assembly("")
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="default",
        codemodel="jitdefault",
    )
    for name in SIGNATURES:
        text, symbol = _translated(name)
        module = llvm.parse_assembly(text)
        module.get_function(symbol).name = _symbol(name)
        strange = [f.name for f in module.functions if f.is_declaration and not f.name.startswith(_ELSEWHERE)]
        if strange:
            raise UsageError(f"numba's code of {name} needs {', '.join(strange)}", hint=_REMEDY)
        whole.link_in(module)
    whole.verify()
    return bytes(machine.emit_object(whole))


def _translated(name: str) -> tuple[str, str]:
    """LLVM text of a loop, and the name of the C function that it is there."""
    import numba

    from forensics.engine import compiled_lines, compiled_numbers

    types: Any = numba.types
    kinds = {letter: types.CPointer(getattr(types, kind)) for letter, kind in _POINTERS.items()}
    wanted = types.int64(*(kinds.get(letter, types.int64) for letter in SIGNATURES[name]))
    translate: Any = numba.cfunc
    loop = getattr(compiled_lines, name, None) or getattr(compiled_numbers, name)
    made = translate(wanted, nopython=True, error_model="numpy")(loop)
    return made.inspect_llvm(), made.native_name


def _folders() -> list[Path]:
    """Where object code is looked for and kept: beside the byte code, else in the user's cache folder. A folder of its
    own, as the one around it may be open to the user's group."""
    around = [None if sys.dont_write_bytecode else Path(__file__).parent / "__pycache__", cache_folder()]
    return [folder / "kernel" for folder in around if folder is not None]


def _stored(name: str) -> bytes | None:
    """Object code that this user or the system's owner has kept and nobody else could have changed."""
    for folder in _folders():
        with suppress(OSError):
            if not (_ours(folder) and _ours(folder / name)):
                continue
            data = (folder / name).read_bytes()
            if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                return data[_DIGEST:]
    return None


def _ours(path: Path) -> bool:
    """Whether only this user, or root, can write there."""
    seen = path.lstat()
    if not hasattr(os, "getuid"):
        return True
    return seen.st_uid in (0, os.getuid()) and not seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _store(name: str, code: bytes) -> None:
    """Keep object code in the first folder that takes it; older code of this kind goes."""
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(0o700, parents=True, exist_ok=True)
            if not _ours(folder):
                continue
            put(folder / name, hashlib.sha256(code).digest() + code)
            for old in folder.glob("kernel-*.o"):
                if old.name != name:
                    old.unlink(missing_ok=True)
            return
