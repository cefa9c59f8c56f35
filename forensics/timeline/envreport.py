"""Environment reports: `python -m sglang.check_env`, `nvidia-smi` and package lists, inside a log or as files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from forensics.engine.table import STAMPED
from forensics.errors import InputError
from forensics.ingest.bundle import is_member, read_member
from forensics.late import Late
from forensics.schema.facts import Fact, Value
from forensics.schema.span import Span
from forensics.timeline.facts_gpu import family_of, known_gpu
from forensics.timeline.facts_sheet import Sheet

MAX_BYTES = 4 << 20
WINDOW = 60
TOPOLOGY = "inferred: the GPU topology table"
_MARKS = ("Compute Capability:", "NVIDIA-SMI", "CUDA Driver Version", "CUDA available:", "(UUID: GPU-")
_ANSI = Late(r"\x1b\[[0-9;]*[A-Za-z]")
_PACKAGES = {
    "sglang": "version.sglang", "torch": "version.torch", "PyTorch": "version.torch", "triton": "version.triton",
    "transformers": "version.transformers", "flashinfer_python": "version.flashinfer",
    "flashinfer-python": "version.flashinfer", "sgl_kernel": "version.sgl_kernel", "sgl-kernel": "version.sgl_kernel",
    "sglang-kernel": "version.sgl_kernel", "sglang_kernel": "version.sgl_kernel", "Python": "version.python",
    "CUDA Driver Version": "version.driver", "nvidia-nccl-cu12": "version.nccl", "nvidia-nccl-cu13": "version.nccl",
}  # fmt: skip
_LINE = Late(r"([A-Za-z][\w -]{1,40}?)(?:: +|==| {2,}|=)(\d+\.\d+[\w.+]*|\d+\.\d+)")
_GPUS = Late(r"GPU ([\d,]+): (.+)$")
_GPU_LIST = Late(r"GPU (\d{1,4}): (.{1,80}?) \(UUID:")
_CAPABILITY = Late(r"GPU [\d,]+ Compute Capability: (\d{1,3}\.\d{1,3})(?!\d)")
_NVCC = Late(r"Cuda compilation tools, release (\d+\.\d+)")
_SMI_HEAD = Late(r"Driver Version: ([\d.]+\d)\s+CUDA Version: ([\d.]+\d)")
_SMI_GPU = Late(r"\|\s{1,8}(\d{1,4})\s{1,8}(\S.{4,40}?)\s{1,40}(?:On|Off|N/A)\s{1,8}\|")
_SMI_MEMORY = Late(r"(\d{1,9})MiB\s{0,8}/\s{0,8}(\d{1,9})MiB")
_TOPOLOGY = Late(r"\s*GPU\d+\s+(.*)$")
_LINK = Late(r"\bNV\d+\b")
_PCIE = Late(r"\b(?:NODE|SYS|PHB|PXB|PIX)\b")
_ENV = Late(r"env ([A-Z][A-Z0-9_]*)=(.*)")
_HYPERVISOR = Late(r"Hypervisor vendor::? (\S+)")


class _Reader:
    """Reads lines of a report; facts are collected with the place of their line."""

    def __init__(self) -> None:
        self.found: dict[str, Fact] = {}
        self.gpus: set[str] = set()

    def put(self, name: str, value: Value, where: Span, how: str = "stated") -> None:
        self.found.setdefault(name, Fact(name, value, where, how))

    def line(self, text: str, where: Span) -> None:
        """One line of the report."""
        text = _ANSI.sub("", text).rstrip()
        self._gpu(text, where)
        for pattern, name in ((_NVCC, "version.cuda"), (_HYPERVISOR, "host.hypervisor")):
            found = pattern.search(text)
            if found:
                self.put(name, found.group(1), where)
        package = _LINE.match(text.strip())
        if package and package.group(1).strip() in _PACKAGES:
            self.put(_PACKAGES[package.group(1).strip()], package.group(2), where)
        variable = _ENV.fullmatch(text)
        if variable:
            self.put(f"env.{variable.group(1)}", variable.group(2), where)
        head = _SMI_HEAD.search(text)
        if head:
            self.put("version.driver", head.group(1), where)
            self.put("version.cuda_driver", head.group(2), where)
        topology = _TOPOLOGY.match(text)
        if topology:
            self._links(topology.group(1), where)

    def _links(self, text: str, where: Span) -> None:
        """NVLink between any two GPUs decides; only PCIe words mean that there is none."""
        if _LINK.search(text):
            self.found["host.topology"] = Fact("host.topology", "nvlink", where, TOPOLOGY)
        elif _PCIE.search(text):
            self.put("host.topology", "pcie", where, TOPOLOGY)

    def _gpu(self, text: str, where: Span) -> None:
        capability = _CAPABILITY.search(text)
        if capability:
            value = float(capability.group(1))
            self.put("gpu.capability", value, where)
            self.put("gpu.sm", round(value * 10), where, "inferred: compute capability")
            self.put("gpu.family", family_of(round(value * 10)), where, "inferred: compute capability")
            return
        one = _GPU_LIST.search(text) or _GPUS.match(text) or _SMI_GPU.search(text)
        if one and "Compute Capability" not in text:
            self.gpus |= {n for n in one.group(1).split(",") if n}
            self._named(one.group(2).strip(), where)
        memory = _SMI_MEMORY.search(text)
        if memory and "Default" in text:
            self.put("gpu.memory_gb", round(int(memory.group(2)) / 1024, 1), where)

    def _named(self, name: str, where: Span) -> None:
        self.put("gpu.name", name, where)
        self.found["gpu.count"] = Fact("gpu.count", len(self.gpus), where)
        gpu = known_gpu(name)
        if gpu:
            self.put("gpu.family", gpu.family, where, f"inferred: {gpu.name}")
            if gpu.sm:
                self.put("gpu.sm", gpu.sm, where, f"inferred: {gpu.name}")
                self.put("gpu.capability", gpu.sm / 10, where, f"inferred: {gpu.name}")


def read_env_report(path: Path) -> tuple[Fact, ...]:
    """Facts of a report file: check_env, nvidia-smi (table, `-L`, topology), `pip list` or `pip freeze`.

    Raises InputError where the file cannot be read. A file that states nothing gives no facts.
    """
    try:
        data = _content(path)
    except OSError as error:
        raise InputError(f"cannot read the environment report {path}: {error.strerror}", code="env-report") from error
    reader = _Reader()
    offset = 0
    for number, raw in enumerate(data.split(b"\n"), 1):
        text = raw[:2000].decode("utf-8", "replace").rstrip("\r")
        reader.line(text, Span(str(path), number, 1, offset, offset + len(raw)))
        offset += len(raw) + 1
    return tuple(reader.found.values())


def _content(path: Path) -> bytes:
    """The head of a report: a file, or a member of a bundle (`bundle.tar.zst!/check_env.txt`)."""
    if is_member(str(path)):
        return read_member(str(path), MAX_BYTES)
    with path.open("rb") as stream:
        return stream.read(MAX_BYTES)


def add_reports(sheet: Sheet) -> None:
    """Facts of reports that stand inside the log itself."""
    reader = _Reader()
    wanted: set[int] = set()
    for kind, masked, row in sheet.first_rows():
        if kind in ("env-report", "nvidia-smi") or any(word in masked for word in _MARKS):
            at = int(np.searchsorted(sheet.rows, row))
            wanted.update(sheet.rows[max(0, at - WINDOW) : at + WINDOW].tolist())
    for row in sorted(wanted):
        if not int(sheet.table.flags[row]) & STAMPED:
            reader.line(sheet.table.text(row)[:2000], sheet.table.span(row))
    for fact in reader.found.values():
        sheet.put(fact.name, fact.value, fact.where, fact.how)
