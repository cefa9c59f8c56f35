"""Kinds of checks: what programs say in many wordings, from many places, about one thing.

A draft is cut from one log. The next log of the same cause comes from another model, backend or release, whose check
has other words for the same thing: heads that do not divide, a GPU that a kernel was not built for, a process that got
SIGKILL. Each row is such a thing with the wordings that the programs have for it; the rows name no cause.
"""

from __future__ import annotations

import re

from forensics.frozen import frozen

MESSAGES = ("exception", "frame-source", "error", "chain")
"""Line kinds of a check of the program itself; a row without kinds is worded so that it may stand on any line."""


@frozen
class Kind:
    """`name` ends the rule's id. `patterns` (RE2) are the wordings, `kinds` the lines that they may stand on,
    `innermost` the frame that must have raised. `facts`: settings of which the first that the launch has goes into the
    condition, since the kind concerns several of them."""

    name: str
    title: str
    patterns: tuple[str, ...]
    kinds: tuple[str, ...] = MESSAGES
    innermost: str = ""
    facts: tuple[str, ...] = ()


_CHIP = r"(?:SM ?_?(?:>=? ?)?\d+\w*|Hopper|Blackwell|Ampere|Ada|compute capability|[Cc]apability|architectures?|platform|hardware|current GPU)"  # noqa: E501
KINDS: tuple[Kind, ...] = (
    Kind(
        "killed",
        "A process was ended by a signal from outside",
        (
            r"(?i)exit(?:ed|s)?(?: with)?(?: an)?(?: exit)? ?(?:code|status)?[ =:]*\(?(?:-?9|137|-15|143)\b",
            r"(?i)(?:terminated|crashed|failed|died) with(?: an)?(?: exit)?(?: ?code)?[ =:]*(?:-?9|137|-15|143)\b",
            r"code=killed, status=",
            r"^Killed\s*$",
            r"line \d+:\s+\d+ Killed\b",
        ),
        kinds=(),
    ),
    Kind(
        "tokenizer",
        "The tokenizer's own code raised while its files were read",
        (r"^(?:\w+\.)*\w+(?:Error|Exception)\b",),
        kinds=("exception",),
        innermost=r"(?:tokenization_\w+|convert_slow_tokenizer|tokenizer\w*)\.py",
    ),
    Kind(
        "sizes",
        "A size of the model does not go into a size of the launch",
        (
            r"(?i)\bdivisib|\bmust divide\b|\bdoes not divide\b|\bmultiple of\b",
            r"\w\)? % \(?[\w.]*(?:size|block\w*|rank\w*|world\w*|heads|tp|ep|dp)\b.{0,20}== 0",
            r"(?i)parallel (?:world )?size .{0,40}(?:must be|is greater|is larger|exceeds)",
        ),
        facts=("args.enable_dp_attention", "args.ep_size > 1", "args.moe_dp_size > 1", "args.tp_size > 1"),
    ),
    Kind(
        "index",
        "An index points outside its table",
        (
            r"(?i)index\w* (?:is )?out of (?:range in self|bounds)",
            r"Assertion .{0,200}(?:idx|ind|index|srcIndex)\w* ?<",
        ),
        kinds=(),
    ),
    Kind(
        "shapes",
        "A tensor of the checkpoint does not fit the parameter",
        (
            r"(?i)size of tensor a .{0,20}must match",
            r"(?i)shape\b.{0,60}(?:==|!=|mismatch|does not match|doesn't match|shape)",
            r"(?i)exceeds (?:the )?(?:dimension|loaded_weight)|out of bounds: ",
        ),
    ),
    Kind(
        "loaders",
        "A weight's own loader refused a tensor of the checkpoint",
        (r"^(?:\w+\.)*\w+Error\b",),
        kinds=("exception",),
        innermost=r"in (?:\w+_)?weight_loader\w*$|in load_(?:\w+_)?weight$",
    ),
    Kind(
        "gpu",
        "A kernel or a library does not serve this GPU",
        (
            rf"(?i)(?:\brequires?\b|\bneeds?\b|\bonly (?:be )?(?:\w+ )?(?:on|supports?|available)|\bsupported on\b|"
            rf"\bnot support\w*\b).{{0,70}}\b{_CHIP}\b",
            rf"(?i){_CHIP}.{{0,40}}\b(?:is|are) (?:not|un) ?supported",
            r"(?i)hardware does not support|no kernel image is available|invalid value for --gpu-architecture",
        ),
    ),
    Kind(
        "absent",
        "A package that this launch needs is not installed",
        (
            r"No module named '",
            r"(?i)\bis not (?:installed|available)\b.{0,10}(?:please )?\binstall\b",
            r"(?i)please (?:pip )?install\b",
        ),
    ),
    Kind(
        "files",
        "No file descriptor is left",
        (r"Too many open files|Errno 24\b",),
        kinds=(),
    ),
    Kind(
        "space",
        "A disk, or the shared memory, is full",
        (r"(?i)no space left on device|Errno 28\b|disk quota exceeded|\bENOSPC\b",),
        kinds=(),
    ),
    Kind(
        "rights",
        "A file may not be read or written",
        (r"Permission denied|Errno 13\b|Read-only file system|Errno 30\b",),
        kinds=(),
    ),
    Kind(
        "tile",
        "A kernel needs more shared memory than a block of this GPU has",
        (r"(?i)out of resources?: shared memory|shared[- ]memory (?:capacity|limit)|exceeds .{0,30}shared[- ]memory",),
    ),
    Kind(
        "nan",
        "Numbers that are not finite reached the sampler",
        (r"\bNaNs?\b|probability tensor contains|not finite|\binf\b.{0,10}\bnan\b",),
        kinds=(),
    ),
    Kind(
        "damaged",
        "A weight file is damaged or incomplete",
        (
            r"(?i)corrupt|truncat|incomplete metadata|deserializing header|not fully covered",
            r"PytorchStreamReader|zip archive",
        ),
    ),
    Kind(
        "hub",
        "The model hub was not reached, and the files are not in the cache",
        (
            r"(?i)couldn'?t connect to 'https|outgoing traffic has been disabled|offline mode",
            r"(?i)requested files in the (?:disk|local) cache",
        ),
    ),
    Kind(
        "budget",
        "The weights leave too little GPU memory for the KV cache",
        (r"(?i)\bnot enough (?:GPU )?memory\b|leaves? no (?:GPU )?(?:memory|room)\b|no (?:GPU )?memory (?:is )?left",),
    ),
    Kind(
        "pool",
        "The KV cache pool has no place for the batch",
        (
            r"(?i)(?:^|: |\b(?:prefill|decode) )out of memory\. Try to lower|No space left for only one request",
            r"(?i)retracted?\b.{0,60}request|KV cache pool is full",
        ),
        kinds=(),
    ),
    Kind(
        "idle",
        "The pools do not add up when the server is idle",
        (r"memory leak detected",),
    ),
    Kind(
        "capture",
        "An operation is not allowed while a CUDA graph is captured",
        (r"(?i)(?:during|when|while) (?:CUDA graph capture|(?:the )?stream is capturing)|captures_underway",),
    ),
    Kind(
        "arguments",
        "The CUDA runtime refused an argument",
        (r"(?:^|: )(?:CUDA error: )?invalid argument\b|cudaErrorInvalidValue",),
    ),
    Kind(
        "builds",
        "A kernel could not be built at run time: a tool or a header is missing",
        (
            r"(?i)(?:find|missing|no) (?:a |the )?(?:working )?(?:C|C\+\+) compiler",
            r"fatal error: \S+: No such file",
            r"(?i)\b(?:nvcc|ninja|gcc|g\+\+)\b.{0,30}(?:not found|no such file|is required)",
            r"(?:No such file or directory: |Command ..?.?)'?[\w./-]*\b(?:nvcc|ninja|gcc|g\+\+|cc)'",
        ),
        kinds=(),
    ),
    Kind(
        "gloo",
        "Gloo could not connect the ranks",
        (r"\bGloo connectFullMesh failed|third_party/gloo/gloo/transport|\[c10d\] .{0,40}gloo",),
        kinds=(),
    ),
    Kind(
        "bootstrap",
        "Prefill and decode did not find each other",
        (
            r"(?i)\bfrom bootstrap\b|bootstrap server",
            r"(?i)(?:prefill|decode) (?:register attempt|handshake failed|bootstrap failed)",
        ),
        kinds=(),
    ),
    Kind(
        "workers",
        "The router has no worker",
        (
            r"(?i)no (?:available |healthy |prefill |decode |regular )*(?:workers?|servers?) (?:are )?available",
            r"\w+_urls: \[\]",
        ),
        kinds=(),
    ),
    Kind(
        "bind",
        "An address is not one of this host",
        (r"Cannot assign requested address|No such device \(addr=|EADDRNOTAVAIL",),
        kinds=(),
    ),
    Kind(
        "weightless",
        "The model's folder holds no weights",
        (r"(?i)\b(?:no|find any) model weights\b|\bno (?:weight|safetensors|\.safetensors) files?\b",),
    ),
    Kind(
        "head-size",
        "The attention kernels have no instance for this head size",
        (
            r"(?i)unsupported head_?(?:dim|size)|dispatch head_dim|Invalid configuration ?: NUM_",
            r"(?i)head_?(?:dim|size)\b.{0,30}not supported",
        ),
    ),
    Kind(
        "ports",
        "A port or an address is taken",
        (r"(?i)address already in use|AddrInUse|EADDRINUSE",),
        kinds=(),
    ),
)


def kind_of(lines: tuple[str, ...], frame: str = "") -> Kind | None:
    """The kind of a failure by the lines that state it (message, source line of the check) and its innermost frame."""
    for kind in KINDS:
        if kind.innermost and not re.search(kind.innermost, frame):
            continue
        if any(re.search(p, line) for p in kind.patterns for line in lines):
            return kind
    return None
