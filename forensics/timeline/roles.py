"""What the engine knows about sentences: whose fault a line can be. Data, in the program's own words.

The rules in rules/ sharpen this, but a failure must be placed right without any of them. The phrases are sglang's and
its libraries' own; general facts about them (who waits for whom, what is only advice) hold across causes.
"""

from __future__ import annotations

from functools import lru_cache

from forensics.frozen import frozen
from forensics.late import Late
from forensics.timeline.sieve import Needle, near, needle

CAUSE, VICTIM, WEAK, CLIENT, DEGRADED, TEARDOWN, ADVICE, NOISE = (
    "cause",
    "victim",
    "weak",
    "client",
    "degraded",
    "teardown",
    "advice",
    "noise",
)
CLIENT_GONE = "client-gone"
"""Key of exceptions that only say that a client hung up."""
NATURES = (CAUSE, VICTIM, WEAK, CLIENT, DEGRADED, TEARDOWN, ADVICE, NOISE)


@frozen
class Phrase:
    """`nature` of every line that `needle` matches; `go_to` says where the cause of a victim is to be looked for."""

    needle: Needle
    nature: str
    key: str
    go_to: str = ""


def _phrases(nature: str, *rows: tuple[str, str] | tuple[str, str, str]) -> tuple[Phrase, ...]:
    return tuple(Phrase(needle(r[1]), nature, r[0], r[2] if len(r) > 2 else "") for r in rows)


NOISE_PHRASES = _phrases(
    NOISE,
    ("ignored-import", r"^Ignore import error when loading"),
    ("rlimit", r"^Fail to set RLIMIT"),
    ("custom-allreduce", r"^Setup Custom allreduce failed"),
    ("py-spy-missing", r"^(?:Pyspy (?:failed|dump)|All pyspy dump attempts failed|py-spy dump failed)"),
    ("coredump", r"coredump|^CUDA user-triggered"),
    ("watchdog-info", r"^Scheduler debug info|^scheduler\.cur_batch"),
    ("gc-hook", r"^post-warmup freeze_gc failed"),
    ("tool-call-text", r"^Failed to parse JSON part: |^Error in (?:detect_and_parse|parse_streaming_increment)\b"),
    ("leak-report", r"^nanobind:|^\s*- leaked|leaked semaphore|leaked shared_memory"),
    ("retract", r"^KV cache pool is full\. Retract requests|^Decode out of memory happened"),
    ("abort-unknown-rid", r"^Abort request for rid=\S+ not found"),
    ("nccl-plugin", r"Failed to (?:initialize|open|load) NET plugin|No plugin found|Failed to find reverse path"),
    ("asgi-header", r"Exception in ASGI application|^Task exception was never retrieved"),
    (
        "optional-module",
        r"is not (?:installed|available), (?:\w+ may|some|falling|will)|Triton is not (?:supported|installed)",
    ),
    ("process-group-exit", r"destroy_process_group\(\) was not called"),
    ("default-config", r"^Using default (?:MoE|W8A8|HuggingFace)|Config file not found at"),
    ("cpu-arch", r"^Cannot detect CUDA architecture"),
    ("ipv6", r"\[c10d\] The (?:client|server) socket (?:cannot be initialized|has failed).*IPv6|\(errno: 97\b"),
    ("signal-handler", r"^Signal handler is not added"),
    ("router-wait", r"health check is pending\b"),
    ("link-up", r"Got async event ?: ?port active"),
    ("rccl-advice", r"NCCL WARN (?:Missing \"|NUMA auto balancing enabled|LL cutoff points not detected)"),
)

VICTIM_PHRASES = _phrases(
    VICTIM,
    ("collective-timeout", r"Watchdog caught collective operation timeout", "the rank without this line"),
    (
        "process-group",
        r"failure detected by watchdog|Exception \(either an error or timeout\) detected by watchdog"
        r"|Timeout at NCCL work|Some NCCL operations have failed or timed out|we are taking the entire process down"
        r"|Process group watchdog thread terminated|First PG on this rank|Received a dump signal"
        r"|Caught collective operation|heartbeat monitor",
        "the rank without a timeout line",
    ),
    (
        "peer-lost",
        r"Connection closed by (?:remote )?peer|Connection reset by peer|Broken pipe|recvValue failed"
        r"|Socket Timeout|sendBytes failed|socketProgress|NCCL communicator was aborted|ncclRemoteError"
        r"|remote process exited|gloo/transport/\S+\] (?:Read|Write) error"
        r"|Timed out waiting \d+ms for (?:recv|send)|pair closure|^Los(?:t|ing) connection with",
        "the peer",
    ),
    (
        "load-barrier",
        r"could finish the model loading, but there are other ranks that didn't|timed out in monitoredBarrier"
        r"|successfully reached monitoredBarrier",
        "the ranks that did not print it",
    ),
    (
        "peer-wait",
        r"CPU recv timeout|DeepEP error: timeout|timeout \(dispatch|Timed out after \d+ seconds waiting for clients"
        r"|Timed out waiting for clients|Rendezvous.*timed? ?out",
        "a rank that compiles, or is dead",
    ),
    (
        "kv-transfer",
        r"KVTransferError|Aborted by AbortReq|(?:Prefill|Decode) (?:transfer|bootstrap|handshake) failed"
        r"|^Some requests (?:timed out when bootstrapping|fail to receive KV Cache)",
        "the other side's log",
    ),
    ("watchdog", r"[Ww]atchdog timeout", "the rank that made no step"),
    ("health", r"^Health check failed", "the scheduler ranks before last_heartbeat"),
    (
        "child-died",
        r"[Ss]cheduler (?:is dead|died)|^Subprocess \S+ \(pid=\d+\) crashed with exit code|^Exit code: -?\d+"
        r"|crashed with exit code|exited with (?:code|status)|^A child process (?:died|exited)"
        r"|process (?:\S+ )?(?:died|is dead) unexpectedly|^Child process unexpectedly failed"
        r"|^Scheduler or DataParallelController \d+ terminated|^Initialization failed\. warmup error",
        "the child's own exception, its exit code",
    ),
    (
        "ray-actor",
        r"ActorDiedError|Server process terminated unexpectedly|RayActorError|WorkerCrashedError",
        "the server's own lines",
    ),
    (
        "probe-killed",
        r"failed (?:liveness|startup) probe, will be restarted",
        "how long the start takes, against the limits of the probe",
    ),
    ("nvshmem-late", r"NVSHMEM API called before NVSHMEM initialization", "the initialisation failure before"),
    ("trainer-wait", r"resume_memory_occupation timed out|Response ended prematurely", "the server's own line"),
    (
        "device-assert-echo",
        r"device-side assert triggered|CUDA_ERROR_LAUNCH_FAILED|unspecified launch failure"
        r"|cudaErrorAssert|CUDA_ERROR_ASSERT",
        "an assertion text without a rank, if there is one, else at the kernel launched before",
    ),
    (
        "pipe-closed",
        r"^EOFError\b|^_queue\.Empty|^ConnectionResetError|^BrokenPipeError",
        "the process at the other end",
    ),
    (
        "native-abort",
        r"^Fatal Python error: Aborted|terminate called (?:after|without)|^Aborted\b",
        "the exception or assertion above it",
    ),
)

TEARDOWN_PHRASES = _phrases(
    TEARDOWN,
    ("sigquit", r"[Rr]eceived sigquit|SIGQUIT received"),
    (
        "kill-tree",
        r"^kill_process_tree called|^Sleeping \d+ seconds? before crash|^No live scheduler"
        r"|^Dump(?:ing|ed) .*before crash"
        r"|^Waiting [\d.]+ seconds for CUDA coredumps|^Triggering SIGQUIT",
    ),
    ("killed-by-shell", r"^Killed\b|: line \d+: +\d+ Killed|\d{1,8} Killed +\S"),
    (
        "graceful",
        r"SIGTERM received|^Signal SIGTERM|^Gracefully exiting|^(?:INFO: +)?(?:Shutting down|Finished server process"
        r"|Application shutdown complete|Waiting for application shutdown)",
    ),
    (
        "resource-tracker",
        r"resource_tracker|KeyError: '/(?:mp|psm)|CudaIPCTypes|Producer process has been terminated"
        r"|subprocpool|SubprocPool|^Exception ignored in",
    ),
    (
        "interpreter-exit",
        r"cannot schedule new futures after (?:interpreter )?shutdown|Event loop is closed|^KeyboardInterrupt"
        r"|asyncio\.exceptions\.CancelledError|^SystemExit|Event loop stopped before Future completed",
    ),
)

ADVICE_PHRASES = _phrases(
    ADVICE,
    (
        "cuda-async",
        r"^CUDA kernel errors might be asynchronously|^For debugging consider passing CUDA_LAUNCH_BLOCKING"
        r"|^Compile with `?TORCH_USE_CUDA_DSA|^Search for `cudaError",
    ),
    (
        "capture-advice",
        r"^Possible (?:solutions|suggestions):|^\d\. (?:set|disable|change|if it is)|^Open an issue on GitHub"
        r"|^Fail when using backend: ",
    ),
)

CLIENT_PHRASES = _phrases(
    CLIENT,
    ("http-error", r"^\[http_server\] Error:"),
    (
        "request-state",
        r"but the state was deleted in|^Hit invalid (?:grammar|json_schema|regex|ebnf|structural_tag)\b"
        r"|^Failed to compile \w{1,20} grammar|^Grammar accept_token failed for req",
    ),
    (
        CLIENT_GONE,
        r"Request is disconnected from the client side|^(?:[\w.]*\.)?ClientDisconnect\b"
        r"|^(?:anyio\.)?(?:BrokenResourceError|ClosedResourceError|EndOfStream)\b",
    ),
    (
        "overlong",
        r"is longer than the model's context length|exceeds? the (?:model's )?maximum (?:context|allowed) length"
        r"|Input length \(\d+ tokens?\) exceeds|maximum context length",
    ),
    ("bad-parameter", r"^(?:\w+ )?must be (?:in|a|an|at|non-negative|positive)\b"),
)

DEGRADED_PHRASES = _phrases(
    DEGRADED,
    ("nan-sampling", r"Detected errors during sampling! NaN"),
    ("nan-sanitized", r"NaN detected in .*sanitized"),
    (
        "weights-missing",
        r"^Parameter \S+ not found in params_dict|Some weights are not initialized"
        r"|not initialized from checkpoint",
    ),
)

CAUSE_PHRASES = _phrases(
    CAUSE,
    ("device-assert", r"^Assertion failed: |: Assertion `"),
    ("pool-oom", r"^(?:Decode|Prefill|Extend) out of memory"),
    ("bind", r"\[Errno 98\]|address already in use|Address already in use"),
    ("memory-advice-error", r"^Not enough (?:host )?memory\b"),
    ("circuit-open", r"Circuit breaker state transition\b.{0,200}\bto=open"),
    ("ucx", r"\bUCX +(?:ERROR|FATAL)\b"),
    ("register", r"\b[Ff]ailed to (?:connect|register) to bootstrap|\bfailed to register\b|^Error fetching \S+"),
    ("argparse", r"^(?:usage: )?[\w./ -]+: error: "),
    ("ptxas", r"^ptxas (?:fatal|error)|^nvcc fatal|ninja: build stopped"),
    ("nan-detected", r"NaN detected!"),
    ("gloo-mesh", r"connectFullMesh failed"),
    ("link-event", r"Got async event ?: ?(?:port error|device fatal|GID table change)"),
    (
        "gpu-health",
        r"\bXid\b.*\d|uncorrectable ECC|\b[1-9]\d* (?:new )?uncorrectable hardware errors detected"
        r"|NVRM: .{0,200}(?:fail|fallen|fell off|lost|not responding|rror)",
    ),
    ("shm", r"No space left on device|Bus error"),
    (
        "gpu-fault",
        r"^Memory access fault by GPU node|^HW Exception by GPU node|aborting with error : HSA_STATUS_ERROR_",
    ),
    ("panic", r"^thread '[^']{0,200}' panicked at |\bPanicException\b"),
    ("segfault", r"^Fatal Python error|\bSegmentation fault\b|!!!!!!! Segfault|Caught signal \d+"),
    ("router-start", r"^Failed to start router|router.*failed to start"),
    ("nvshmem", r"(?i:nvshmem).{0,300}(?:error|failed)|non-zero status|init failed for transport"),
    ("transfer-engine", r"Transfer Engine initialization failed"),
    ("port-taken", r"^Port \S+ is already in use|Port is already in use"),
    ("rdma", r"\bibv_\w+ failed|Failed to (?:modify QP|register memory|create (?:QP|CQ))"),
    ("memory-saver", r"CUresult error: \d"),
    ("name-lookup", r"gai error|Name or service not known|Temporary failure in name resolution"),
    ("collective-mismatch", r"Detected mismatch between collectives"),
    ("memory-leak", r"memory leak detected!"),
)

POD_ENDS = (
    (
        needle(r"^\s*(?:Reason:\s+OOMKilled\b|\"?OOMKilled\"?: true\b|reason: OOMKilled\b)"),
        (CAUSE, "oom-killed", ""),
    ),
    (needle(r"^\s*[Rr]eason:\s+Error\s*$"), (VICTIM, "child-died", "what the container printed last")),
)
"""How `kubectl describe`, `kubectl get -o yaml` and `docker inspect` state that a container ended, indented."""

PHRASES: tuple[Phrase, ...] = (
    *NOISE_PHRASES,
    *TEARDOWN_PHRASES,
    *ADVICE_PHRASES,
    *CLIENT_PHRASES,
    *VICTIM_PHRASES,
    *DEGRADED_PHRASES,
    *CAUSE_PHRASES,
)
"""In the order in which they are tried."""

WRAPPERS = Late(
    r"(?:Capture (?:[\w-]{1,30} ){0,6}graph failed|Piecewise CUDA Graph failed|Scheduler hit an exception"
    r"|died during initialization"
    r"|Process group watchdog thread terminated)"
)
"""Exceptions that only report the failure of what they wrap."""

_WEAK_HEAD = Late(
    r"(?:\[?\w+\]? )?(?:Error|Failed|Failure|Exception|Fatal|Unexpected error|Unable to|Could not|Cannot)\b"
)
_WEAK_INSIDE = Late(r"\bfailed\b(?= to\b| with\b|[:.!]|$)|\berror(?: code)?: ")
"""Words of trouble in a line that nobody has a phrase for: it counts only where nothing else explains the end."""
WEAK_KINDS = frozenset({"message", "text", "error", "ray", "router", "transport", "cxx-log", "nccl", "gloo"})

CLIENT_FRAMES = Late(
    r"(?:starlette|fastapi|uvicorn|anyio)/|openai_api/adapter|entrypoints/openai/|serving_\w{1,40}\.py"
)
"""Files of request handlers in the HTTP process."""
SERVER_FRAMES = Late(
    r"managers/scheduler|model_executor/|managers/tp_worker|/models/|run_scheduler_process|arg_groups/|srt/server_args"
)
"""Files of the scheduler process, and of the settings of a launch: an exception there is the server's own."""


def is_weak(text: str) -> bool:
    """Whether a message has such words."""
    head = text[:400]
    told = "failed" in head or "error" in head
    return _WEAK_HEAD.match(head) is not None or (told and _WEAK_INSIDE.search(head) is not None)


def phrase_of(text: str) -> Phrase | None:
    """The phrase that a message is, or None where the engine has no word for it."""
    return _phrase_of(text[:2000])


def is_noise(text: str) -> bool:
    """Whether a message looks like a failure and is none."""
    phrase = phrase_of(text)
    return phrase is not None and phrase.nature == NOISE


@lru_cache(maxsize=2048)
def _phrase_of(head: str) -> Phrase | None:
    """Failures repeat their words, on each rank and in each launch."""
    wanted = sorted(_PLACE[n] for n in near(head) if n in _PLACE)
    return next((PHRASES[n] for n in wanted if PHRASES[n].needle.pattern.search(head)), None)


_PLACE = {phrase.needle.number: place for place, phrase in enumerate(PHRASES)}


def role_of_nature(nature: str, first: bool) -> str:
    """Role of a failure of this nature: only the first failure is a root."""
    if nature == TEARDOWN:
        return "teardown"
    if nature == ADVICE:
        return "advice"
    return "root" if first else "cascade"
