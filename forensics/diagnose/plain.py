"""Failures whose own words say what they are, whatever caused them: what each is, what it is not, and what to do.

Rows of data: the program's, the driver's or the operating system's wording. None names a known cause, and none has only
wordings that a finding's rule knows: it would never be read.
"""

from __future__ import annotations

from forensics.frozen import frozen
from forensics.late import Late


@frozen
class Plain:
    """One wording: `title` and `why` for the report; `do` are direct steps, `collect` data (text, command).
    `settled`: what happened is said, so that no part of the server need be taken out to see."""

    pattern: Late[str]
    title: str
    why: str
    do: tuple[tuple[str, str], ...] = ()
    collect: tuple[tuple[str, str], ...] = ()
    settled: bool = True


def _row(
    pattern: str,
    title: str,
    why: str,
    *do: tuple[str, str],
    collect: tuple[tuple[str, str], ...] = (),
    settled: bool = True,
) -> Plain:
    return Plain(Late(pattern), title, why, do, collect, settled)


_KERNEL = (
    ("the failing kernel's own call: CUDA_LAUNCH_BLOCKING=1 before the same command", ""),
    ("Xid lines of the driver at that time", "dmesg -T | grep -i xid"),
)
_LATE = "the error is reported late, so the frames show where it was noticed, not the faulting kernel"
_SLOTS = ("lower --max-running-requests, or compare it with the slots that each pipeline micro-batch gets", "")
PLAIN: tuple[Plain, ...] = (
    _row(
        r"POST /(?:un)?load_lora_adapter",
        "The server refused to load or unload a LoRA adapter",
        "the server goes on; the reason stands in the body of the answer alone (error_message)",
        ("send the request again and read error_message of the answer: rank and target modules against "
         "--max-lora-rank and --lora-target-modules, a name that is taken, a path that is not there", ""),
    ),
    _row(
        r"POST /(?:update_weight|init_weights_update|(?:release|resume)_memory_)",
        "The server refused a management request (weights or memory)",
        "the server goes on; the reason stands in the body of the answer alone, the log does not repeat it",
        ("read the answer's message where the request came from (a trainer, say), and the server's lines just before",
         ""),
    ),
    _row(
        r"Memory access fault by GPU node|HW Exception by GPU node|HSA_STATUS_ERROR_(?:MEMORY|EXC|ILL)",
        "A GPU kernel faulted (ROCm)",
        "the ROCm runtime names GPU and address and ends the process; the abort that follows is a consequence",
        collect=(("the failing kernel: AMD_SERIALIZE_KERNEL=3 before the same command", ""),),
        settled=False,
    ),
    _row(
        r"failed (?:liveness|startup) probe, will be restarted",
        "Kubernetes ended the container because its probe failed",
        "during start-up the server answers nothing for minutes; while it serves, it stood still or was overloaded",
        ("give the container a startupProbe whose failureThreshold times periodSeconds covers loading and graph "
         "capture, and let the liveness probe ask /health", ""),
    ),
    _row(
        r"^\s*[Rr]eason:\s+Error\s*$",
        "The container ended",
        "by itself or by a signal; its exit code tells which: 137 is SIGKILL, 139 a segmentation fault, 1 an exception",
        collect=(("what the container printed before it ended", "kubectl logs --previous POD"),),
        settled=False,
    ),
    _row(
        r"unspecified launch failure",
        "A GPU kernel faulted (unspecified launch failure)",
        _LATE,
        collect=_KERNEL,
        settled=False,
    ),
    _row(
        r"illegal instruction was",
        "A GPU kernel faulted (illegal instruction)",
        _LATE,
        collect=_KERNEL,
        settled=False,
    ),
    _row(r"misaligned address", "A GPU kernel faulted (misaligned address)", _LATE, collect=_KERNEL, settled=False),
    _row(
        r"illegal memory access|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS",
        "A GPU kernel faulted (illegal memory access)",
        _LATE,
        collect=_KERNEL,
        settled=False,
    ),
    _row(
        r"alloc_req_slots runs out of memory",
        "The pool of request slots is used up",
        "request slots are rows of a table that is sized at the start; GPU memory did not run out",
        _SLOTS,
    ),
    _row(
        r"alloc_token_slots",
        "The KV cache pool has no free token slots",
        "the pool is sized at the start; the GPU itself did not run out of memory",
        ("read the numbers of the line: tokens asked for, available and evictable; then lower the load or raise "
         "--mem-fraction-static", ""),
    ),
    _row(
        r"No space left on device|\[Errno 28\]",
        "The disk or the shared memory is full",
        "the operating system says so (ENOSPC); GPU memory is not meant",
        ("free space where the failing frame writes, or move that directory", "df -h"),
    ),
    _row(
        r"\[Errno 13\]|PermissionError",
        "A file may not be read or written",
        "the operating system says so (EACCES)",
        ("make the path in the message readable or writable for the user of the server", "ls -ld PATH"),
    ),
    _row(
        r"gated repo|GatedRepoError|401 Client Error",
        "The hub refuses the download: the repository is gated or the token is missing",
        "the hub says so (401)",
        ("accept the licence on the model's page, then log in or set HF_TOKEN", "env HF_TOKEN=TOKEN hf auth whoami"),
    ),
    _row(
        r"cannot open shared object file",
        "A shared library is missing",
        "the dynamic linker names the file",
        ("install the package that holds the named library, or add its directory to LD_LIBRARY_PATH", ""),
    ),
    _row(
        r"undefined symbol: cu[A-Z]",
        "The driver lacks a function that a package was built for",
        "a symbol of the CUDA driver is missing: the driver is older than the package expects",
        ("update the driver, or install the package built for its CUDA release", "nvidia-smi"),
    ),
    _row(
        r"undefined symbol: ",
        "Two binary packages do not fit together",
        "the dynamic linker misses a symbol: one package was built against another release of the other",
        ("reinstall both packages from one release set", "pip list"),
    ),
    _row(
        r"(?m)(?::\d+:\d+: |^)fatal error: \S+: No such file",
        "A kernel could not be compiled: a header is missing",
        "the compiler names the header; it belongs to the CUDA toolkit or to the package whose file asks for it",
        ("install the package that holds the named header (CUDA headers: the full toolkit of nvcc's release), or "
         "add its folder to CPATH; then clear the cache of compiled kernels", "nvcc --version"),
    ),
    _row(
        r"(?i)ninja build failed|nvcc fatal|ptxas (?:fatal|error)|\bbuild failed\b"
        r"|CalledProcessError: Command '\['?ninja",
        "A kernel could not be compiled",
        "the compiler's own first error line says why; the exception only reports that the build ended",
        ("read the compiler's first error line, then compare the toolkit with the one that PyTorch was built for",
         "nvcc --version; python3 -c 'import torch; print(torch.version.cuda)'"),
    ),
    _row(
        r"Failed to allocate memory for \w+ with size \d+ and alignment",
        "The workspace of the attention kernels is too small",
        "the buffer has a fixed size that is reserved at the start; GPU memory did not run out",
        ("enlarge it: SGLANG_FLASHINFER_WORKSPACE_SIZE (bytes; FLASHINFER_WORKSPACE_SIZE up to 0.5.3) above the size "
         "in the message, or use smaller prefill chunks (--chunked-prefill-size)", ""),
    ),
    _row(
        r"NET/IB ?: Got completion .{0,200}?(?:error|status=\w*\(?)\s*12\b|IBV_WC_RETRY_EXC_ERR",
        "An RDMA peer stopped answering (transport retries used up)",
        "completion error 12: the other side did not acknowledge: a link, a switch, flow control, or a dead peer",
        collect=(
            ("state and error counters of the adapters on both nodes at that time", "ibstat; rdma statistic show"),
            ("the last lines of the peer that the message names", ""),
        ),
    ),
    _row(
        r"NET/IB ?: Got completion",
        "A transfer over RDMA failed",
        "the completion error is the adapter's own verdict on one transfer; the peer's address is in the line",
        collect=(("state and error counters of the adapters on both nodes", "ibstat; rdma statistic show"),),
    ),
    _row(
        r"Failed to register memory|ibv_reg_mr\w* failed|failed to register (?:memory|buffer)",
        "The RDMA adapter could not register a piece of memory",
        "GPU memory needs the peer-memory module of the driver (or dma-buf); host memory needs a high memlock limit",
        collect=(
            ("whether the peer-memory module is loaded", "lsmod | grep -i -E 'peermem|nv_peer'"),
            ("the limit of locked memory inside the container", "ulimit -l"),
        ),
    ),
    _row(
        r"\bUCX +(?:ERROR|FATAL)",
        "UCX could not set up a transport",
        "UCX names the device and the call that failed; what its users report later is a consequence",
        collect=(
            ("the transports and devices that UCX sees", "ucx_info -d"),
            ("another choice of transports: UCX_TLS and UCX_NET_DEVICES before the same command", ""),
        ),
    ),
    _row(
        r"Circuit breaker state transition|no available workers|Failed to select (?:PD pair|prefill|decode)"
        r"|http_request\{.{0,600}(?:status_code=|status=)5\d\d|failed with server error",
        "The router has no worker that answers",
        "the router itself works: its workers were never registered, are not healthy, or answer with errors",
        collect=(
            ("whether each worker answers by itself", "curl -sf -m 10 http://WORKER:PORT/health"),
            ("the list of workers that the router holds", "curl -s http://ROUTER:PORT/workers"),
        ),
    ),
    _row(
        r"panicked at ",
        "A thread of the Rust part panicked",
        "the line below the panic states its message; further panics of other threads (poisoned locks) follow from it",
        collect=(("the stack of the first panic: RUST_BACKTRACE=1 before the same command", ""),),
    ),
    _row(
        r"KVTransferError|(?:Prefill|Decode) transfer failed for request|Session \S+ failed",
        "The transfer of a request's KV cache failed",
        "prefill and decode each tell half of it: the other side's lines about the same room state the reason",
        settled=False,
    ),
    _row(
        r"^(?:Decode|Prefill) (?:bootstrap|handshake) failed",
        "The two sides of a request did not find each other",
        "the bootstrap server of the prefill side was not reached, or does not know this room",
        settled=False,
    ),
    _row(
        r"unexpected keyword argument|expected at most \d+ argument|module '[\w.]{1,200}' has no attribute"
        r"|'\w{0,100}Config' object has no attribute|cannot import name|takes \d+ positional arguments? but"
        r"|missing \d+ required (?:positional|keyword-only) argument|incompatible function arguments"
        r"|Mismatched type on argument|Expected \d+ but got \d+ arguments",
        "Two packages, or a package and a configuration, do not fit together",
        "a name or an argument is missing where one piece of code calls another: most often a difference of releases",
        ("compare the versions of the packages in the innermost frames with what this sglang release pins", "pip list"),
    ),
)  # fmt: skip


def plain_of(text: str) -> Plain | None:
    """The row for a failure's text, or None."""
    head = text[:2000]
    return next((row for row in PLAIN if row.pattern.search(head)), None)
