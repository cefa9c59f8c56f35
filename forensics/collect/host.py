"""The parts of a bundle that describe the host and the server's process."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from forensics.collect.ask import Part, ask, join
from forensics.collect.logs import Window
from forensics.output.mask import mask
from forensics.replay.edits import SAFE_ENV_PREFIXES

PACKAGES = (
    "sglang", "torch", "triton", "transformers", "flashinfer-python", "flashinfer-cubin", "flashinfer-jit-cache",
    "sgl-kernel", "sglang-kernel", "sglang-router", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13", "nvidia-nvshmem-cu12", "nvidia-nvshmem-cu13", "cuda-python", "deep-ep", "deep-gemm",
    "mooncake-transfer-engine", "nixl", "torchao", "xgrammar", "outlines", "llguidance", "tokenizers", "safetensors",
    "huggingface-hub", "compressed-tensors", "vllm", "numpy", "pyzmq", "uvloop", "ray", "openai", "tilelang",
    "apache-tvm-ffi", "nvidia-cutlass-dsl", "quack-kernels", "torch-memory-saver", "amd-aiter",
    "intel-extension-for-pytorch",
)  # fmt: skip
"""Distributions whose versions findings ask for."""
_LIST = (
    "import sys,importlib.metadata as m\n"
    "print('Python: '+sys.version.split()[0])\n"
    "for n in sys.argv[1:]:\n"
    "  try: print(n+'=='+m.version(n))\n"
    "  except Exception: pass\n"
)
FURTHER_ENV = (
    "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES", "RAY_ADDRESS",
)  # fmt: skip
_GPU_QUERY = (
    "index,name,driver_version,memory.total,memory.used,compute_cap,ecc.errors.uncorrected.volatile.total,"
    "mig.mode.current,pstate,temperature.gpu"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|KEY|CREDENTIAL|AUTH", re.I)
_KERNEL = re.compile(
    r"NVRM|Xid|oom-kill|[Oo]ut of memory|Killed process|nvidia|amdgpu|mlx5|hung_task|blocked for more than"
    r"|Machine check|Hardware Error|segfault|general protection|AER:|EDAC"
)
_STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)")
_DMESG = re.compile(r"(?m)^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,]\d+)?([+-]\d\d:?\d\d) ")
MAX_KERNEL_LINES = 5_000


def packages(python: str) -> Part:
    """Versions of the relevant distributions, by the server's own Python."""
    part = ask("packages.txt", [python, "-c", _LIST, *PACKAGES], 60.0)
    return Part(part.name, part.text, f"{python}: importlib.metadata", part.problem)


def check_env(python: str) -> Part:
    """sglang's own report."""
    return ask("check_env.txt", [python, "-m", "sglang.check_env"], 180.0)


def gpus() -> Part:
    """What the GPU driver says."""
    if _amd():
        more = ["rocm-smi", "--showproductname", "--showdriverversion"]
        return join("nvidia-smi.txt", [ask("", ["rocm-smi"]), ask("", more)])
    more = ["nvidia-smi", f"--query-gpu={_GPU_QUERY}", "--format=csv"]
    return join("nvidia-smi.txt", [ask("", ["nvidia-smi"]), ask("", more)])


def _amd() -> bool:
    return shutil.which("nvidia-smi") is None and shutil.which("rocm-smi") is not None


def topology() -> Part:
    """How the GPUs are linked."""
    if _amd():
        return ask("topology.txt", ["rocm-smi", "--showtopo"])
    return ask("topology.txt", ["nvidia-smi", "topo", "-m"])


def environment(pid: int) -> Part:
    """Allow-listed variables with masked values: of the server's process where it is known, else of this shell."""
    if not pid:
        found = _allowed(os.environ)
        text = "".join(f"{name}={value}\n" for name, value in found)
        problem = "of this shell, not of the server: pass --pid to read the server's own"
        return Part("environment.txt", "# of the shell that collected\n" + text, "environment", problem)
    how = f"/proc/{pid}/environ"
    try:
        raw = Path(how).read_bytes()
    except OSError as error:
        return Part("environment.txt", "", how, error.strerror or "cannot be read")
    pairs = (item.decode("utf-8", "replace").partition("=") for item in raw.split(b"\0") if b"=" in item)
    found = _allowed({name: value for name, _, value in pairs})
    return Part("environment.txt", "".join(f"env {name}={value}\n" for name, value in found), how)


def _allowed(variables: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    for name, value in sorted(variables.items()):
        if not (name.startswith(SAFE_ENV_PREFIXES) or name in FURTHER_ENV):
            continue
        plain = value.replace("\n", " ")[:2000]
        found.append((name, "[masked]" if _SECRET.search(name) else mask(f"{name}={plain}").partition("=")[2]))
    return found


def command(pid: int) -> Part:
    """The server's command line, masked."""
    how = f"/proc/{pid}/cmdline"
    if not pid:
        return Part("command.txt", "", how, "no --pid was given")
    try:
        words = Path(how).read_bytes().split(b"\0")
    except OSError as error:
        return Part("command.txt", "", how, error.strerror or "cannot be read")
    return Part("command.txt", mask(" ".join(w.decode("utf-8", "replace") for w in words if w)) + "\n", how)


def limits(pid: int) -> Part:
    """Resource limits of the server's process, else of this one."""
    if pid:
        how = f"/proc/{pid}/limits"
        try:
            return Part("limits.txt", Path(how).read_text(), how)
        except OSError as error:
            return Part("limits.txt", "", how, error.strerror or "cannot be read")
    names = sorted(n for n in dir(resource) if n.startswith("RLIMIT_"))
    rows = []
    for name in names:
        soft, hard = resource.getrlimit(getattr(resource, name))
        rows.append(f"{name} soft={_limit(soft)} hard={_limit(hard)}\n")
    return Part("limits.txt", "".join(rows), "getrlimit", "of this process, not of the server: pass --pid")


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def host() -> Part:
    """Kernel, memory, shared memory, disks, network devices, container."""
    rows = [f"system: {platform.system()} {platform.release()} {platform.machine()}", f"cpus: {os.cpu_count()}"]
    for label, path in (("shm", "/dev/shm"), ("tmp", "/tmp")):
        try:
            use = shutil.disk_usage(path)
            rows.append(f"{label}: {path} total={use.total} free={use.free}")
        except OSError as error:
            rows.append(f"{label}: {path}: {error.strerror}")
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/pids.max"):
        rows += _lines(path, 8)
    rows += [line for line in _lines("/proc/meminfo", 60) if re.search(r"Mem|Swap|Shmem|Huge|Commit|Mlock", line)]
    rows.append(f"container: {'yes' if _contained() else 'not seen'}")
    for folder in ("/sys/class/net", "/sys/class/infiniband", "/sys/devices/system/node"):
        rows.append(f"{folder}: {' '.join(_names(folder))}")
    return Part("host.txt", "\n".join(rows) + "\n", "proc, sys, statvfs")


def _lines(path: str, most: int) -> list[str]:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return [f"{path}: {line.rstrip()}" for _, line in zip(range(most), file, strict=False)]
    except OSError:
        return []


def _names(folder: str) -> list[str]:
    try:
        return sorted(p.name for p in Path(folder).iterdir())[:64]
    except OSError:
        return []


def _contained() -> bool:
    return (
        Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or "KUBERNETES_SERVICE_HOST" in os.environ
    )


def kernel(window: Window | None) -> Part:
    """Kernel messages about memory, GPUs and hardware, of the log's time and by its clock, where those are known."""
    part = ask("kernel.txt", ["journalctl", "-k", "--no-pager", "-o", "short-iso"], 40.0)
    if not part.text.strip() or part.problem:
        other = ask("kernel.txt", ["dmesg", "--time-format", "iso"], 20.0)
        how = f"{part.how}; {other.how}"
        if other.text:
            part = Part("kernel.txt", _DMESG.sub(r"\1\2 host kernel: ", other.text), how)
        else:
            part = Part("kernel.txt", "", how, "; ".join(filter(None, (part.problem, other.problem))))
    lines = (_placed(line, window) for line in part.text.splitlines() if _KERNEL.search(line))
    kept = [mask(line) for line in lines if line]
    return Part("kernel.txt", "".join(f"{line}\n" for line in kept[-MAX_KERNEL_LINES:]), part.how, part.problem)


def _placed(line: str, window: Window | None) -> str:
    """A kernel line by the log's clock; empty where it lies outside the log's time."""
    stamp = _STAMP.match(line)
    if window is None or stamp is None:
        return line
    time = datetime.fromisoformat(stamp.group(1)) - window.shift
    return time.isoformat() + line[stamp.end() :] if window.start <= time <= window.end else ""
