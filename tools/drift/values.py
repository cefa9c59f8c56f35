"""Plausible values for the holes of a text, by the names that the program has for them."""

from __future__ import annotations

import re

from drift.texts import OPEN, SHUT

_NAMED = (
    (r"dtype", "torch.bfloat16"),
    (r"(?:path|file|folder|directory|_dir|dirname|filename)\b", "/models/example/part.bin"),
    (r"\burls?\b|endpoint|server_addr", "http://10.0.0.7:8998"),
    (r"\b(?:host|ip|addr|address|hostname)\b|_(?:host|ip|addr|address)\b", "10.0.0.7"),
    (r"\barch(?:itecture)?s?\b|model_arch|architectures", "ExampleForCausalLM"),
    (r"shape|\.size\(\)|dims\b", "torch.Size([128, 512])"),
    (r"backend", "examplebackend"),
    (r"quant(?:ization)?(?:_method|_config)?\b", "examplequant"),
    (r"version", "0.4.2"),
    (r"device\b|platform", "cuda"),
    (r"missing|unexpected|names|_keys|list\(|sorted\(|choices|supported|allowed|\.keys\(\)", "['one', 'two']"),
    (
        r"\b(?:e|err|error|ex|exc|exception|reason|traceback|get_exception_traceback\(\))\b|_error\b|format_exc",
        "something went wrong",
    ),
    (r"\bname\b|_name\b|__name__|\bprefix\b|\bkey\b", "layers.3.mlp.experts.w13_weight"),
    (r"model_type|\btype\(", "example"),
    (
        r"size|num|len\(|count|rank|_id\b|ids\b|port|length|tokens|pages|bytes|limit|max|min|heads|dim|world|tp|dp|pp|ep|"
        r"_gb\b|mem|time|seconds|capability|fraction|ratio|index|idx|\bi\b|\bn\b|step|code|pid|layers?|budget|blocks?|"
        r"%|//|\*|\+|-",
        "48",
    ),
)
_HOLE = re.compile(f"{OPEN}([^{SHUT}]*){SHUT}")
WORD, NUMBER = "example", "48"


def rendered(text: str) -> tuple[str, ...]:
    """A text with plausible values, and with words or numbers only."""
    ways = (_HOLE.sub(lambda found: _value(found[1]), text), _HOLE.sub(NUMBER, text), _HOLE.sub(WORD, text))
    return tuple(dict.fromkeys(ways))


def _value(name: str) -> str:
    lowered = name.lower()
    return next((value for pattern, value in _NAMED if re.search(pattern, lowered)), WORD)
