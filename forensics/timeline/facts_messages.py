"""Facts that ordinary log messages state: weights, KV cache, versions, devices, environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from forensics.frozen import frozen
from forensics.late import Late
from forensics.schema.facts import Value
from forensics.timeline.facts_gpu import family_of, known_gpu, memory_family, shared_family
from forensics.timeline.facts_sheet import Sheet
from forensics.timeline.sieve import Sieve


@frozen
class Statement:
    """A message that states facts: `literal` (without digits) must stand in the line, `pattern` finds the value in
    group 1, `name` is the fact, `read` types the value, `how` says how it is known."""

    literal: str
    pattern: Late[str]
    name: str
    read: Callable[[str], Value] = str
    how: str = "stated"


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def _capability(text: str) -> float:
    return float(text)


def _s(literal: str, pattern: str, name: str, read: Callable[[str], Value] = str, how: str = "stated") -> Statement:
    return Statement(literal, Late(pattern), name, read, how)


STATEMENTS: tuple[Statement, ...] = (
    _s("Load weight end", r"\btype=([A-Za-z_]\w*)", "model.architecture"),
    _s("Load weight end", r"\bdtype=([\w.]+)", "weights.dtype"),
    _s("Load weight end", r"mem usage=(-?[\d.]+\d) ?GB", "weights.gb", float),
    _s("Load weight end", r"\bquant_algo=(\w+)", "weights.quantization"),
    _s("Load weight end", r"\bquant=(\w+)", "weights.quantization"),
    _s("checkpoint", r"[Dd]etected (?:an? |the )?(?:ModelOpt )?([A-Za-z][\w-]*) (?:quantized )?checkpoint",
       "weights.quantization", str.lower),
    _s("checkpoint shards", r"\| *\d+/(\d+) ", "weights.shards", _int),
    _s("KV Cache is allocated", r"dtype: ([\w.]+)", "kv.dtype"),
    _s("KV Cache is allocated", r"#tokens: (\d+)", "kv.tokens", _int),
    _s("KV Cache is allocated", r"KV size: ([\d.]+) GB", "kv.gb", float),
    _s("KV cache dtype", r"Using KV cache dtype: ([\w.]+)", "kv.dtype"),
    _s("max_total_num_tokens=", r"max_total_num_tokens=(\d+)", "kv.tokens", _int),
    _s("max_total_num_tokens=", r"context_len=(\d+)", "model.context_len", _int),
    _s("sglang is using nccl==", r"nccl==([\d.]+\d)", "version.nccl"),
    _s("NCCL version", r"NCCL version ([\d.]+\d)", "version.nccl"),
    _s("NCCL version", r"NCCL version [\d.]+\+cuda([\d.]+\d)", "version.cuda"),
    _s("PyTorch", r"PyTorch:? (?:version )?(\d+\.\d+[\w.+]*)", "version.torch"),
    _s("torch==", r"\btorch==(\d+\.\d+[\w.+]*)", "version.torch"),
    _s("torch version", r"torch version:? (\d+\.\d+[\w.+]*)", "version.torch"),
    _s("ransformers", r"[Tt]ransformers(?: version|==| ) ?(\d+\.\d+[\w.]*)", "version.transformers"),
    _s("triton==", r"\btriton==(\d+\.\d+[\w.]*)", "version.triton"),
    _s("flashinfer",
       r"flashinfer(?:[-_]python)?(?: version)?(?:==| ?\(|: ?| )(\d+\.\d+[\w.]*)",
       "version.flashinfer"),
    _s("sgl", r"sgl[-_]kernel(?: version)?(?:==|: ?| )(\d+\.\d+[\w.]*)", "version.sgl_kernel"),
    _s("Driver Version:", r"Driver Version: ([\d.]+\d)", "version.driver"),
    _s("CUDA Version:", r"CUDA Version: ([\d.]+\d)", "version.cuda"),
    _s("total capacity of", r"total capacity of ([\d.]+\d) GiB", "gpu.memory_gb", float),
    _s("Hardware limit:", r"Hardware limit: (\d+)", "gpu.smem_per_block", _int),
    _s("ardware", r"[Hh]ardware (?:supports|limit(?: is)?) (\d{5,6})", "gpu.smem_per_block", _int),
    _s("device_name=", r"device_name=([A-Za-z0-9_]+?)(?:[,.]|_down|$)", "gpu.name", lambda t: t.replace("_", " "),
       "inferred: the tuned kernel configuration that was looked for"),
    _s("cuda capability", r"Found GPU\d{1,4} (.{1,100}?) which is of cuda capability", "gpu.name"),
    _s("cuda capability", r"of cuda capability (\d+\.\d+)", "gpu.capability", _capability),
    _s("with CUDA capability", r"^(.+?) with CUDA capability sm_\d+ is not compatible", "gpu.name"),
    _s("with CUDA capability", r"with CUDA capability sm_(\d+) is not compatible", "gpu.sm", _int),
    _s("ompute capability", r"[Cc]ompute capability (?:of |is |: ?|= ?)?\(?(\d{1,2}\.\d)\b",
       "gpu.capability", _capability,
       "inferred: a message that names the capability"),
    _s("sm_", r"(?:device|arch|running on|detected|GPU) (?:is )?sm_(\d{2,3})a?\b", "gpu.sm", _int,
       "inferred: a message that names the architecture"),
    _s("SM", r"(?:[Dd]etected|[Rr]unning on|on this|current device is) SM ?(\d{2,3})\b", "gpu.sm", _int,
       "inferred: a message that names the architecture"),
    _s("--gpu-name", r"--gpu-name[ =]sm_(\d{2,3})", "gpu.sm", _int, "inferred: the target of the compiler call"),
    _s("available_cpu_mem=", r"available_(cpu)_mem=", "launch.device", str,
       "inferred: the memory that was measured"),
    _s("available_gpu_mem=", r"available_(gpu)_mem=", "launch.device", lambda _: "cuda",
       "inferred: the memory that was measured"),
    _s("Memory: ", r"Host memory:? ([\d.]+) ?GB", "host.memory_gb", float),
    _s("/sgl-workspace/", r"(/sgl-workspace)/", "host.container", lambda _: True,
       "inferred: path of the published image"),
    _s("Config quantization:", r"quantization: (\w+)", "weights.quantization"),
)  # fmt: skip

MAX_TEXT = 4000
"""Statements are short: the rest of a longer line is not searched."""
_ENV_SET = Late(r"\b([A-Z][A-Z0-9_]{3,60}) set by environment to ([^\s]+?)\.?$")
_KV_PARTS = Late(r"K size: ([\d.]+) GB, V size: ([\d.]+) GB")
_PYTHON = Late(r"/python(3\.\d{1,2})/")
_BLACKWELL = Late(
    r"(?:[Dd]etected|[Rr]unning on|on this|is Blackwell|on) (Blackwell|Hopper|Ampere)(?: GPU| arch|,|\.|$)"
)


@cache
def _sieve() -> Sieve:
    """Which statements a message may be."""
    found = Sieve()
    for statement in STATEMENTS:
        found.add(re.escape(statement.literal))
    return found


def make_ready() -> None:
    """Load what every launch asks for."""
    _sieve().near("")


def add_messages(sheet: Sheet) -> None:
    """Facts of the first line of each shape that states one."""
    for kind, masked, row in sheet.first_rows():
        if kind in ("server-args", "request-dump", "argparse", "frame-source", "access"):
            continue
        for number in sorted(_sieve().near(masked)):
            if STATEMENTS[number].literal in masked:
                _state(sheet, row, STATEMENTS[number])
        if "set by environment to" in masked:
            _environment(sheet, row)
        if "V size:" in masked:
            _kv_size(sheet, row)
        if kind in ("frame", "python-warning") and "version.python" not in sheet.facts:
            _python(sheet, row)
    _derive_gpu(sheet)
    _derive_cuda(sheet)


def _state(sheet: Sheet, row: int, statement: Statement) -> None:
    found = statement.pattern.search(sheet.table.text(row)[:MAX_TEXT])
    if found is None:
        return
    try:
        value = statement.read(found.group(1))
    except ValueError:
        return
    sheet.put(statement.name, value, sheet.place(row, *found.span(1)), statement.how)


def _environment(sheet: Sheet, row: int) -> None:
    found = _ENV_SET.search(sheet.table.text(row))
    if found:
        sheet.put(f"env.{found.group(1)}", found.group(2), sheet.place(row, *found.span()))


def _kv_size(sheet: Sheet, row: int) -> None:
    found = _KV_PARTS.search(sheet.table.text(row))
    if found:
        sheet.put("kv.gb", round(float(found.group(1)) + float(found.group(2)), 2), sheet.place(row, *found.span()))


def _python(sheet: Sheet, row: int) -> None:
    found = _PYTHON.search(sheet.table.text(row))
    if found:
        sheet.put("version.python", found.group(1), sheet.place(row, *found.span(1)), "inferred: path of the packages")


def _derive_cuda(sheet: Sheet) -> None:
    """CUDA from the local part of torch's version (`2.9.1+cu130`)."""
    found = re.search(r"\+cu(\d{2})(\d)$", str(sheet.value("version.torch") or ""))
    if found:
        value = f"{found.group(1)}.{found.group(2)}"
        sheet.put("version.cuda", value, sheet.where("version.torch"), "inferred: the build of torch")


def _derive_gpu(sheet: Sheet) -> None:
    """Capability, family and memory from the name, the name's parts from the capability, the family from limits."""
    name = sheet.value("gpu.name")
    gpu = known_gpu(str(name)) if name else None
    if gpu:
        how, where = f"inferred: {gpu.name}", sheet.where("gpu.name")
        if gpu.sm:
            sheet.put("gpu.sm", gpu.sm, where, how)
        sheet.put("gpu.family", gpu.family, where, how)
        if gpu.memory_gb:
            sheet.put("gpu.memory_gb", gpu.memory_gb, where, how)
    capability, sm = sheet.value("gpu.capability"), sheet.value("gpu.sm")
    if isinstance(capability, int | float):
        sheet.put(
            "gpu.sm", round(float(capability) * 10), sheet.where("gpu.capability"), "inferred: compute capability"
        )
    elif isinstance(sm, int):
        sheet.put("gpu.capability", sm / 10, sheet.where("gpu.sm"), "inferred: architecture")
    sm = sheet.value("gpu.sm")
    if isinstance(sm, int) and family_of(sm):
        sheet.put("gpu.family", family_of(sm), sheet.where("gpu.sm"), f"inferred: compute capability {sm / 10}")
    limit = sheet.value("gpu.smem_per_block")
    if isinstance(limit, int) and shared_family(limit):
        sheet.put("gpu.family", shared_family(limit), sheet.where("gpu.smem_per_block"), f"inferred: limit {limit}")
    memory = sheet.value("gpu.memory_gb")
    if isinstance(memory, float) and memory_family(memory):
        sheet.put(
            "gpu.family", memory_family(memory), sheet.where("gpu.memory_gb"), f"inferred: {memory} GiB of memory"
        )
    _family_words(sheet)
    if sheet.value("launch.device") == "cpu" or sheet.value("args.device") == "cpu":
        for fact in ("gpu.name", "gpu.sm", "gpu.capability"):
            sheet.facts.pop(fact, None)
        sheet.put(
            "gpu.family", "cpu", sheet.where("args.device") or sheet.where("launch.device"), "inferred: device cpu"
        )


def _family_words(sheet: Sheet) -> None:
    if "gpu.family" in sheet.facts:
        return
    for kind, masked, row in sheet.first_rows():
        if kind in ("server-args", "request-dump") or not any(w in masked for w in ("Blackwell", "Hopper", "Ampere")):
            continue
        found = _BLACKWELL.search(sheet.table.text(row))
        if found:
            sheet.put("gpu.family", found.group(1).lower(), sheet.place(row, *found.span(1)),
                      f"inferred: 'on {found.group(1)}'")  # fmt: skip
            return
