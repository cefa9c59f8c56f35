"""Which family a message belongs to: the part that speaks, wherever in a launch it does so."""

from __future__ import annotations

import re

_SPEAKERS = (
    ("compile", r"torch\._(?:dynamo|inductor|functorch)|torch\.compile|triton\.compiler|\b(?:nvcc|ptxas|ninja)\b"),
    ("memory", r"OutOfMemoryError|out of memory"),
    ("distributed", r"torch\.distributed|DistBackendError|\b(?:NCCL|Gloo|gloo) error|\bnccl[A-Z]\w+"),
    ("tokenizer", r"\b(?:tokenizers|jinja2|tiktoken|sentencepiece)\.|[Tt]okenizer\b"),
    ("load", r"\b(?:safetensors|huggingface_hub)[._]|SafetensorError"),
    ("kernel", r"\bCUDA error|\b(?:flashinfer|deep_gemm|cutlass|flash_attn|sgl_kernel)\b"),
    ("network", r"\b(?:requests|urllib3|aiohttp|httpx|zmq)\.\w"),
)
_READ = 300


def family_of(said: str) -> str:
    """The rule family of a message by what speaks in it (a module before an exception's name, a tool, a library);
    empty where nothing tells."""
    said = said[:_READ]
    return next((family for family, pattern in _SPEAKERS if re.search(pattern, said)), "")
