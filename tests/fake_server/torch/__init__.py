"""What replay asks of torch on a host with GPUs. `FAKE_GPUS` holds their free GiB, `80 80`; the default is one."""

import os
from types import SimpleNamespace

_FREE = [float(x) for x in os.environ.get("FAKE_GPUS", "80").split()]
_CARD = {"name": "NVIDIA B200", "major": 10, "minor": 0, "shared_memory_per_block_optin": 232448}

__version__ = "2.11.0"
version = SimpleNamespace(cuda="13.0")
cuda = SimpleNamespace(
    is_available=lambda: bool(_FREE),
    get_arch_list=lambda: ["sm_90", "sm_100"],
    nccl=SimpleNamespace(version=lambda: (2, 28, 9)),
    device_count=lambda: len(_FREE),
    get_device_properties=lambda number: SimpleNamespace(**_CARD),
    mem_get_info=lambda number: (int(_FREE[number] * 2**30), 80 * 2**30),
)
